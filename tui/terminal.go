package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/toolward/toolward/identity"
)

// Terminal is where a person reads and types.
type Terminal struct {
	in     io.Reader
	out    io.Writer
	secret func() (string, error) // reads a line without showing it
	forget func()                 // throws away what was typed and not read yet
	width  func() int             // columns
	color  bool
}

// ErrNoTerminal means that nobody can type here: the input or the output is a file, a pipe or a service manager.
var ErrNoTerminal = errors.New("this is no terminal")

// errSkipped is a person's wish not to answer in this terminal.
var errSkipped = errors.New("not signed in here")

// NewTerminal takes the terminal that in and out are connected to, or fails with ErrNoTerminal.
func NewTerminal(in, out *os.File) (*Terminal, error) {
	fd := int(in.Fd())
	if !term.IsTerminal(fd) || !term.IsTerminal(int(out.Fd())) {
		return nil, ErrNoTerminal
	}
	return &Terminal{
		in: in, out: out, forget: func() { flushInput(fd) }, color: os.Getenv("NO_COLOR") == "",
		width: func() int {
			if columns, _, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 {
				return columns
			}
			return 80
		},
		secret: func() (string, error) {
			text, err := term.ReadPassword(fd)
			return string(text), err
		},
	}, nil
}

const signInTries = 3

// SignIn asks for the passphrase in this terminal; at the first start it asks for a new one. An empty line means
// that nobody wants to answer here: signedIn is false then, and there is no error.
func (t *Terminal) SignIn(ctx context.Context, people *identity.Keeper) (by identity.Authority, signedIn bool, err error) {
	for range signInTries {
		by, err = t.signInOnce(ctx, people)
		switch {
		case err == nil:
			t.printf("Signed in. Waiting calls appear here; type ? for help.\n\n")
			return by, true, nil
		case errors.Is(err, errSkipped):
			t.printf("Nobody answers in this terminal. Use the console, or toolward login in another terminal.\n\n")
			return identity.Authority{}, false, nil
		case errors.Is(err, io.EOF) || ctx.Err() != nil:
			return identity.Authority{}, false, err
		}
		t.printf("%s.\n", err)
	}
	return identity.Authority{}, false, fmt.Errorf("sign in at this terminal: %w", err)
}

func (t *Terminal) signInOnce(ctx context.Context, people *identity.Keeper) (identity.Authority, error) {
	passphrase := ""
	var err error
	if people.NeedsSetup() {
		if passphrase, err = t.newPassphrase(); err != nil {
			return identity.Authority{}, err
		}
		// Whoever types here sees the code that is printed here.
		if err := people.SetUp(ctx, string(identity.Foreground), people.SetupCode(), passphrase); err != nil {
			return identity.Authority{}, err
		}
	} else if passphrase, err = t.ask("Passphrase, to answer calls in this terminal (empty: not here): "); err != nil {
		return identity.Authority{}, err
	}
	return people.SignInForeground(ctx, passphrase)
}

func (t *Terminal) newPassphrase() (string, error) {
	passphrase, err := t.ask("Choose a passphrase for answering calls (empty: in the console): ")
	if err != nil {
		return "", err
	}
	again, err := t.ask("The same again: ")
	if err != nil {
		return "", err
	}
	if passphrase != again {
		return "", errors.New("the two differ")
	}
	return passphrase, nil
}

// ask reads a secret. An empty one is errSkipped.
func (t *Terminal) ask(prompt string) (string, error) {
	t.printf("%s", prompt)
	text, err := t.secret()
	t.printf("\n")
	switch {
	case err != nil:
		return "", err
	case strings.TrimSpace(text) == "":
		return "", errSkipped
	}
	return text, nil
}

// printf writes to the terminal. A terminal that is gone is found when nothing can be read from it any more.
func (t *Terminal) printf(format string, args ...any) { fmt.Fprintf(t.out, format, args...) }

// longestLine is the longest line that is read, in bytes; an answer with its reason is far shorter.
const longestLine = 8 << 10

// lines reads what is typed, line by line, until the input ends. Its goroutine waits in a read that nothing can
// interrupt, so it may outlive ctx until the next line or the end of the process.
func (t *Terminal) lines(ctx context.Context) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		in := bufio.NewScanner(t.in)
		in.Buffer(make([]byte, 0, 512), longestLine)
		for in.Scan() {
			select {
			case out <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
