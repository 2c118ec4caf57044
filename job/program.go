//go:build unix

package job

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrChanged says that a program is not the file that was judged, or that its content may be another.
var ErrChanged = errors.New("it changed after it was judged")

// program is an executable that is held open and was compared.
type program struct {
	Program
	fd int
	// byName: the file is opened again by its path after we start it: by the interpreter of a script, by a wrapper, or
	// by a system that executes nothing else.
	byName bool
}

// openPrograms opens all programs of a member and compares them with what was judged.
func (m *member) openPrograms() error {
	for i, p := range m.Programs {
		opened, err := openProgram(p, i > 0)
		if err != nil {
			return err
		}
		m.programs = append(m.programs, opened)
	}
	return nil
}

func openProgram(judged Program, wrapped bool) (*program, error) {
	// O_NONBLOCK: a FIFO that was put there must not hang us.
	fd, err := openRetry(judged.Path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC)
	readable := err == nil
	if errors.Is(err, unix.EACCES) {
		fd, err = openUnreadable(judged.Path) // programs may be executable and not readable
	}
	if err != nil {
		return nil, &Refusal{What: judged.Path, Err: fmt.Errorf("%w (%w)", ErrChanged, err)}
	}
	p := &program{Program: judged, fd: fd}
	p.byName = wrapped || !startsOpenFiles || readable && !isBinary(fd)
	if err := p.compare(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// compare refuses what is not the very file that was judged, or was written to since.
func (p *program) compare() error {
	var now unix.Stat_t
	err := unix.Fstat(p.fd, &now)
	if err == nil && p.same(&now) && p.byName {
		err = unix.Stat(p.Path, &now)
	}
	switch {
	case err != nil:
		return &Refusal{What: p.Path, Err: fmt.Errorf("%w (%w)", ErrChanged, err)}
	case !p.same(&now):
		return &Refusal{What: p.Path, Err: ErrChanged}
	}
	return nil
}

func (p *program) same(now *unix.Stat_t) bool {
	return now.Mode&unix.S_IFMT == unix.S_IFREG && identityOf(now) == p.Identity
}

func (p *program) close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // nothing was written
		p.fd = -1
	}
}

// Identify is the identity of the file that a path leads to.
func Identify(path string) (Identity, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Identity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return identityOf(&st), nil
}

func identityOf(st *unix.Stat_t) Identity {
	return Identity{
		Device: uint64(st.Dev), Inode: st.Ino, Size: st.Size, // widths differ between systems
		Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(),
	}
}

// isBinary reports whether a file is in the system's own format.
func isBinary(fd int) bool {
	var magic [4]byte
	n, err := unix.Pread(fd, magic[:], 0)
	return err == nil && n == len(magic) && string(magic[:]) == "\x7fELF"
}

func openRetry(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
