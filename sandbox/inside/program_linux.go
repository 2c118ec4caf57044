package inside

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// inMemory copies a program to memory that nobody can write to any more: a sandbox that gets hold of the file through
// /proc must not change what the next sandbox runs.
func inMemory(program *os.File) (*os.File, error) {
	fd, err := unix.MemfdCreate("toolward-inside", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("toolward-inside", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	copied := os.NewFile(uintptr(fd), "toolward-inside")
	if _, err = io.Copy(copied, program); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		_ = copied.Close() // it is not used
		return nil, err
	}
	return copied, nil
}
