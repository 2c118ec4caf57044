package terminal

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/tui"
)

func TestTheTerminalConsoleAsksTheRunningGateway(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	g, ctx := desk{local.At(w.Home)}, t.Context()
	if _, err := g.Sessions(ctx); !errors.Is(err, tui.ErrNotSignedIn) {
		t.Errorf("who is not signed in is told %v", err)
	}
	if _, err := g.SignIn(ctx, "wrong"); err == nil {
		t.Error("a wrong passphrase signs in")
	}
	if name, err := g.SignIn(ctx, consoletest.Passphrase); err != nil || name == "" {
		t.Fatalf("signed in as %q, %v", name, err)
	}

	denied := followAndDeny(t, w, g)
	result := <-denied
	if result.Ran || result.Err == nil {
		t.Errorf("the denied call: %+v", result)
	}
	decisions, err := g.Decisions(ctx)
	if err != nil || len(decisions) != 1 || decisions[0].Allowed || decisions[0].Agent != "coder" || decisions[0].Tool != "exec" {
		t.Errorf("decisions %+v, %v", decisions, err)
	}
	if grants, err := g.Grants(ctx); err != nil || len(grants) != 0 {
		t.Errorf("grants %v, %v", grants, err)
	}
	if err := g.Revoke(ctx, "nothing"); err == nil {
		t.Error("a grant was revoked that there is not")
	}
	if err := g.EndSandbox(ctx, "nothing", true); err == nil || !strings.Contains(err.Error(), "no sandboxes") {
		t.Errorf("got %v", err)
	}
}

// followAndDeny has an agent make a call, sees it come and denies it.
func followAndDeny(t *testing.T, w *consoletest.World, g desk) <-chan consoletest.Result {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	events, followed := make(chan tui.Event, 10), make(chan error, 1)
	go func() { followed <- g.Follow(ctx, func(e tui.Event) { events <- e }) }()
	next := func() tui.Event {
		select {
		case e := <-events:
			return e
		case err := <-followed:
			t.Fatalf("following ends with %v", err)
			return tui.Event{}
		}
	}
	if first := next(); !first.Sync || len(first.Calls) != 0 {
		t.Errorf("the first event is %+v", first)
	}
	denied := w.Call("coder", "exec", map[string]any{"command": "make"})
	come := next()
	if come.Sync || len(come.Calls) != 1 || come.Calls[0].Stamp == "" {
		t.Fatalf("the second event is %+v", come)
	}
	shown, err := g.Show(ctx, come.Calls[0].ID)
	if err != nil || shown.Request.Tool != "exec" || shown.Stamp == "" {
		t.Fatalf("shown is %+v, %v", shown, err)
	}
	answer := tui.Answer{Decision: toolward.DenyCall, Reason: "not now", Stamp: shown.Stamp}
	answered, err := g.Answer(ctx, shown.ID, answer)
	if err == nil || !strings.Contains(err.Error(), "half a second") {
		t.Errorf("an answer that nobody can have thought about: %v", err)
	}
	for again := time.Tick(100 * time.Millisecond); err != nil && strings.Contains(err.Error(), "half a second"); {
		<-again
		answered, err = g.Answer(ctx, shown.ID, answer)
	}
	if err != nil || !strings.Contains(answered.Said, "not now") {
		t.Fatalf("answered: %q, %v", answered.Said, err)
	}
	stop()
	if err := <-followed; err != nil {
		t.Errorf("following ends with %v", err)
	}
	return denied
}

func TestTheTerminalConsoleRaisesAndClearsALevel(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	g, ctx := desk{local.At(w.Home)}, t.Context()
	if _, err := g.SignIn(ctx, consoletest.Passphrase); err != nil {
		t.Fatal(err)
	}
	const session = toolward.SessionKey("agent:coder:main")
	if err := g.SetLevel(ctx, session, toolward.Lockdown); err != nil {
		t.Fatal(err)
	}
	level, err := g.Level(ctx, session)
	if err != nil || level.Level != toolward.Lockdown || !strings.HasPrefix(level.Floor, "lockdown, until somebody clears it; set by ") {
		t.Errorf("raised: %+v, %v", level, err)
	}
	sessions, err := g.Sessions(ctx)
	if err != nil || len(sessions) != 1 || sessions[0].Key != session || sessions[0].Floor != level.Floor {
		t.Errorf("sessions: %+v, %v", sessions, err)
	}
	if err := g.ClearLevel(ctx, session, level.Stamp); err != nil {
		t.Fatal(err)
	}
	if level, err = g.Level(ctx, session); err != nil || level.Level != toolward.Normal || level.Floor != "" {
		t.Errorf("cleared: %+v, %v", level, err)
	}
}

// What stops the console from opening comes with what a person can do about it.
func TestTheTerminalConsoleSaysWhyItDoesNotOpen(t *testing.T) {
	for _, c := range []struct {
		name, home string
		kind       error
		hint       string
	}{
		{"no gateway", "/nonexistent", local.ErrAbsent, "toolward up"},
		{"no passphrase yet", consoletest.New(t, consoletest.Options{Fresh: true}).Home, local.ErrNotPerson, "toolward login --setup"},
		{"no terminal", consoletest.New(t, consoletest.Options{}).Home, tui.ErrNoTerminal, "toolward approvals list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Run(t.Context(), local.At(c.home), strings.NewReader(""), io.Discard)
			asked, ok := errors.AsType[*local.Error](err)
			if !ok || !errors.Is(err, c.kind) || !strings.Contains(asked.Hint, c.hint) {
				t.Errorf("got %v", err)
			}
		})
	}
}
