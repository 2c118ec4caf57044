//go:build !linux

// Package serve is the program inside a sandbox, which is a Linux.
package serve

import "os"

// Main says that there is nothing to serve here.
func Main([]string) int {
	os.Stderr.WriteString("toolward: sandboxes are Linux\n") // nobody else to tell
	return 64
}
