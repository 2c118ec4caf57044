package builtin

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

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
	defer opened.Close() // a copy is used from here on
	if err = pty.Setsize(opened, &pty.Winsize{Rows: terminalRows, Cols: terminalCols}); err == nil {
		ours, err = pollable(opened)
	}
	if err != nil {
		_ = theirs.Close() // nobody has used it
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
		_ = unix.Close(fd) // nothing was done with it
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// cursorQueries are the questions for the place of the cursor, and what is answered: we keep no screen, so it is always
// the first place of it.
var cursorQueries = [...]struct{ question, answer string }{
	{"\x1b[6n", "\x1b[1;1R"},
	{"\x1b[?6n", "\x1b[?1;1R"},
}

// copyTerminal copies what a terminal shows, and answers when a program asks where the cursor is: some wait for it
// before they go on.
func copyTerminal(to io.Writer, terminal *os.File) {
	buf, seen := make([]byte, 32<<10), 0
	for {
		n, err := terminal.Read(buf[seen:])
		text := buf[:seen+n]
		_, _ = to.Write(text[seen:]) // a transcript takes everything
		for _, query := range cursorQueries {
			for range bytes.Count(text, []byte(query.question)) {
				// The deadline of an earlier input may be over. Without one, a program that asks and does not read
				// would keep us from showing its output.
				_ = terminal.SetWriteDeadline(time.Now().Add(inputWait)) // writing tells
				_, _ = terminal.WriteString(query.answer)                // the program may be gone
			}
		}
		if err != nil {
			return // the last process with this terminal has ended, or we closed it
		}
		seen = copy(buf, cutQuery(text))
	}
}

// cutQuery returns the end of a text that may be the beginning of a question, cut between two reads.
func cutQuery(text []byte) []byte {
	from := max(bytes.LastIndexByte(text, '\x1b'), 0)
	for _, query := range cursorQueries {
		if rest := text[from:]; len(rest) > 0 && len(rest) < len(query.question) && strings.HasPrefix(query.question, string(rest)) {
			return rest
		}
	}
	return nil
}
