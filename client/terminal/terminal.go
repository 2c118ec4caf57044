// Package terminal is the terminal console in front of the running gateway of this machine.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/tui"
)

// Run shows the terminal console until its user leaves it or ctx ends. It signs the terminal in by itself, if need be. Its
// errors that a person can do something about are a [*local.Error].
func Run(ctx context.Context, g *local.Gateway, stdin io.Reader, stdout io.Writer) error {
	status, err := g.Status(ctx)
	if err != nil {
		return err
	}
	if status.Setup {
		return &local.Error{
			Kind: local.ErrNotPerson, Err: errors.New("no passphrase has been set yet"),
			Hint: fmt.Sprintf("set it in the console, %s, or with: toolward login --setup CODE", status.Console),
		}
	}
	in, _ := stdin.(*os.File)
	out, _ := stdout.(*os.File)
	if in == nil || out == nil {
		return noScreen(tui.ErrNoTerminal)
	}
	return noScreen(tui.Run(ctx, in, out, desk{g}))
}

// noScreen adds what to do where there is no screen.
func noScreen(err error) error {
	if errors.Is(err, tui.ErrNoTerminal) || errors.Is(err, tui.ErrDumbTerminal) {
		return &local.Error{Err: err, Hint: "toolward approvals list, allow and deny work anywhere; so does the console in a browser"}
	}
	return err
}
