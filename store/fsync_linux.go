package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFile brings a file's content to the disk. The time of its last change
// may stay behind: in a log that overwrites itself, that saves the file
// system's own journal, and with it most of the time.
func syncFile(file *os.File) error {
	for {
		err := unix.Fdatasync(int(file.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
