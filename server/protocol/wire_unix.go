//go:build unix

package protocol

import "syscall"

// writeNow writes what the kernel takes at once; 0 or less if that is nothing. The descriptor never blocks: package net
// makes it so.
func writeNow(fd uintptr, b []byte) int {
	n, err := syscall.Write(int(fd), b)
	if err != nil {
		return 0
	}
	return n
}
