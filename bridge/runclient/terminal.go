package runclient

import (
	"sync"

	"golang.org/x/sys/unix"
)

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, getTermios)
	return err == nil
}

// terminalSize is that of a terminal in characters; the usual one where it does not say.
func terminalSize(fd int) (cols, rows uint16) {
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return size.Col, size.Row
}

// rawTerminal is a terminal whose keys all go to the command: the terminal inside makes ^C a signal.
type rawTerminal struct {
	mu     sync.Mutex
	fd     int
	before *unix.Termios // nil: it is as it was
}

func (t *rawTerminal) begin(fd int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil || t.before != nil {
		return
	}
	raw := *before
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, setTermios, &raw) == nil {
		t.fd, t.before = fd, before
	}
}

func (t *rawTerminal) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before != nil {
		_ = unix.IoctlSetTermios(t.fd, setTermios, t.before) // there is nobody to tell
		t.before = nil
	}
}
