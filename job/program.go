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
	fd     int
	binary bool // the system loads it directly, without an interpreter that would open it by name
}

// openPrograms opens all programs of a member and compares them with what was judged.
func (m *member) openPrograms() error {
	for _, p := range m.Programs {
		opened, err := openProgram(p)
		if err != nil {
			return &Refusal{What: p.Path, Err: err}
		}
		m.programs = append(m.programs, opened)
	}
	return nil
}

func openProgram(judged Program) (*program, error) {
	// O_NONBLOCK: a FIFO that was put there must not hang us.
	fd, err := openRetry(judged.Path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC)
	readable := err == nil
	if errors.Is(err, unix.EACCES) {
		fd, err = openUnreadable(judged.Path) // programs may be executable and not readable
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrChanged, err)
	}
	p := &program{Program: judged, fd: fd}
	if err := p.compare(); err != nil {
		p.close()
		return nil, err
	}
	p.binary = !readable || isBinary(fd)
	return p, nil
}

// compare refuses what is not the very file that was judged, or was written to since.
func (p *program) compare() error {
	var now unix.Stat_t
	if err := unix.Fstat(p.fd, &now); err != nil {
		return &Refusal{What: p.Path, Err: fmt.Errorf("%w (%w)", ErrChanged, err)}
	}
	if now.Mode&unix.S_IFMT != unix.S_IFREG || identityOf(&now) != p.Identity {
		return &Refusal{What: p.Path, Err: ErrChanged}
	}
	return nil
}

// comparePath is compare for what the path names now.
func (p *program) comparePath() error {
	var now unix.Stat_t
	if err := unix.Stat(p.Path, &now); err != nil {
		return &Refusal{What: p.Path, Err: fmt.Errorf("%w (%w)", ErrChanged, err)}
	}
	if identityOf(&now) != p.Identity {
		return &Refusal{What: p.Path, Err: ErrChanged}
	}
	return nil
}

func (p *program) close() {
	if p.fd >= 0 {
		unix.Close(p.fd) //nolint:errcheck // nothing was written
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
		Device: uint64(st.Dev), Inode: st.Ino, Size: st.Size, //nolint:unconvert // widths differ between systems
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
