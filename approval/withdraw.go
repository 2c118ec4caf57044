package approval

import (
	"context"
	"errors"
	"time"
)

// Withdraw takes back a question that was left pending (toolward.Call.Detach) for a caller that has gone or given
// up, unless another call waits for the same answer. It stops a question without an asker from being approved and
// then picked up by somebody else. An approval that is settled or unknown is no error.
func (m *Manager) Withdraw(_ context.Context, id string, cause error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	if e == nil || m.closed {
		return nil
	}
	e.record.Detached = false
	canceled := errors.Is(cause, ErrCanceled)
	if e.askers > 0 || e.phase != pending || e.claimed || e.lasting && !canceled {
		return nil
	}
	by := ByRequesterGone
	if canceled {
		by = ByCanceled
	}
	m.end(e, by, time.Now())
	return nil
}
