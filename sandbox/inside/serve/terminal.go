//go:build linux

package serve

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
	"github.com/toolward/toolward/sandbox/task"
)

// openTerminal makes a terminal. Its other end is opened through this one: there is no name that could be exchanged.
func (p *pumps) openTerminal(size *task.Size) (child [3]uintptr, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return child, task.Errorf(task.CodeFailed, "open a terminal: %v", err)
	}
	err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	other := -1
	if err == nil {
		other, err = otherEnd(fd)
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was written
		return child, task.Errorf(task.CodeFailed, "open a terminal: %v", err)
	}
	p.terminal = os.NewFile(uintptr(fd), "terminal")
	p.stdin = p.terminal
	setSize(p.terminal, size.Cols, size.Rows)
	p.outputs = []outputEnd{{wire.Stdout, p.terminal, fd, p.stream.stdout}}
	return [3]uintptr{uintptr(other), uintptr(other), uintptr(other)}, nil
}

// otherEnd opens the end of a terminal that the program gets.
func otherEnd(terminal int) (int, error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(terminal), unix.TIOCGPTPEER, flags)
	if errno == 0 {
		return int(fd), nil
	}
	number, err := unix.IoctlGetInt(terminal, unix.TIOCGPTN) // kernels before 4.13, and those that only look like one
	if err != nil {
		return -1, err
	}
	return unix.Open("/dev/pts/"+strconv.Itoa(number), flags, 0)
}

func setSize(terminal *os.File, cols, rows uint16) {
	_ = control(terminal, func(fd int) error { // a size is not worth an error
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows})
	})
}

// foreground is the process group that has the terminal.
func foreground(terminal *os.File) (group int, err error) {
	err = control(terminal, func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return group, err
}

// control does something with an open file that may be closed at any time.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) { result = do(int(fd)) }); err != nil {
		return err
	}
	return result
}
