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
	case shownMsg, answeredMsg, answeredAllMsg, listedMsg, revokedMsg, signedInMsg, levelMsg, levelChangedMsg, sandboxEndedMsg:
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
				{Kind: display.LineDanger, Mark: display.MarkAsk, Label: "DANGER: it", Text: "talks to strangers"},
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

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name string
		keys []string
		want []string
	}{
		{"enter denies", []string{"enter"}, []string{"one deny 0"}},
		{"space denies", []string{"space"}, []string{"one deny 0"}},
		{"tab and space allow", []string{"tab", "space"}, []string{"one allow-once 0"}},
		{"tab and enter do nothing", []string{"tab", "enter", "enter"}, nil},
		{"a alone does nothing", []string{"a"}, nil},
		{"a and enter do nothing", []string{"a", "enter"}, nil},
		{"a and space allow", []string{"a", "space"}, []string{"one allow-once 0"}},
		{"always begins on going back", []string{"w", "space", "space"}, nil},
		{"always and enter do nothing", []string{"w", "space", "down", "enter"}, nil},
		{"always saves the first", []string{"w", "space", "down", "space"}, []string{"one allow-always 0"}},
		{"always saves the second", []string{"tab", "tab", "space", "down", "down", "down", "space"}, []string{"one allow-always 1"}},
		{"round to Deny", []string{"tab", "tab", "tab", "enter"}, []string{"one deny 0"}},
		{"a reason", []string{"d", "n", "o", "space", "a", "x", "backspace", "enter"}, []string{"one deny 0 no a"}},
		{"a reason is left", []string{"d", "n", "o", "esc", "tab", "enter"}, nil},
		{"other keys", []string{"y", "A", "Y", "o", "0", "esc"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at(t, func(t *testing.T) {
				d := newDesk(t, question("one", "make"))
				d.press("end")
				d.reads()
				d.press(tt.keys...)
				d.answered(tt.want...)
			})
		})
	}
}

func TestKeysAreInertAtFirst(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, question("one", "make"))
		d.press("enter")
		d.sees("before you could read")
		time.Sleep(unread - time.Millisecond)
		d.press("space") // starts the half second again
		time.Sleep(unread - time.Millisecond)
		d.press("a", "enter")
		d.answered()
		d.sees("[ Deny ]")
		d.reads()
		d.press("enter")
		d.answered("one deny 0")
	})
}

func TestKeysAreInertForTheNextCall(t *testing.T) {
	at(t, func(t *testing.T) {
		one, two := question("one", "make"), question("two", "make release")
		two.CreatedMs++
		d := newDesk(t, one, two)
		d.press("end")
		d.reads()
		d.press("a", "space") // allows the first
		d.sees("Allowed once by owner (terminal)", "> 2 min", "│ make release", "[ Deny ]")
		d.press("space", "space", "enter") // a key that is held
		d.answered("one allow-once 0")
		// The same goes for a call that takes the place of one that ended elsewhere, and for one that is chosen.
		d.reads()
		delete(d.waiting, "two")
		d.waiting["three"] = question("three", "ls")
		d.tell(newsMsg{Calls: []Call{d.waiting["three"]}})
		d.press("a")
		d.tell(newsMsg{Calls: []Call{settled(two, toolward.DenyCall, "owner (console)")}})
		d.sees("Denied by owner (console): exec: make release", "│ ls", "[ Deny ]")
		d.press("space")
		d.answered("one allow-once 0")
	})
}

func TestReplacedCallIsShownAnew(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, question("one", "make"))
		d.press("end")
		d.reads()
		d.press("a")
		d.waiting["one"] = question("one", "rm -rf ~")
		d.tell(newsMsg{Calls: []Call{d.waiting["one"]}})
		d.sees("│ rm -rf ~", "[ Deny ]")
		d.press("space")
		d.answered()
	})
}

func TestNoStampNoAnswer(t *testing.T) {
	at(t, func(t *testing.T) {
		one := question("one", "make")
		d := newDesk(t)
		d.tell(newsMsg{Calls: []Call{one}}) // Show does not know it
		d.sees("cannot be answered yet", "One moment...")
		d.reads()
		d.press("enter", "d", "enter")
		d.answered()
		d.waiting["one"] = one
		d.tell(showAgainMsg(d.front.turn))
		d.reads()
		d.press("enter")
		d.answered("one deny 0")
	})
}

func TestLongCallIsReadFirst(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, question("one", strings.Repeat("echo x\n", 100)+"rm -rf /"))
		d.reads()
		d.press("a", "space")
		d.sees("Not all of this call has been on the screen", "rows 1 to")
		d.answered()
		for range 10 {
			d.press("pgdown")
		}
		d.sees("Digest 0123456789ab")
		d.press("space")
		d.answered("one allow-once 0")
	})
}

func TestNothingSavable(t *testing.T) {
	at(t, func(t *testing.T) {
		one := question("one", "make")
		one.Allowed = []toolward.Decision{toolward.AllowOnce, toolward.DenyCall}
		d := newDesk(t, one)
		d.press("end")
		d.reads()
		d.seesNot("Always...")
		d.sees("Always: nothing can be saved")
		d.press("w", "tab", "tab", "enter") // Allow once, and round to Deny
		d.answered("one deny 0")
	})
}

func TestExpiry(t *testing.T) {
	at(t, func(t *testing.T) {
		one, two := question("one", "make"), question("two", "ls")
		two.CreatedMs, two.ExpiresMs = two.CreatedMs+1, two.CreatedMs+60_000
		d := newDesk(t, one, two)
		d.sees("ends first")
		d.press("j") // the second
		time.Sleep(time.Until(time.UnixMilli(two.ExpiresMs)) + lingers - time.Millisecond)
		d.tell(tickMsg(time.Now()))
		d.sees("Queue (2)")
		time.Sleep(time.Millisecond)
		d.tell(tickMsg(time.Now()))
		d.sees("Queue (1)", "Nobody answered in time", "│ make")
		d.seesNot("ends first")
	})
}

func TestReasonOfACallThatEnds(t *testing.T) {
	at(t, func(t *testing.T) {
		one, two := question("one", "make"), question("two", "ls")
		two.CreatedMs++
		d := newDesk(t, one, two)
		d.reads()
		d.press("d")
		d.types("that is ")
		d.tell(newsMsg{Calls: []Call{settled(one, toolward.AllowOnce, "owner (console)")}})
		d.sees("Decided meanwhile: Allowed once by owner (console)")
		d.types("a bad idea")
		time.Sleep(time.Minute)
		d.press("enter", "space", "enter")
		d.answered()
		d.press("esc")
		d.sees("│ ls", "[ Deny ]")
	})
}

func TestRefusedAnswer(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, question("one", "make"))
		d.press("end")
		d.reads()
		d.fail = approval.ErrTooSoon
		d.press("a", "space")
		d.sees("Not answered: answered within half a second", "[ Deny ]", "│ make")
		d.press("space")
		d.answered("one allow-once 0")
		d.reads()
		d.press("end", "a", "space")
		d.answered("one allow-once 0", "one allow-once 0")
		d.sees("Allowed once", "Nothing waits.")
	})
}

func TestGatewayGoesAwayAndComesBack(t *testing.T) {
	at(t, func(t *testing.T) {
		one, two := question("one", "make"), question("two", "ls")
		d := newDesk(t, one)
		d.press("end")
		d.reads()
		d.tell(awayMsg{errors.New("no gateway answers at /x")})
		d.sees("THE GATEWAY DOES NOT ANSWER", "│ make")
		d.press("a", "space", "enter")
		d.answered()
		delete(d.waiting, "one")
		d.waiting["two"] = two
		d.tell(newsMsg{Sync: true, Calls: []Call{two}})
		d.sees("│ ls", "[ Deny ]")
		d.seesNot("DOES NOT ANSWER")
		d.press("enter")
		d.answered()
		d.reads()
		d.press("enter")
		d.answered("two deny 0")
	})
	at(t, func(t *testing.T) { // the same call still waits
		one := question("one", "make")
		d := newDesk(t, one)
		d.reads()
		d.tell(awayMsg{errors.New("gone")})
		d.tell(newsMsg{Sync: true, Calls: []Call{one}})
		d.sees("The gateway is back; 1 call waits.")
		d.press("enter")
		d.answered()
	})
}

func TestSignInHere(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, question("one", "make secret"))
		d.tell(signedOutMsg{ErrNotSignedIn})
		d.sees("Passphrase: ", "as it does when the gateway restarts")
		d.seesNot("make secret")
		d.press("enter")
		d.types("qad1?")
		d.seesNot("qad1")
		d.press("enter")
		d.sees("the passphrase is wrong")
		if d.retries != 0 {
			t.Error("a wrong passphrase led on")
		}
		d.types("open")
		d.press("enter")
		if want := []string{"qad1?", "open"}; !slices.Equal(d.signIns, want) || d.retries != 1 {
			t.Errorf("signed in with %q, want %q; %d retries", d.signIns, want, d.retries)
		}
		d.answered()
		d.tell(newsMsg{Sync: true, Calls: []Call{d.waiting["one"]}})
		d.sees("The gateway is back; 1 call waits.", "│ make secret")
	})
}

func TestPaste(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, question("one", "make"))
		d.press("end")
		d.reads()
		d.tell(tea.PasteMsg{Content: "a \r\n"})
		d.answered()
		d.press("d")
		d.tell(tea.PasteMsg{Content: "no\n\x1b[31mway\u202e" + strings.Repeat("x", 600)})
		d.answered()
		d.press("enter")
		d.answered("one deny 0 no [31mway" + strings.Repeat("x", 500-len("no [31mway")))
	})
}

func TestOtherPagesAndHelpAnswerNothing(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, question("one", "make"))
		d.press("end")
		d.reads()
		for _, keys := range [][]string{{"2", "a", "space", "enter", "1"}, {"3", "space", "enter", "1"}, {"?", "space"}, {"?", "enter"}} {
			d.press(keys...)
			d.press("space") // too soon after it came back to the screen
			d.answered()
			d.reads()
		}
		d.tell(tea.WindowSizeMsg{Width: 40, Height: 10})
		d.sees("at least 60 x 16")
		d.press("enter", "space")
		d.tell(tea.WindowSizeMsg{Width: 100, Height: 30})
		d.press("enter")
		d.answered()
		d.reads()
		d.press("enter")
		d.answered("one deny 0")
	})
}

func TestLists(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t)
		d.grants = []*approval.Grant{{ID: "g1", Agent: "coder", Text: "make in the shop"}, {ID: "g2", Agent: "coder", Text: "write docs/", Uses: 3, MaxUses: 5}}
		d.press("2")
		d.sees("Denied by owner (console)", "make⟦U+001B⟧[2J", "Allowed by policy")
		d.press("3")
		d.sees("elevated", "agent:coder:main", "content from outside, 1 source", "Anomalies within a day: 2")
		d.press("4", "down")
		d.sees("used 3 ×", "or after 2 more uses", "> coder        write docs/")
		d.press("x", "n", "x", "enter", "x", "space")
		if len(d.revoked) > 0 {
			t.Errorf("revoked %v without a yes", d.revoked)
		}
		// A list that changes below the question takes the question away.
		d.press("x")
		d.sees("Revoke this grant?")
		d.grants = d.grants[:1]
		time.Sleep(listRhythm)
		d.tell(tickMsg(time.Now()))
		d.seesNot("Revoke this grant?")
		d.press("y")
		d.press("x", "y")
		if want := []string{"g1"}; !slices.Equal(d.revoked, want) {
			t.Errorf("revoked %v, want %v", d.revoked, want)
		}
		d.sees("Revoked.", "There is nothing here.")
	})
}

func TestSandboxes(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t)
		d.sandboxes = []Sandbox{
			{Name: "one", Of: "agent:coder", State: "in use", Running: true, Sessions: []string{"agent:coder:\x1b[2Jmain"}, CPU: "52 % of 2 processors", Memory: "1.3 GiB of 4 GiB", Pids: "37 of 512", Facts: []string{"network none"}},
			{Name: "stuck", Of: "shared", State: "no answer", Odd: true, CPU: "–", Memory: "–", Pids: "–", Note: "no answer"},
		}
		d.press("5")
		d.sees("[5 Sandboxes]", "agent:coder", "1.3 GiB of 4 GiB", "52 % of 2 processors", "agent:coder:⟦U+001B⟧[2Jmain", "s: stop", "x: recreate")
		d.press("s", "n", "x", "enter", "s", "space", "s", "s")
		if len(d.ended) > 0 {
			t.Errorf("ended %v without a yes", d.ended)
		}
		d.press("s")
		d.sees("Stop one?", "Files stay", "y: yes")
		d.press("y")
		d.sees("Stopped; the next call starts it again: one")
		d.press("x")
		d.sees("Remove one, so that the next call makes it anew?")
		d.press("y")
		d.press("down", "x", "y")
		d.sees("Not ended: it does not answer")
		// A list that changes below the question takes the question away.
		d.press("x")
		d.sandboxes = d.sandboxes[:1]
		time.Sleep(listRhythm)
		d.tell(tickMsg(time.Now()))
		d.seesNot("Remove stuck")
		d.press("y")
		if want := []string{"one false", "one true", "stuck true"}; !slices.Equal(d.ended, want) {
			t.Errorf("ended %v, want %v", d.ended, want)
		}
		// The pages are named as far as the screen is wide, and each has its key.
		for width, want := range map[int]string{80: "Toolward  1 Queue  2 Decisions  3 Sessions  4 Grants [5 Sandboxes]", 60: "[5 Sandboxes]"} {
			d.tell(tea.WindowSizeMsg{Width: width, Height: 24})
			d.sees(want, "? help")
		}
	})
}

// TestHostileCall: whatever a caller writes, the screen keeps its rows and columns (check looks at each), and nothing of
// the caller's stands where the console speaks.
func TestHostileCall(t *testing.T) {
	for name, command := range map[string]string{
		"escapes":      "x\x1b[2J\x1b]0;title\x07\x1b[1;1H[ Deny ]\rAllow\b\b\u009b2J",
		"bidi":         "x \u202e dlrow \u2066 \u200b\u200d zero",
		"rows of ours": "x\n[ Deny ]     Allow once\n> 2 min 0 s\nDigest 000000000000\n" + strings.Repeat("z", 78) + "Digest 1",
		"wide":         strings.Repeat("漢字かな🔥ñ", 800),
		"marks":        "x" + strings.Repeat("\u0301", 400),
		"tabs":         strings.Repeat("a\tb", 3000),
		"no text":      "\xff\xfe\xc3(",
		"one line":     strings.Repeat("y", 16<<10),
		"many lines":   strings.Repeat("\n", 8<<10) + "rm -rf /",
	} {
		t.Run(name, func(t *testing.T) {
			at(t, func(t *testing.T) {
				one := question("one", command)
				d := one.Request
				d.Agent, d.Reasons, d.Session = command, []string{command}, toolward.SessionKey(command)
				d.Outline.Lines[0].Text, d.Variables, d.Targets = command, []string{command}, []string{command}
				d.Diff, d.WorkDir, d.Proposals[0].Text, one.Client = "+"+command, command, command, command
				p := newDesk(t, one, question("two", "ls"))
				for _, size := range [][2]int{{80, 24}, {60, 16}, {200, 60}} {
					p.tell(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
					p.press("home")
					for range 8 {
						p.press("pgdown")
					}
					p.press("end")
					p.reads()
					p.press("w", "space", "down", "down", "esc", "tab")
					if n := strings.Count(p.screen(), "\n"); n != size[1]-1 {
						t.Errorf("%d rows on a screen of %v", n+1, size)
					}
				}
				for _, text := range strings.Split(p.screen(), "\n")[5:] {
					if strings.HasPrefix(text, "> ") || strings.HasPrefix(text, "Digest 0000") || strings.HasPrefix(text, "Digest 1") {
						t.Errorf("a row of ours was forged: %q", text)
					}
				}
				p.answered()
			})
		})
	}
}

func TestQueueOrder(t *testing.T) {
	var q queue
	ids := func() (out []string) {
		for _, c := range q.calls {
			out = append(out, c.ID)
		}
		return out
	}
	for i, id := range []string{"c", "b", "a"} {
		call := question(id, id)
		call.CreatedMs = int64(10 - i)
		q.put(call)
	}
	if got := ids(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("order %v", got)
	}
	again := question("b", "other")
	again.CreatedMs = 9
	q.put(again)
	if got := ids(); !slices.Equal(got, []string{"a", "b", "c"}) || q.calls[1].Request.Command != "other" {
		t.Errorf("after a replacement: %v", got)
	}
	if !q.drop("a") || q.drop("a") || q.index("b") != 0 {
		t.Errorf("after dropping: %v", ids())
	}
}

// TestFollow: the follower tries again by itself, and waits for a sign-in where there is none.
func TestFollow(t *testing.T) {
	at(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ends := []error{errors.New("gone"), errors.New("gone"), ErrNotSignedIn, errors.New("gone")}
		g := &followed{ends: ends}
		again := make(chan struct{}, 1)
		var got []string
		go follow(ctx, g, again, func(m tea.Msg) { got = append(got, fmt.Sprintf("%T", m)) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if g.calls != 3 {
			t.Errorf("followed %d times while signed out, want 3", g.calls)
		}
		again <- struct{}{}
		time.Sleep(time.Minute)
		synctest.Wait()
		if g.calls != 5 {
			t.Errorf("followed %d times in all, want 5", g.calls)
		}
		want := "tui.awayMsg tui.awayMsg tui.signedOutMsg tui.awayMsg tui.newsMsg"
		if text := strings.Join(got, " "); text != want {
			t.Errorf("told %s, want %s", text, want)
		}
	})
}

type followed struct {
	desk
	ends  []error
	calls int
}

func (f *followed) Follow(ctx context.Context, tell func(Event)) error {
	f.calls++
	if f.calls <= len(f.ends) {
		return f.ends[f.calls-1]
	}
	tell(Event{Sync: true})
	<-ctx.Done()
	return ctx.Err()
}
