package main

import (
	"os"
	"strconv"
	"strings"
)

// resident is the memory that the process has now, in bytes.
func resident() uint64 { return status("VmRSS:") }

// peak is the most memory that the process had since it started or since forgetPeak.
func peak() uint64 { return status("VmHWM:") }

// forgetPeak starts the count of the peak afresh.
func forgetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

func status(name string) uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name); found {
			kilobytes, _ := strconv.ParseUint(strings.Fields(value)[0], 10, 64)
			return kilobytes * 1024
		}
	}
	return 0
}
