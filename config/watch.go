package config

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward/display"
)

// Live is the configuration in force, and the one that waits for a person.
type Live struct {
	path   string
	checks []Check
	apply  func(*Loaded) error
	memory Memory
	notify func(Event)
	// unchanging says that no file is behind it.
	unchanging bool

	mu      sync.Mutex // one change at a time
	current atomic.Pointer[Loaded]
	pending atomic.Pointer[Loaded]
}

// Event says what became of a changed file.
type Event struct {
	Pending *Loaded  // a sound file waits for a person
	Applied *Loaded  // a file is in force now
	Restart []string // with Applied: changed settings that count from the next start only
	Err     error    // the file is wrong; the old configuration stays
}

// Options of a Live configuration.
type Options struct {
	// Apply puts a configuration in force, or leaves everything as it is and says why not. Required.
	Apply func(*Loaded) error
	// Memory remembers what was last in force. Required.
	Memory Memory
	// Notify hears of every change. Optional.
	Notify func(Event)
	Checks []Check
	// Source is in force in the place of the file, which is not read; the configuration then never changes. Optional.
	Source []byte
}

// Open puts the configuration in force that [InForce] names. It fails when the file is wrong: a gateway must not
// start on a guess.
func Open(ctx context.Context, path string, o Options) (*Live, error) {
	if o.Apply == nil || o.Memory == nil {
		return nil, errors.New("configuration: nothing would apply or remember it")
	}
	if o.Notify == nil {
		o.Notify = func(Event) {}
	}
	l := &Live{path: path, checks: o.Checks, apply: o.Apply, memory: o.Memory, notify: o.Notify}
	if o.Source != nil {
		return l.fixed(o.Source)
	}
	force, pending, err := InForce(ctx, path, o.Memory, o.Checks...)
	if err != nil {
		return nil, err
	}
	if err := l.apply(force); err != nil {
		return nil, fmt.Errorf("apply configuration: %w", err)
	}
	if err := l.memory.RememberApplied(ctx, force.Source); err != nil && !errors.Is(err, ErrNotKept) {
		return nil, fmt.Errorf("remember configuration: %w", err)
	}
	l.current.Store(force)
	if pending != nil {
		l.pending.Store(pending)
		l.notify(Event{Pending: pending})
	}
	return l, nil
}

// fixed puts a configuration in force for good. Memory is left alone: the file that was last in force still is, for the
// next who opens it.
func (l *Live) fixed(source []byte) (*Live, error) {
	loaded, err := Parse(l.path, source, l.checks...)
	if err != nil {
		return nil, err
	}
	if err := l.apply(loaded); err != nil {
		return nil, fmt.Errorf("apply configuration: %w", err)
	}
	l.current.Store(loaded)
	l.unchanging = true
	return l, nil
}

// Remember remembers the configuration in force, if it could not be before.
func (l *Live) Remember() error {
	if l.unchanging {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.memory.RememberApplied(context.Background(), l.Current().Source)
}

// Current is the configuration in force; never nil.
func (l *Live) Current() *Loaded { return l.current.Load() }

// Pending is the changed file that waits for a person, or nil.
func (l *Live) Pending() *Loaded { return l.pending.Load() }

// Bounds of what people are shown of a change. Every screen shows that much.
const (
	maxDifference = 64 << 10 // bytes
	maxShownLines = 2000
)

// Difference is what a loaded file would change in the one in force, as a unified difference of at most 64 KiB.
func (l *Live) Difference(to *Loaded) string { return l.difference(to).String() }

func (l *Live) difference(to *Loaded) *display.Diff {
	diff := display.NewDiff(maxDifference)
	name := filepath.Base(l.path)
	diff.File("in force/"+name, "changed/"+name, string(l.Current().Source), string(to.Source))
	return diff
}

// Reload looks at the file. A sound change waits for a person (or is applied, with config.autoApply in the
// configuration that is in force: the new file cannot permit itself). A wrong file changes nothing.
func (l *Live) Reload() {
	if l.unchanging {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	loaded, err := Own(l.path, l.checks...)
	switch {
	case err != nil:
		l.pending.Store(nil)
		l.notify(Event{Err: err})
	case loaded.Hash == l.Current().Hash:
		l.pending.Store(nil)
	case l.Current().File.Config.AutoApply:
		_ = l.put(loaded)
	case l.pending.Load() == nil || l.pending.Load().Hash != loaded.Hash:
		l.pending.Store(loaded)
		l.notify(Event{Pending: loaded})
	}
}

// ErrNotPending is returned when the configuration that a person approved is not the one that waits (any more).
var ErrNotPending = errors.New("the configuration file has changed since it was shown: look at the difference again")

// ErrTooLong is returned for a change that nobody can have seen as a whole.
var ErrTooLong = errors.New("the difference is too long to be shown whole: change the file in smaller steps")

// ApplyPending puts the waiting configuration in force if it is still the one with this hash. What was shown is
// what is applied: the file is not read again, and a change that could only be shown in part, with the rest behind a
// long comment, is not applied.
func (l *Live) ApplyPending(hash string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.pending.Load()
	if waiting == nil || waiting.Hash != hash {
		return ErrNotPending
	}
	if diff := l.difference(waiting); !diff.Whole() || strings.Count(diff.String(), "\n") > maxShownLines {
		return ErrTooLong
	}
	return l.put(waiting)
}

func (l *Live) put(loaded *Loaded) error {
	if err := l.apply(loaded); err != nil {
		l.notify(Event{Err: fmt.Errorf("apply configuration: %w", err)})
		return err
	}
	restart := restartKeys(l.Current(), loaded)
	l.current.Store(loaded)
	l.pending.Store(nil)
	l.notify(Event{Applied: loaded, Restart: restart})
	if err := l.memory.RememberApplied(context.Background(), loaded.Source); err != nil {
		err = fmt.Errorf("the configuration is in force, but will wait again after a restart: %w", err)
		l.notify(Event{Err: err})
		return err
	}
	return nil
}

// Watch reloads whenever the file changes, until the context ends. An error means that changes are not seen (any
// more).
func (l *Live) Watch(ctx context.Context) error {
	if l.unchanging {
		<-ctx.Done()
		return nil
	}
	return Follow(ctx, l.path, l.Reload)
}

// Follow calls reload whenever the file of that name may have changed, and once at first, until the context ends; a
// burst of changes counts once. An error means that changes are not seen (any more).
func Follow(ctx context.Context, path string, reload func()) error {
	changed, err := changes(ctx, path)
	if err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	const settle = 100 * time.Millisecond
	timer := time.NewTimer(settle) // the file may have changed before the watch stood
	defer timer.Stop()
	for {
		select {
		case _, ok := <-changed:
			if !ok {
				return lost(ctx)
			}
			timer.Reset(settle)
		case <-timer.C:
			reload()
		}
	}
}

// lost says why a watch ended: by itself it should not.
func lost(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("watch configuration: the system stopped telling of changes")
}
