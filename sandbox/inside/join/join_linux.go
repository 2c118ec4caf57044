package join

import (
	"os"

	"golang.org/x/sys/unix"
)

// Connect connects to a socket and makes the connection the standard input.
func Connect(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd) // standard input is a copy
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return &os.PathError{Op: "connect", Path: path, Err: err}
	}
	return os.NewSyscallError("dup3", unix.Dup3(fd, 0, 0))
}
