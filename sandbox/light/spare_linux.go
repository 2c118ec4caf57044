package light

import (
	"context"
	"time"
)

// idleLife is how long a box waits that nobody needs.
const idleLife = 2 * time.Minute

// take gives a box that has no setup yet: one that was made before, or a new one. The next is made meanwhile, because
// making namespaces and starting a program takes most of the time.
func (l *Light) take(ctx context.Context, mode Mode) (*box, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, ErrClosed
	}
	b := l.spare
	l.spare = nil
	if !l.making {
		l.making = true
		go l.refill(mode)
	}
	l.mu.Unlock()
	if b != nil && b.alive() {
		return b, nil
	}
	if b != nil {
		b.End()
	}
	return l.newBox(ctx, mode)
}

// refill makes a box for the next job.
func (l *Light) refill(mode Mode) {
	b, err := l.newBox(context.Background(), mode)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.making = false
	switch {
	case err != nil:
		l.log.Warn("no confinement waits for the next command", "err", err)
		return
	case l.closed || l.spare != nil:
		go b.End()
		return
	}
	l.spare = b
	if l.idle != nil {
		l.idle.Stop()
	}
	l.idle = time.AfterFunc(idleLife, func() { l.drop(b) })
}

// drop ends a spare that nobody needed.
func (l *Light) drop(b *box) {
	l.mu.Lock()
	mine := l.spare == b
	if mine {
		l.spare = nil
	}
	l.mu.Unlock()
	if mine {
		b.End()
	}
}
