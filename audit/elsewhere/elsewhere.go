// Package elsewhere sends the signed ends of the record to places where nobody who can change the record can take them
// back: the log of the system, a file that can only be added to, a server.
//
// Whoever has the record's key, or an old copy of the whole home, can make a record that passes every check of its own. It
// does not pass a checkpoint that has left: "toolward audit verify --against" compares the two.
//
// No call waits for any of it. Each place has one checkpoint that waits at most, the newest: it vouches for all before.
package elsewhere

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/toolward/toolward/audit"
)

const (
	// settle is how long a checkpoint waits before it leaves. The record that it is about is on disk within 5 ms; one
	// that left earlier would call a record truncated after a loss of power.
	settle = time.Second
	// patience is how long one delivery may take.
	patience = 10 * time.Second
)

// place is where checkpoints are kept.
type place interface {
	send(ctx context.Context, line []byte) error
}

// Options are what a Keeper needs besides its settings.
type Options struct {
	// Redact removes secrets from what is said of a failure. Required.
	Redact func(string) string
	Log    *slog.Logger // required
}

// Keeper delivers checkpoints. Its methods may be called from any goroutine.
type Keeper struct {
	ways []*way
	stop context.CancelFunc
	work sync.WaitGroup
}

// way is the way to one place.
type way struct {
	Options
	name  string
	to    place
	every time.Duration
	wake  chan struct{}

	mu      sync.Mutex
	next    *audit.Seal // the newest that has not been delivered
	failing string      // why the last delivery failed; "" if it did not
}

// Open begins to deliver. The settings have passed their Check.
func Open(s Settings, o Options) *Keeper {
	ctx, stop := context.WithCancel(context.Background())
	k := &Keeper{stop: stop}
	add := func(name string, to place) {
		k.ways = append(k.ways, &way{Options: o, name: name, to: to, every: s.every(), wake: make(chan struct{}, 1)})
	}
	if s.Syslog != "" {
		add("syslog "+s.Syslog, syslog{s.Syslog})
	}
	if s.File != "" {
		add("file "+s.File, file{s.File})
	}
	if s.Webhook != "" {
		add("webhook", newWebhook(s))
	}
	for _, w := range k.ways {
		k.work.Go(func() { w.deliver(ctx) })
	}
	return k
}

// Keep takes a seal for all places. It does not block.
func (k *Keeper) Keep(s audit.Seal) {
	for _, w := range k.ways {
		w.put(s)
	}
}

// Failing says of which places the last delivery failed, and why.
func (k *Keeper) Failing() (words []string) {
	for _, w := range k.ways {
		w.mu.Lock()
		if w.failing != "" {
			words = append(words, "checkpoints of the record do not reach "+w.name+": "+w.failing)
		}
		w.mu.Unlock()
	}
	return words
}

// Close tries once more to deliver what waits, and ends. The context bounds how long.
func (k *Keeper) Close(ctx context.Context) {
	k.stop()
	k.work.Wait()
	var last sync.WaitGroup
	for _, w := range k.ways {
		last.Go(func() {
			if seal := w.take(); seal != nil {
				w.send(ctx, seal)
			}
		})
	}
	last.Wait()
}

func (w *way) put(s audit.Seal) {
	w.mu.Lock()
	w.next = &s
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *way) take() *audit.Seal {
	w.mu.Lock()
	defer w.mu.Unlock()
	seal := w.next
	w.next = nil
	return seal
}

// deliver sends what waits, again and again.
func (w *way) deliver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		if !pause(ctx, settle) {
			return
		}
		seal := w.take()
		if seal == nil {
			continue
		}
		w.send(ctx, seal)
		if !pause(ctx, w.every-settle) {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// send delivers one checkpoint. One that fails waits for the next turn, unless there is a newer one by then.
func (w *way) send(ctx context.Context, seal *audit.Seal) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := w.to.send(ctx, seal.Line())
	w.mu.Lock()
	before := w.failing
	w.failing = ""
	if err != nil {
		w.failing = w.Redact(err.Error())
		w.next = cmp.Or(w.next, seal)
	}
	after := w.failing
	w.mu.Unlock()
	switch {
	case err != nil && before == "":
		w.Log.Error("teg.checkpoints: a checkpoint of the record could not be kept elsewhere", "to", w.name, "err", after)
	case err == nil && before != "":
		w.Log.Info("teg.checkpoints: checkpoints of the record are kept elsewhere again", "to", w.name)
	}
	if err != nil {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}
