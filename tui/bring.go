package tui

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward/display"
)

// bring puts a call in front; "" puts none. Whatever was begun for another call is forgotten. Its stamp is asked for,
// and until it has come and was there for half a second, nothing answers.
func (c *console) bring(id string) tea.Cmd {
	uneven := wide(c.front.rows)
	if c.said.color == yellow {
		c.said = row{} // advice for the call that was in front
	}
	c.front = front{id: id, turn: c.front.turn + 1, reason: line{most: longestReason}}
	c.lay()
	return tea.Batch(c.redraw(uneven), c.show())
}

// show asks for the call anew, with a stamp.
func (c *console) show() tea.Cmd {
	id, turn := c.front.id, c.front.turn
	if id == "" || !c.answerable() {
		return nil
	}
	var others []string
	if c.front.all {
		others = c.others()
	}
	return c.ask(func(ctx patience) tea.Msg {
		call, err := c.gateway.Show(ctx, id)
		if err != nil {
			return shownMsg{turn: turn, err: err}
		}
		return shownMsg{turn: turn, call: call, twins: showTwins(ctx, c.gateway, call, others)}
	})
}

// answerable reports whether the call in front is on the screen and the gateway is there.
func (c *console) answerable() bool {
	return c.link == live && c.page == pageQueue && !c.help && !c.tooSmall()
}

// shownMsg is the answer to show.
type shownMsg struct {
	turn  int
	call  Call
	twins []twin
	err   error
}

// showAgainMsg tries once more to get the stamp of a showing.
type showAgainMsg int

// lay makes the rows of the call in front for the width of the screen.
func (c *console) lay() {
	f := &c.front
	at := c.queue.index(f.id)
	if at < 0 || c.tooSmall() {
		f.rows = nil
		return
	}
	f.rows = rowsOf(c.queue.calls[at].View(), c.width)
	c.scroll(0)
}

// scroll moves the call in front by so many rows.
func (c *console) scroll(by int) {
	f := &c.front
	height := c.bodyHeight()
	f.offset = max(0, min(f.offset+by, len(f.rows)-height))
	f.read = f.read || f.offset+height >= len(f.rows)
}

// sync begins anew with what waits: at the start, after the gateway was away, and after events were lost.
func (c *console) sync(calls []Call) tea.Cmd {
	at := c.queue.index(c.front.id)
	before := c.link
	c.queue.sync(calls)
	c.link = live
	if before == away || before == signedOut && c.wasLive {
		c.say(green, "The gateway is back; "+waiting(len(calls))+".")
	}
	c.wasLive = true
	if before != live { // stamps of another run of the gateway count for nothing
		c.front.stamp = ""
	}
	switch {
	case c.queue.index(c.front.id) < 0:
		return c.settle(at, "It is not waiting any more")
	case c.front.mode == reasoning:
		return c.show() // what was typed stays
	}
	return c.bring(c.front.id)
}

func waiting(n int) string {
	switch n {
	case 0:
		return "nothing waits"
	case 1:
		return "1 call waits"
	}
	return fmt.Sprintf("%d calls wait", n)
}

// arrived takes in a call that has just come, or that has changed.
func (c *console) arrived(call Call) tea.Cmd {
	c.queue.put(call)
	if c.front.id == "" || c.front.id == call.ID {
		return c.bring(call.ID)
	}
	return nil
}

// resolved takes in what became of a call.
func (c *console) resolved(call Call) tea.Cmd {
	at := c.queue.index(c.front.id)
	if !c.queue.drop(call.ID) && call.ID != c.front.id {
		return nil
	}
	color := red
	if call.Decision.Allows() {
		color = green
	}
	c.say(color, time.Now().Format("15:04:05")+"  "+call.Said+": "+call.Request.Title)
	return c.settle(at, call.Said)
}

// settle has a call in front that waits; at is where the one in front was. One for which a reason is being typed stays
// until the person leaves it.
func (c *console) settle(at int, said string) tea.Cmd {
	switch {
	case c.front.id != "" && c.queue.index(c.front.id) >= 0:
		return nil
	case c.front.mode == reasoning && !c.front.sent:
		c.front.gone = display.Line(said)
		return nil
	}
	return c.bringAt(at)
}

// advance goes on after a call that was decided while its reason was being typed.
func (c *console) advance() tea.Cmd { return c.bringAt(0) }

func (c *console) bringAt(at int) tea.Cmd {
	if len(c.queue.calls) == 0 {
		return c.bring("")
	}
	return c.bring(c.queue.calls[max(0, min(at, len(c.queue.calls)-1))].ID)
}
