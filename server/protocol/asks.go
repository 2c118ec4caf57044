package protocol

import (
	"sync"
	"time"

	"github.com/toolward/toolward/approval"
)

// asks are the questions that connections have put to people, so that a flood of them is stopped and one whose asker
// has gone for good ends.
type asks struct {
	server *Server
	mu     sync.Mutex
	open   map[string]*ask // by approval id
	closed bool
}

type ask struct {
	connection, device string
	timer              *time.Timer // runs while its asker is away
}

const (
	maxAsks    = 32               // questions of one asker that wait
	askerAway  = 30 * time.Second // for an asker to come back
	longestAsk = 7 * 24 * time.Hour
)

func newAsks(s *Server) *asks { return &asks{server: s, open: map[string]*ask{}} }

// begin counts a question before it is put; false if its asker has too many.
func (a *asks) begin(id string, c *conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, other := range a.open {
		if other.connection == c.id || c.admitted.deviceID != "" && other.device == c.admitted.deviceID {
			n++
		}
	}
	if n >= maxAsks || a.closed || a.open[id] != nil {
		return false
	}
	a.open[id] = &ask{connection: c.id, device: c.admitted.deviceID}
	return true
}

// adopt counts a question that was put before the gateway started again, and whose asker has come back: it ends like any
// other if the asker leaves.
func (a *asks) adopt(id string, c *conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.open[id] != nil {
		return
	}
	a.open[id] = &ask{connection: c.id, device: c.admitted.deviceID}
	a.server.busy.Go(func() {
		_, _ = a.server.approvals.Wait(a.server.ctx, id) // however it ends
		a.end(id)
	})
}

func (a *asks) end(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.open[id]; q != nil && q.timer != nil {
		q.timer.Stop()
	}
	delete(a.open, id)
}

// left gives the asker of open questions some time to come back.
func (a *asks) left(c *conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, q := range a.open {
		asked := q.connection == c.id || c.admitted != nil && q.device != "" && q.device == c.admitted.deviceID
		if !asked || q.timer != nil || a.closed {
			continue
		}
		q.timer = time.AfterFunc(askerAway, func() {
			a.mu.Lock()
			q.timer = nil // it may leave again
			a.mu.Unlock()
			if !a.server.hasDevice(q.device) {
				a.server.approvals.Expire(id, approval.ByRequesterGone)
			}
		})
	}
}

// close leaves all questions as they are: they outlive the gateway.
func (a *asks) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, q := range a.open {
		if q.timer != nil {
			q.timer.Stop()
		}
	}
}
