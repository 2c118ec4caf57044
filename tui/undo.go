package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward/display"
)

func undoItem(u UndoCall) item {
	what := display.Line(u.Tool + " " + u.Text)
	changed, color := "", ""
	switch u.State {
	case UndoRunning:
		changed = "it runs"
	case UndoUnknown:
		changed, color = "it was cut off: nobody knows", yellow
	default:
		changed = changeCount(max(u.Total, len(u.Changes)))
	}
	more := []string{what, "agent " + display.Line(u.Agent) + ", session " + display.Line(u.Session), "in " + display.Line(u.Workspace)}
	if u.Undoes != "" {
		more = append(more, "takes back "+display.Line(u.Undoes))
	}
	if u.State != UndoDone {
		more = append(more, "Changed: "+changed)
	}
	for _, change := range u.Changes {
		more = append(more, "  "+display.Line(change.Path+": "+change.What))
	}
	if n := u.Total - len(u.Changes); n > 0 {
		more = append(more, fmt.Sprintf("  and %d more", n))
	}
	return item{
		id: u.ID, color: color, more: append(more, "id "+display.Line(u.ID)),
		text: pad(clock(u.At), 12) + pad(changed, 12) + " " + pad(display.Line(u.Agent), 9) + " " + what,
	}
}

func changeCount(n int) string {
	if n == 1 {
		return "1 change"
	}
	return fmt.Sprintf("%d changes", n)
}

// undoKey shows the differences of the selected call, or begins to take it back, or all of its session.
func (c *console) undoKey(name string) tea.Cmd {
	l := &c.lists[pageUndo]
	at := l.at
	if at >= len(l.items) || c.link != live {
		return nil
	}
	l.scroll = 0
	call := l.items[at].id
	t := &takingBack{turn: l.turns + 1, only: name == "d"}
	l.turns, l.taking = t.turn, t
	return c.askLong(func(ctx context.Context) tea.Msg {
		m := undoKnownMsg{turn: t.turn}
		if m.call, m.err = c.gateway.UndoCall(ctx, call); m.err != nil || t.only {
			return m
		}
		m.request = TakeBack{Call: call, Everything: m.call.State != UndoDone}
		if name == "s" {
			if m.call.Session == "" {
				m.err = errors.New("this call belongs to no session")
				return m
			}
			m.request = TakeBack{Session: m.call.Session}
		}
		preview := m.request
		preview.Preview = true
		m.answer, m.err = c.gateway.TakeBack(ctx, preview)
		return m
	})
}

// undoKnownMsg is what a call changed, and what taking it back would do.
type undoKnownMsg struct {
	turn    int
	call    UndoCall
	request TakeBack
	answer  TakenBack
	err     error
}

func (c *console) undoKnown(m undoKnownMsg) tea.Cmd {
	t := c.lists[pageUndo].taking
	if t == nil || t.turn != m.turn {
		return nil
	}
	if m.err != nil {
		c.lists[pageUndo].taking = nil
		c.say(red, "It cannot be shown: "+m.err.Error())
		return nil
	}
	t.known, t.read, t.call, t.request, t.now = true, false, m.call, m.request, m.answer
	return tea.ClearScreen
}

// undoSureKey takes the answer to whether something is taken back. Any other key is a no.
func (c *console) undoSureKey(k tea.KeyPressMsg) tea.Cmd {
	l := &c.lists[pageUndo]
	t := l.taking
	page := max(1, c.belowHeight()-1)
	name := k.String()
	switch {
	case t.sent:
		return nil // nobody can call it back any more
	case name == "pgup" || name == "up":
		l.scroll = max(0, l.scroll-map[bool]int{true: page, false: 1}[name == "pgup"])
		return tea.ClearScreen
	case name == "pgdown" || name == "down" || name == "end":
		l.scroll += map[string]int{"pgdown": page, "down": 1, "end": 1 << 20}[name] // drawing keeps it inside
		return tea.ClearScreen
	}
	choice, chosen := t.choice(name)
	switch {
	case !chosen || c.link != live: // without a gateway nobody would hear it, and later it may not be meant any more
		l.taking = nil
	case !t.read:
		// What a person overwrites with one key must have been before their eyes.
		c.say(yellow, "Not all of it has been on the screen: go on with PgDn, or to its end with End.")
	default:
		t.sent = true
		return c.takeBack(t, choice)
	}
	return tea.ClearScreen
}

// takeBack does what was shown. If that is not what would be done any more, the gateway does nothing.
func (c *console) takeBack(t *takingBack, choice string) tea.Cmd {
	request := t.request
	request.Changed, request.Seen = choice, t.now.Stamp
	c.say("", "Taking back...")
	return c.askLong(func(ctx context.Context) tea.Msg {
		if request.Seen == "" {
			return tookBackMsg{t.turn, TakenBack{}, errors.New("the gateway did not say what would be done")}
		}
		answer, err := c.gateway.TakeBack(ctx, request)
		return tookBackMsg{t.turn, answer, err}
	})
}

// tookBackMsg is what became of taking back.
type tookBackMsg struct {
	turn   int
	answer TakenBack
	err    error
}

func (c *console) tookBack(m tookBackMsg) tea.Cmd {
	l := &c.lists[pageUndo]
	if l.taking != nil && l.taking.turn == m.turn {
		l.taking = nil
	}
	switch {
	case m.err != nil:
		c.say(red, "Not taken back: "+m.err.Error())
	case !m.answer.Done:
		c.say(red, "Not taken back: somebody has changed files since. Look again.")
	default:
		c.say(green, m.answer.words())
	}
	return tea.Batch(tea.ClearScreen, c.fetch(pageUndo))
}

// words say what was done.
func (t *TakenBack) words() string {
	restored, left, ids := 0, 0, []string{}
	for _, w := range t.Workspaces {
		restored, left = restored+len(w.Restored), left+len(w.Conflicts)
		if w.ID != "" {
			ids = append(ids, w.ID)
		}
	}
	text := "Taken back: " + changeCount(restored)
	if left > 0 {
		text += fmt.Sprintf("; %d changed since by somebody else", left)
	}
	if len(ids) > 0 {
		text += ". It can be taken back itself: " + strings.Join(ids, ", ")
	}
	return text
}
