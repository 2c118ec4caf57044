package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

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
