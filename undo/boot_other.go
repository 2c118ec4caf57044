//go:build !linux

package undo

import "golang.org/x/sys/unix"

// bootID names this run of the system; "" if nobody knows.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
