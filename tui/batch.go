package tui

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// maxTwins is how many identical calls are answered at once. Each is shown and answered by itself.
const maxTwins = 100

// identical reports whether two calls are the same to the last character, in the same place and session.
func identical(a, b Call) bool {
	return a.Binding != "" && a.Binding == b.Binding && a.Request.Digest == b.Request.Digest
}

// others are the calls that wait beside the one in front and are identical to it, at most maxTwins.
func (c *console) others() []string {
	at := c.queue.index(c.front.id)
	if at < 0 {
		return nil
	}
	var ids []string
	for i, call := range c.queue.calls {
		if i != at && identical(call, c.queue.calls[at]) && len(ids) < maxTwins {
			ids = append(ids, call.ID)
		}
	}
	return ids
}

// showTwins asks for the stamps of identical calls. One that has ended, or that the gateway shows otherwise, is left out.
func showTwins(ctx patience, gateway Gateway, front Call, ids []string) (twins []twin) {
	for _, id := range ids {
		call, err := gateway.Show(ctx, id)
		if err == nil && front.valid() && call.valid() && call.ID == id && call.State == approval.StatePending && identical(call, front) {
			twins = append(twins, twin{id, call.Stamp})
		}
	}
	return twins
}

// twinNote says that identical calls wait.
func (c *console) twinNote() string {
	n := len(c.others())
	switch {
	case c.front.all:
		return fmt.Sprintf("the answer is for %d identical calls; s: for this one only", len(c.front.twins)+1)
	case n == 0:
		return ""
	case n == 1:
		return "1 identical call waits, too; s: answer both"
	}
	return fmt.Sprintf("%d identical calls wait, too; s: answer all", n)
}

// together has the next answer count for all identical calls, or for the one in front only. Either way it begins anew: the
// focus is on Deny, and the half second starts again.
func (c *console) together() tea.Cmd {
	f := &c.front
	if !f.all && len(c.others()) == 0 {
		c.say("", "No identical call waits.")
		return nil
	}
	f.all, f.twins = !f.all, nil
	f.focus, f.stamp = buttonDeny, ""
	return c.show()
}

// answerAll gives the calls that were shown together one answer, each by itself.
func (c *console) answerAll(a Answer) tea.Cmd {
	turn := c.front.turn
	calls := append([]twin{{c.front.id, a.Stamp}}, c.front.twins...)
	return c.ask(func(ctx patience) tea.Msg {
		m := answeredAllMsg{turn: turn, of: len(calls)}
		for _, one := range calls {
			a.Stamp = one.stamp
			call, err := c.gateway.Answer(ctx, one.id, a)
			switch {
			case err != nil:
				m.err = err
			case call.Record != nil:
				m.calls = append(m.calls, call)
			}
		}
		return m
	})
}

// answeredAllMsg is what became of calls that were answered together.
type answeredAllMsg struct {
	turn, of int
	calls    []Call // those that were decided
	err      error  // of the last that was not
}

func (c *console) answeredAll(m answeredAllMsg) tea.Cmd {
	at := c.queue.index(c.front.id)
	title := ""
	for _, call := range m.calls {
		if call = c.completed(call); call.valid() {
			title = call.Request.Title
		}
		c.queue.drop(call.ID)
	}
	switch {
	case len(m.calls) == 0 && m.err != nil:
		c.say(red, "Not answered: "+m.err.Error())
	case len(m.calls) < m.of:
		c.say(red, fmt.Sprintf("%d of %d identical calls answered; the others were not", len(m.calls), m.of))
		if m.err != nil {
			c.say(red, c.said.text+": "+m.err.Error())
		}
	default:
		color := green
		if m.calls[0].Decision == toolward.DenyCall {
			color = red
		}
		c.say(color, time.Now().Format("15:04:05")+fmt.Sprintf("  %d identical calls: ", m.of)+m.calls[0].Said+": "+title)
	}
	if m.turn == c.front.turn && c.queue.index(c.front.id) >= 0 {
		return c.bring(c.front.id) // with a new stamp, and for itself only
	}
	return c.settle(at, "It is not waiting any more")
}
