package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

// desk is a console with somebody in front of it and a gateway that keeps what it is told.
type desk struct {
	*console
	t *testing.T

	waiting map[string]Call
	shows   int
	stamps  map[string]string // of the latest showing of each call
	levels  []string          // what was done to levels
	level   SessionLevel
	answers []string
	fail    error // of the next answer
	bare    bool  // answers do not say what the call was about
	grants  []*approval.Grant
	revoked []string

	sandboxes []Sandbox
	ended     []string
	undo      []UndoCall
	would     TakenBack // what taking back would do
	taken     []string
	signIns   []string
	retries   int
}

func newDesk(t *testing.T, calls ...Call) *desk {
	d := &desk{t: t, waiting: map[string]Call{}, stamps: map[string]string{}}
	d.console = newConsole(t.Context(), d, false, func() { d.retries++ })
	d.tell(tea.WindowSizeMsg{Width: 80, Height: 24})
	for _, c := range calls {
		d.waiting[c.ID] = c
	}
	d.tell(newsMsg{Sync: true, Calls: calls})
	return d
}

// tell gives the console a message and whatever comes of it, but for ticks.
func (d *desk) tell(message tea.Msg) {
	d.t.Helper()
	_, cmd := d.Update(message)
	d.run(cmd)
	d.check()
}

func (d *desk) run(cmd tea.Cmd) {
	d.t.Helper()
	if cmd == nil {
		return
	}
	switch m := cmd().(type) {
	case nil, tickMsg, showAgainMsg, tea.QuitMsg:
	case tea.BatchMsg:
		for _, one := range m {
			d.run(one)
		}
	case shownMsg, answeredMsg, answeredAllMsg, listedMsg, revokedMsg, signedInMsg, levelMsg, levelChangedMsg, sandboxEndedMsg, undoKnownMsg, tookBackMsg:
		d.tell(m)
	}
}

// check looks at what holds for every screen.
func (d *desk) check() {
	d.t.Helper()
	list := strings.Split(d.screen(), "\n")
	if len(list) > d.height {
		d.t.Errorf("%d rows on a screen of %d", len(list), d.height)
	}
	for _, text := range list {
		// Signs that are not ours are counted as two columns, ours as the one that they take.
		if n := columns(text) - strings.Count(text, "─") - strings.Count(text, "│") - strings.Count(text, "…"); n > d.width {
			d.t.Errorf("a row of %d columns on a screen of %d: %q", n, d.width, text)
		}
		for _, r := range text {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e {
				d.t.Errorf("the screen holds %U in %q", r, text)
			}
		}
	}
}

func (d *desk) screen() string { return d.View().Content }

func (d *desk) sees(texts ...string) {
	d.t.Helper()
	for _, text := range texts {
		if !strings.Contains(d.screen(), text) {
			d.t.Errorf("the screen does not show %q:\n%s", text, d.screen())
		}
	}
}

func (d *desk) seesNot(text string) {
	d.t.Helper()
	if strings.Contains(d.screen(), text) {
		d.t.Errorf("the screen shows %q:\n%s", text, d.screen())
	}
}

// press presses keys without a pause. A word of several letters is the name of a key.
func (d *desk) press(keys ...string) {
	d.t.Helper()
	for _, key := range keys {
		d.tell(keyOf(key))
	}
}

func keyOf(name string) tea.KeyPressMsg {
	switch name {
	case "enter":
		return tea.KeyPressMsg{Code: tea.KeyEnter}
	case "tab":
		return tea.KeyPressMsg{Code: tea.KeyTab}
	case "space":
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	case "esc":
		return tea.KeyPressMsg{Code: tea.KeyEscape}
	case "down":
		return tea.KeyPressMsg{Code: tea.KeyDown}
	case "pgdown":
		return tea.KeyPressMsg{Code: tea.KeyPgDown}
	case "end":
		return tea.KeyPressMsg{Code: tea.KeyEnd}
	case "backspace":
		return tea.KeyPressMsg{Code: tea.KeyBackspace}
	}
	r := []rune(name)[0]
	return tea.KeyPressMsg{Code: r, Text: name}
}

func (d *desk) types(text string) {
	d.t.Helper()
	for _, r := range text {
		if r == ' ' {
			d.press("space")
		} else {
			d.press(string(r))
		}
	}
}

// reads lets the half second pass.
func (d *desk) reads() { time.Sleep(unread) }

func (d *desk) answered(want ...string) {
	d.t.Helper()
	if !slices.Equal(d.answers, want) {
		d.t.Errorf("answers %q, want %q", d.answers, want)
	}
}

// SignIn implements Gateway.
func (d *desk) SignIn(_ context.Context, passphrase string) (string, error) {
	d.signIns = append(d.signIns, passphrase)
	if passphrase != "open" {
		return "", errors.New("the passphrase is wrong")
	}
	return "owner (terminal)", nil
}

// Follow implements Gateway; these tests tell the news themselves.
func (d *desk) Follow(context.Context, func(Event)) error { return errors.New("not here") }

// Show implements Gateway.
func (d *desk) Show(_ context.Context, id string) (Call, error) {
	c, ok := d.waiting[id]
	if !ok {
		return Call{}, errors.New("unknown approval id")
	}
	d.shows++
	c.Stamp = fmt.Sprint("stamp ", d.shows)
	d.stamps[id] = c.Stamp
	return c, nil
}

// Answer implements Gateway.
func (d *desk) Answer(_ context.Context, id string, a Answer) (Call, error) {
	said := fmt.Sprintf("%s %s %d %s", id, a.Decision, a.Proposal, a.Reason)
	if a.Life > 0 || a.Uses > 0 {
		said += fmt.Sprintf("for %s, %d uses", a.Life, a.Uses)
	}
	d.answers = append(d.answers, strings.TrimSpace(said))
	if err := d.fail; err != nil {
		d.fail = nil
		return Call{}, err
	}
	if a.Stamp == "" || a.Stamp != d.stamps[id] {
		d.t.Errorf("%s is answered with %q, not with the stamp of its latest showing, %q", id, a.Stamp, d.stamps[id])
	}
	done := settled(d.waiting[id], a.Decision, "owner (terminal)")
	if d.bare {
		done.Request = nil
	}
	return done, nil
}

// Decisions implements Gateway.
func (d *desk) Decisions(context.Context) ([]Decision, error) {
	return []Decision{
		{Seq: 9, At: time.Now(), Agent: "coder", Tool: "exec", About: "make\x1b[2J", How: "Denied by owner (console)", Session: "agent:coder:main"},
		{Seq: 8, At: time.Now(), Allowed: true, Agent: "coder", Tool: "read", About: "a.go", How: "Allowed by policy"},
	}, nil
}

// Sessions implements Gateway.
func (d *desk) Sessions(context.Context) ([]Session, error) {
	return []Session{{
		Key: "agent:coder:main", Level: toolward.Elevated, Signals: []string{"content from outside, 1 source"},
		Reasons: []string{"it has seen content from outside"}, LastCall: "exec, deny", LastAt: time.Now(), Anomalies: 2,
	}}, nil
}

// Level implements Gateway.
func (d *desk) Level(context.Context, toolward.SessionKey) (SessionLevel, error) { return d.level, nil }

// SetLevel implements Gateway.
func (d *desk) SetLevel(_ context.Context, session toolward.SessionKey, level toolward.Level) error {
	d.levels = append(d.levels, fmt.Sprintf("%s at least %s", session, level))
	return d.failed()
}

// ClearLevel implements Gateway.
func (d *desk) ClearLevel(_ context.Context, session toolward.SessionKey, read string) error {
	d.levels = append(d.levels, fmt.Sprintf("%s cleared %q", session, read))
	return d.failed()
}

func (d *desk) failed() error {
	err := d.fail
	d.fail = nil
	return err
}

// Grants implements Gateway.
func (d *desk) Grants(context.Context) ([]*approval.Grant, error) { return d.grants, nil }

// Revoke implements Gateway.
func (d *desk) Revoke(_ context.Context, id string) error {
	d.revoked = append(d.revoked, id)
	d.grants = slices.DeleteFunc(d.grants, func(g *approval.Grant) bool { return g.ID == id })
	return nil
}

// Sandboxes implements Gateway.
func (d *desk) Sandboxes(context.Context) ([]Sandbox, error) { return d.sandboxes, nil }

// EndSandbox implements Gateway.
func (d *desk) EndSandbox(_ context.Context, name string, remove bool) error {
	d.ended = append(d.ended, fmt.Sprint(name, " ", remove))
	if name == "stuck" {
		return errors.New("it does not answer")
	}
	return nil
}

// question is a call that waits for two minutes.
func question(id, command string) Call {
	now := time.Now().UnixMilli()
	arguments, _ := json.Marshal(map[string]string{"command": command})
	return Call{Record: &approval.Record{
		ID: id, Kind: approval.KindExec, State: approval.StatePending, CreatedMs: now, ExpiresMs: now + 120_000, Binding: "0123456789abcdef0123",
		Allowed: []toolward.Decision{toolward.AllowOnce, toolward.AllowAlways, toolward.DenyCall},
		Request: &approval.Details{
			Tool: "exec", Title: string([]rune("exec: " + command)[:min(80, len([]rune(command))+6)]), Agent: "coder", Command: command, WorkDir: "/home/ada/shop", Preview: arguments,
			Severity: toolward.Warning, Digest: "of the arguments alone", Session: "agent:coder:main", Reasons: []string{"a rule asks"},
			Outline: &display.Outline{Lines: []display.OutlineLine{
				{Kind: display.LineFinding, Mark: display.MarkAsk, Label: "DANGER: it", Text: "talks to strangers"},
				{Kind: display.LineCommand, Mark: display.MarkAsk, Label: "runs", Text: "/usr/bin/make"},
			}},
			Proposals: []approval.Proposal{{Text: "this very command in this session"}, {Text: "this very command of this agent"}},
		},
	}}
}

// settled is a call with an answer.
func settled(c Call, decision toolward.Decision, by string) Call {
	r := *c.Record
	r.State, r.Decision, r.ResolvedBy = approval.StateResolved, decision, by
	word := "Allowed once by "
	if decision == toolward.DenyCall {
		word = "Denied by "
	}
	return Call{Record: &r, Said: word + by}
}

// at runs a test with a clock of its own.
func at(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
