package main

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// closeInherited closes the files that whoever started this process left open in it, beside its three streams: the gateway needs
// none of them, and what it starts would get them as well, a terminal's or a lock's among them. Go marks every file that it
// opens to be closed at exec; what came through an exec has no mark.
func closeInherited() error {
	entries, err := os.ReadDir("/dev/fd")
	for _, entry := range entries {
		fd, notNumber := strconv.Atoi(entry.Name())
		if notNumber != nil || fd <= 2 {
			continue
		}
		if flags, gone := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); gone == nil && flags&unix.FD_CLOEXEC == 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return err
}
