package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// stride leads through all numbers in an order that jumps about; it divides no count in use.
const stride = 7919

// sink keeps the compiler from leaving out what is measured.
var sink any

func reads(report *informerReport, store cache.Indexer, pods int) {
	keys := make([]string, pods)
	for i := range keys {
		number := i * stride % pods
		keys[i] = fmt.Sprintf("namespace-%02d/pod-%07d", number%100, number)
	}
	report.GetsPerSecond = perSecond(func(turn int) {
		object, exists, err := store.GetByKey(keys[turn%pods])
		if !exists || err != nil {
			fail(fmt.Errorf("%s is not there", keys[turn%pods]))
		}
		sink = object
	})
	report.CopiesPerSecond = perSecond(func(turn int) {
		object, _, _ := store.GetByKey(keys[turn%pods])
		sink = object.(*corev1.Pod).DeepCopy()
	})
	instances := numbered("instance-%04d", max(pods/20, 1))
	report.FewPerSecond = perSecond(func(turn int) {
		objects, err := store.ByIndex("instance", instances[turn*stride%len(instances)])
		if len(objects) == 0 || err != nil {
			fail(fmt.Errorf("the index is empty"))
		}
		sink = objects
	})
	namespaces := numbered("namespace-%02d", 100)
	report.ManyPerSecond = perSecond(func(turn int) {
		objects, err := store.ByIndex(cache.NamespaceIndex, namespaces[turn%len(namespaces)])
		if len(objects) == 0 || err != nil {
			fail(fmt.Errorf("the index is empty"))
		}
		sink = objects
	})
}

func numbered(format string, count int) []string {
	texts := make([]string, count)
	for number := range texts {
		texts[number] = fmt.Sprintf(format, number)
	}
	return texts
}

// perSecond repeats something until the time is over, and tells how often in a second of this thread's processor time:
// what others take of the machine does not count. The clock is looked at once in 64 turns.
func perSecond(read func(turn int)) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start, before := time.Now(), processorTime()
	turn := 0
	for {
		for range 64 {
			read(turn)
			turn++
		}
		if time.Since(start) >= readFor {
			return float64(turn) / (processorTime() - before).Seconds()
		}
	}
}

// processorTime is how long this thread has had a processor.
func processorTime() time.Duration {
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		fail(err)
	}
	nanoseconds, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	if err != nil {
		fail(err)
	}
	return time.Duration(nanoseconds)
}
