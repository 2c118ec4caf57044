package gateway

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/toolward/toolward/audit"
)

// recordQueue bounds what waits to be recorded besides the calls themselves.
const recordQueue = 1024

// eventRecorder writes records of events in the order they came, without holding up whoever reports them.
type eventRecorder struct {
	mu     sync.RWMutex
	closed bool
	events chan audit.Event
	failed func(error)
	done   chan struct{}
	count  atomic.Pointer[func(audit.Event)] // told of every event, recorded or not
}

func newEventRecorder(ctx context.Context, log *audit.Log, failed func(error)) *eventRecorder {
	r := &eventRecorder{events: make(chan audit.Event, recordQueue), failed: failed, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for event := range r.events {
			if _, err := log.Append(ctx, event); err != nil {
				failed(err)
			}
		}
	}()
	return r
}

// put queues an event. Events repeat what the decision records and the approvals' own rows say; one that does not fit
// is reported, not waited for.
func (r *eventRecorder) put(event audit.Event) {
	r.counted(event)
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return
	}
	select {
	case r.events <- event:
	default:
		r.failed(errors.New("more events than can be recorded: one of type " + string(event.Type) + " is left out"))
	}
}

// counted counts an event that was recorded elsewhere.
func (r *eventRecorder) counted(event audit.Event) {
	if count := r.count.Load(); count != nil {
		(*count)(event)
	}
}

// close writes what is queued.
func (r *eventRecorder) close() {
	r.mu.Lock()
	r.closed = true
	close(r.events)
	r.mu.Unlock()
	<-r.done
}
