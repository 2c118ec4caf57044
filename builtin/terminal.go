package builtin

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

const (
	terminalRows = 40
	terminalCols = 120
	endOfInput   = 0x04 // what a terminal takes for the end of input, at the beginning of a line
)

// openTerminal opens a terminal pair: ours, and the command's end of it.
func openTerminal() (ours, theirs *os.File, err error) {
	opened, theirs, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	defer opened.Close() //nolint:errcheck // a copy is used from here on
	if err = pty.Setsize(opened, &pty.Winsize{Rows: terminalRows, Cols: terminalCols}); err == nil {
		ours, err = pollable(opened)
	}
	if err != nil {
		theirs.Close() //nolint:errcheck // nobody has used it
		return nil, nil, fmt.Errorf("set up a terminal: %w", err)
	}
	return ours, theirs, nil
}

// pollable returns a copy of a file whose reads and writes end when it is closed. The file itself was made blocking
// when its descriptor was taken.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd) //nolint:errcheck // nothing was done with it
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// copyTerminal copies what a terminal shows, and answers when a program asks where the cursor is: some wait for it
// before they go on.
func copyTerminal(to io.Writer, terminal *os.File) {
	const question, answer = "\x1b[6n", "\x1b[1;1R"
	buf, seen := make([]byte, 32<<10), 0
	for {
		n, err := terminal.Read(buf[seen:])
		text := buf[:seen+n]
		to.Write(text[seen:]) //nolint:errcheck // a transcript takes everything
		for range bytes.Count(text, []byte(question)) {
			terminal.WriteString(answer) //nolint:errcheck // the program may be gone
		}
		if err != nil {
			return // the last process with this terminal has ended, or we closed it
		}
		// The question may be cut between two reads.
		seen = 0
		for cut := len(question) - 1; cut > 0; cut-- {
			if bytes.HasSuffix(text, []byte(question[:cut])) {
				seen = copy(buf, question[:cut])
				break
			}
		}
	}
}
