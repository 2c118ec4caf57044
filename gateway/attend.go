package gateway

import (
	"context"
	"errors"
	"os"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/tui"
)

// URL is where the console is; "" without doors.
func (g *Gateway) URL() string {
	if g.server == nil {
		return ""
	}
	return g.server.URL()
}

// SetupCode is what the first passphrase is set with; "" once there is one.
func (g *Gateway) SetupCode() string { return g.people.SetupCode() }

// SandboxesByDefault reports whether sessions are sandboxed on this machine unless the configuration says otherwise.
func (g *Gateway) SandboxesByDefault() bool { return g.machine.Mode == settings.ModeNonMain }

// EnterPassphrase sets the passphrase at the first start; later it must be the one that was set.
func (g *Gateway) EnterPassphrase(ctx context.Context, secret string) error {
	if g.people.NeedsSetup() {
		return g.people.SetUp(ctx, "standard input", g.people.SetupCode(), secret)
	}
	_, err := g.people.SignInForeground(ctx, secret)
	return err
}

// Attendant signs the person in who sits at a terminal; attend then shows waiting calls there and takes answers. It is nil
// if nobody has signed in. Answering here needs the passphrase like anywhere else: an agent could start a gateway of its own
// on a terminal of its own.
func (g *Gateway) Attendant(ctx context.Context, in, out *os.File) (attend func(), err error) {
	terminal, err := tui.NewTerminal(in, out)
	if errors.Is(err, tui.ErrNoTerminal) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	person, signedIn, err := terminal.SignIn(ctx, g.people)
	if err != nil || !signedIn {
		return nil, err
	}
	return func() {
		if err := terminal.Attend(ctx, g.approver, person); err != nil && ctx.Err() == nil {
			g.log.Error("this terminal takes no more answers; use the console", "err", err)
		}
	}, nil
}
