package tui

import (
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

func (c *console) shown(m shownMsg) tea.Cmd {
	f := &c.front
	if m.turn != f.turn || f.id == "" {
		return nil
	}
	switch {
	case m.err != nil:
		c.say(red, "This call cannot be answered yet: "+m.err.Error())
		return tea.Tick(time.Second, func(time.Time) tea.Msg { return showAgainMsg(m.turn) })
	case !m.call.valid() || m.call.ID != f.id:
		c.say(red, "This call cannot be answered: the gateway shows another.")
		return nil
	case m.call.State != approval.StatePending:
		return c.resolved(m.call)
	}
	// What the stamp is for is what the person reads.
	c.queue.put(m.call)
	f.stamp, f.wakes, f.twins = m.call.Stamp, time.Now().Add(unread), m.twins
	if f.all = f.all && len(f.twins) > 0; f.all && f.focus == buttonAlways {
		f.focus = buttonDeny
	}
	c.lay()
	return c.redraw(wide(f.rows))
}

// frontKey acts on a key while a call is in front.
func (c *console) frontKey(k tea.KeyPressMsg) tea.Cmd {
	switch c.front.mode {
	case reasoning:
		return c.reasonKey(k)
	case keeping:
		return c.savingKey(k)
	}
	switch key := k.String(); key {
	case "j", "k":
		return c.step(key == "j")
	case "up":
		return c.scrolled(-1)
	case "down":
		return c.scrolled(1)
	case "pgup", "b":
		return c.scrolled(1 - c.bodyHeight())
	case "pgdown", "f":
		return c.scrolled(c.bodyHeight() - 1)
	case "home":
		return c.scrolled(-len(c.front.rows))
	case "end":
		return c.scrolled(len(c.front.rows))
	}
	return c.answerKey(k)
}

func (c *console) scrolled(by int) tea.Cmd {
	c.scroll(by)
	return c.redraw(wide(c.front.rows))
}

// step brings the next or the previous call of the queue in front.
func (c *console) step(forward bool) tea.Cmd {
	at := c.queue.index(c.front.id)
	if forward {
		at++
	} else {
		at--
	}
	if at < 0 || at >= len(c.queue.calls) {
		return nil
	}
	return c.bring(c.queue.calls[at].ID)
}

// answerKey acts on the keys that lead to an answer. Enter denies or does nothing: it never allows.
func (c *console) answerKey(k tea.KeyPressMsg) tea.Cmd {
	f := &c.front
	switch k.String() {
	case "tab", "right", "shift+tab", "left", "a", "w", "d", "s", "space", "enter":
	default:
		return nil
	}
	if !c.awake() {
		return nil
	}
	switch k.String() {
	case "tab", "right":
		f.focus = c.next(1)
	case "shift+tab", "left":
		f.focus = c.next(buttons - 1)
	case "a":
		f.focus = buttonOnce
	case "w":
		if c.offersAlways() {
			f.focus = buttonAlways
		} else {
			c.say("", "Nothing can be saved here.")
		}
	case "d":
		f.mode = reasoning
	case "s":
		return c.together()
	case "enter":
		if f.focus == buttonDeny {
			return c.answer(Answer{Decision: toolward.DenyCall})
		}
		c.say("", "Enter never allows: press the space bar.")
	case "space":
		return c.press()
	}
	return nil
}

// next is the button so many places on, without those that are not offered.
func (c *console) next(by button) button {
	next := (c.front.focus + by) % buttons
	if next == buttonAlways && !c.offersAlways() {
		next = (next + by) % buttons
	}
	return next
}

// offersAlways reports whether the answer can be kept. One answer for several calls is for these calls only.
func (c *console) offersAlways() bool {
	at := c.queue.index(c.front.id)
	if at < 0 || c.front.all {
		return false
	}
	call := c.queue.calls[at]
	return call.Offers(toolward.AllowAlways) && len(call.Request.Proposals) > 0
}

// press presses the button that has the focus.
func (c *console) press() tea.Cmd {
	switch c.front.focus {
	case buttonDeny:
		return c.answer(Answer{Decision: toolward.DenyCall})
	case buttonOnce:
		if !c.wasRead() {
			return nil
		}
		return c.answer(Answer{Decision: toolward.AllowOnce})
	}
	if c.wasRead() {
		c.front.mode, c.front.saving = keeping, saving{}
	}
	return nil
}

// wasRead reports whether the end of the call was on the screen, and tells the person if it was not. It stops a long
// command from hiding below the edge what it does last.
func (c *console) wasRead() bool {
	if !c.front.read {
		c.say(yellow, "Not all of this call has been on the screen: go on with PgDn, or to its end with End.")
	}
	return c.front.read
}

// awake reports whether answers count now. Each key that would have answered starts the half second anew.
func (c *console) awake() bool {
	f, now := &c.front, time.Now()
	switch {
	case f.sent:
		return false
	case c.link != live:
		c.say(red, "The gateway does not answer, so nobody can answer it.")
		return false
	case f.stamp == "" || now.Before(f.wakes):
		f.wakes = now.Add(unread)
		c.say(yellow, "That was typed before you could read this call. Read it, then answer.")
		return false
	}
	return true
}

// reasonKey types the reason of a denial. While it is open, no other call takes its place: what is typed for one call
// never reaches another.
func (c *console) reasonKey(k tea.KeyPressMsg) tea.Cmd {
	f := &c.front
	switch k.String() {
	case "esc":
		f.mode, f.reason.text = choosing, ""
		if f.gone != "" {
			return c.advance()
		}
	case "enter":
		if f.gone != "" {
			return nil // it must be left with Esc, which nobody types in a sentence
		}
		if !c.awake() {
			return nil
		}
		return c.answer(Answer{Decision: toolward.DenyCall, Reason: f.reason.text})
	default:
		f.reason.key(k)
	}
	return nil
}

// answer sends an answer to the call in front.
func (c *console) answer(a Answer) tea.Cmd {
	f := &c.front
	f.sent, a.Stamp = true, f.stamp
	if f.all {
		return c.answerAll(a)
	}
	id, turn := f.id, f.turn
	return c.ask(func(ctx patience) tea.Msg {
		call, err := c.gateway.Answer(ctx, id, a)
		return answeredMsg{turn, call, err}
	})
}

// completed adds what a call that waits is about to an answer that does not repeat it.
func (c *console) completed(call Call) Call {
	if call.Record == nil || call.Request != nil {
		return call
	}
	if at := c.queue.index(call.ID); at >= 0 {
		call.Request = c.queue.calls[at].Request
	}
	return call
}

// answeredMsg is what the gateway said to an answer.
type answeredMsg struct {
	turn int
	call Call
	err  error
}

func (c *console) answered(m answeredMsg) tea.Cmd {
	m.call = c.completed(m.call)
	if m.err == nil && m.call.valid() {
		return c.resolved(m.call)
	}
	if m.err == nil {
		m.err = errors.New("the gateway does not say what became of it")
	}
	if m.turn != c.front.turn {
		return nil
	}
	c.say(red, "Not answered: "+m.err.Error())
	if c.queue.index(c.front.id) < 0 {
		return c.bringAt(0)
	}
	return c.bring(c.front.id) // with a new stamp, and the focus on Deny
}
