package runclient

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeSize is the most that the kernel gives to those without rights.
const pipeSize = 1 << 20

func enlarge(pipe int) {
	_, _ = unix.FcntlInt(uintptr(pipe), unix.F_SETPIPE_SZ, pipeSize) // it is only faster
}

// moveAll moves what comes out of a pipe without copying it, until its end. false: it cannot be moved to where it goes, and
// nothing was lost; terminals and files that are only appended to take no moved pages.
func moveAll(from, to int) bool {
	for {
		n, err := syscall.Splice(from, nil, to, nil, pipeSize, 0)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EPIPE:
			return true
		case err != nil:
			return false
		case n == 0:
			return true
		}
	}
}
