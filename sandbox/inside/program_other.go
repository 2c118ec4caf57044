//go:build !linux

package inside

import (
	"os"
	"syscall"
)

// inMemory: other systems execute nothing from memory.
func inMemory(program *os.File) (*os.File, error) {
	fd, err := syscall.Dup(int(program.Fd()))
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), program.Name()), nil
}
