package console

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/server/api"
)

// sandboxRhythm is how often an open page is told what sandboxes use. Nobody looks while none is open.
const sandboxRhythm = 2 * time.Second

// sharedList is one list of the sandboxes for all pages that are open.
type sharedList struct {
	mu    sync.Mutex
	at    time.Time
	infos []fleet.Info
	done  chan struct{} // closed when the listing that is under way has ended; nil if none is
}

// get lists the sandboxes; a list that is not older than a moment is good enough.
func (l *sharedList) get(ctx context.Context, sandboxes api.Sandboxes, log *slog.Logger) []fleet.Info {
	l.mu.Lock()
	if time.Since(l.at) >= sandboxRhythm/2 && l.done == nil {
		l.done = make(chan struct{})
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), api.SandboxPatience)
			defer cancel()
			infos, err := sandboxes.List(ctx)
			if err != nil {
				log.Debug("sandboxes were not all found", "err", err) // the page says so when it is loaded
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.infos, l.at = infos, time.Now()
			close(l.done)
			l.done = nil
		}()
	}
	done := l.done
	l.mu.Unlock()
	if done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.infos)
}
