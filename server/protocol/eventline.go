package protocol

import (
	"context"
	"sync"
)

// eventLine is where news waits to be broadcast. Who brings it holds locks of other parts, so it never waits.
type eventLine struct {
	mu   sync.Mutex
	jobs []func()
	lost bool
	wake chan struct{}
}

// maxNews bounds what waits. Past it news is lost; clients list anew when they see a gap in the numbers.
const maxNews = 20_000

func newEventLine() *eventLine { return &eventLine{wake: make(chan struct{}, 1)} }

// put adds a piece of news; false if it is lost.
func (l *eventLine) put(job func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.jobs) >= maxNews {
		l.lost = true
		return false
	}
	l.jobs = append(l.jobs, job)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return true
}

// run broadcasts in order until ctx ends.
func (l *eventLine) run(ctx context.Context) {
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
			return
		}
		l.mu.Lock()
		jobs := l.jobs
		l.jobs = nil
		l.mu.Unlock()
		for _, job := range jobs {
			job()
		}
	}
}

// gap reports once that news was lost since it was last asked.
func (l *eventLine) gap() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.lost
	l.lost = false
	return lost
}
