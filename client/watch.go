package client

import (
	"context"
	"encoding/json"
)

// Event is news from the gateway.
type Event struct {
	Name     string          // as the protocol calls it, or one of the constants below
	Payload  json.RawMessage // as the protocol has it; nil with Missed
	Approval *Approval       // of Requested and Resolved
}

// Names of events. All others have the names and payloads of docs/protocol.md; ticks, and the older names of what Requested and
// Resolved tell, are left out.
const (
	Requested = "approval.requested"
	Resolved  = "approval.resolved"
	Missed    = "missed" // events were lost: list anew what waits
)

// watcher is one caller of Watch. Only whoever holds the client's lock sends.
type watcher struct{ news chan Event }

const eventBuffer = 256

// Watch delivers the events of the connection's scopes until ctx or the client ends; then the channel is closed. A program
// that does not keep up loses events and is told so, as after a connection that broke: with Missed, list anew.
func (c *Client) Watch(ctx context.Context) <-chan Event {
	w := &watcher{make(chan Event, eventBuffer)}
	if c == nil || c.ended == nil {
		close(w.news)
		return w.news
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers == nil {
		close(w.news)
		return w.news
	}
	c.watchers[w] = struct{}{}
	context.AfterFunc(ctx, func() { c.leave(w) })
	return w.news
}

func (c *Client) leave(w *watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, here := c.watchers[w]; here {
		delete(c.watchers, w)
		close(w.news)
	}
}

func (c *Client) closeWatchers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		close(w.news)
	}
	c.watchers = nil
}

// ignored are events that tell a program nothing new.
var ignored = map[string]bool{
	"connect.challenge": true, "tick": true, "exec.approval.requested": true, "exec.approval.resolved": true,
}

// tell passes an event on. It never waits for anybody.
func (c *Client) tell(name string, payload json.RawMessage) {
	if ignored[name] {
		return
	}
	event := Event{Name: name, Payload: payload}
	if name == Requested || name == Resolved {
		event.Approval = new(Approval)
		if json.Unmarshal(payload, event.Approval) != nil {
			c.missed() // the list shows what this was about
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		w.offer(event)
	}
}

// missed says that events did not come.
func (c *Client) missed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		w.offer(Event{Name: Missed})
	}
}

// offer never waits. The last place is for Missed: whoever reads that far lists anew, and so learns what came after it.
func (w *watcher) offer(e Event) {
	switch cap(w.news) - len(w.news) {
	case 0:
		return
	case 1:
		e = Event{Name: Missed}
	}
	w.news <- e
}
