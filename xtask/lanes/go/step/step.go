// Package step prints a line for each step of a lane, as xtask reads it.
package step

import (
	"fmt"
	"os"
	"strings"
)

var failed bool

// Do runs one step and tells how it went.
func Do(name string, run func() error) {
	if err := run(); err != nil {
		failed = true
		fmt.Printf("not ok %s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	fmt.Printf("ok %s\n", name)
}

// Must ends the program when there is no point in going on.
func Must(err error) {
	if err != nil {
		fmt.Printf("not ok start: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
}

// Expect is an error unless both are equal.
func Expect[T comparable](what string, found, expected T) error {
	if found != expected {
		return fmt.Errorf("%s is %v, not %v", what, found, expected)
	}
	return nil
}

// Exit ends the program.
func Exit() {
	if failed {
		os.Exit(1)
	}
}
