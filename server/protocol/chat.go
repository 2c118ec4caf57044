package protocol

import (
	"strings"
	"time"
)

// silentToken is a reply by which an agent says nothing.
const silentToken = "NO_REPLY"

// deltaEvery is how often the text of a run is sent at most while it grows.
const deltaEvery = 150 * time.Millisecond

// ChatEvent is one step of a run, for event "chat". Each delta carries the whole text so far, so that losing one does
// no harm; the last event is never lost.
type ChatEvent struct {
	State string // delta, final, error or aborted
	Text  string
	Error string
	// StopReason is why the run ended, in the word of whoever ended it, if there is one: what the model said, or who aborted it.
	StopReason string
}

// The states of a ChatEvent.
const (
	ChatDelta   = "delta"
	ChatFinal   = "final"
	ChatFailed  = "error"
	ChatAborted = "aborted"
)

// Droppable reports whether a slow client may miss the event.
func (e ChatEvent) Droppable() bool { return e.State == ChatDelta }

// ChatRun turns what a run produces into what clients are sent. The zero value is a run that has said nothing yet. It
// is for one goroutine.
type ChatRun struct {
	text string
	last time.Time // of the last delta
	sent bool
	over bool
}

// Text takes the text so far. The first text is sent at once, then one in 150 ms at most.
func (c *ChatRun) Text(text string, now time.Time) (ChatEvent, bool) {
	if c.over {
		return ChatEvent{}, false
	}
	c.text = text
	if maybeSilent(text) || c.sent && now.Sub(c.last) < deltaEvery {
		return ChatEvent{}, false
	}
	c.last, c.sent = now, true
	return ChatEvent{State: ChatDelta, Text: text}, true
}

// maybeSilent holds back what may still become the silent token: nobody is to see half of it.
func maybeSilent(text string) bool { return strings.HasPrefix(silentToken, strings.TrimSpace(text)) }

// End ends the run; failure is "" if it went well, and stop is the reason that the model gave.
func (c *ChatRun) End(failure, stop string) (ChatEvent, bool) {
	if c.over {
		return ChatEvent{}, false
	}
	c.over = true
	switch {
	case failure != "":
		return ChatEvent{State: ChatFailed, Error: failure, StopReason: stop}, true
	case strings.TrimSpace(c.text) == silentToken:
		return ChatEvent{State: ChatFinal, StopReason: stop}, true
	}
	return ChatEvent{State: ChatFinal, Text: c.text, StopReason: stop}, true
}

// Abort ends the run because somebody stopped it; stop says who. What it still says, and that it ends, is told to nobody.
func (c *ChatRun) Abort(stop string) (ChatEvent, bool) {
	if c.over {
		return ChatEvent{}, false
	}
	c.over = true
	e := ChatEvent{State: ChatAborted, Text: c.text, StopReason: stop}
	if maybeSilent(c.text) {
		e.Text = ""
	}
	return e, true
}
