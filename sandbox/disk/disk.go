// Package disk watches how much sandboxes write: a workspace has no quota, in general, that the kernel would keep.
package disk

import (
	"fmt"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/disk/usage"
)

const (
	interval = 2 * time.Second
	// share bounds what watching costs in large workspaces: no more than this part of the time is spent looking.
	share = 20
)

// Book remembers what was there when the first sandbox of a name was made: one that is made anew gets no new share.
// The zero value is an empty one.
type Book struct {
	mu     sync.Mutex
	before map[string]int64 // bytes, by name
}

// Watch looks at how much a sandbox has written. What was in the workspace before does not count: people's own files are
// none of its doing.
type Watch struct {
	book    *Book
	name    string
	sources []string
	limit   int64
	before  int64
}

// Before is what was there when the first sandbox of a name was made; false: that was not measured yet.
func (b *Book) Before(name string) (bytes int64, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes, known = b.before[name]
	return bytes, known
}

// Recall says what Before of an earlier gateway was, for a sandbox that has outlived it.
func (b *Book) Recall(name string, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.before == nil {
		b.before = map[string]int64{}
	}
	b.before[name] = bytes
}

// Of returns what watches a sandbox; nil if it has no limit or nothing that it could write to.
func (b *Book) Of(spec *sandbox.Spec) *Watch {
	if spec.Limits.Disk <= 0 {
		return nil
	}
	w := &Watch{book: b, name: spec.Name, limit: spec.Limits.Disk}
	for _, m := range spec.Mounts {
		if m.Layer != "" {
			w.sources = append(w.sources, m.Layer)
		}
		if m.Writable {
			w.sources = append(w.sources, m.Source)
		}
	}
	if len(w.sources) == 0 {
		return nil
	}
	return w
}

// Measure measures what is there, unless that is known. Run does so where nobody did.
func (w *Watch) Measure() { w.before = w.book.beforeOf(w) }

// Run looks until the sandbox has ended. It returns what is wrong when it has written more than it may, "" otherwise.
func (w *Watch) Run(done <-chan struct{}) (reason string) {
	w.Measure()
	for wait := interval; ; {
		select {
		case <-done:
			return ""
		case <-time.After(wait):
		}
		start := time.Now()
		if reason := w.breach(); reason != "" {
			return reason
		}
		wait = max(interval, share*time.Since(start))
	}
}

func (b *Book) beforeOf(w *Watch) int64 {
	before, known := b.Before(w.name)
	if known {
		return before
	}
	for _, source := range w.sources {
		before += usage.Of(source)
	}
	b.Recall(w.name, before)
	return before
}

// breach says what is wrong, "" if nothing is.
func (w *Watch) breach() string {
	var used int64
	for _, source := range w.sources {
		used += usage.Of(source)
	}
	written := used - w.before
	if written > w.limit {
		return fmt.Sprintf("it has written %d MiB, and %d MiB are allowed (sandbox.limits.disk)", written>>20, w.limit>>20)
	}
	for _, source := range w.sources {
		if written > usage.Noise && usage.Full(source) {
			return fmt.Sprintf("it has written %d MiB, and the file system of %s is nearly full", written>>20, source)
		}
	}
	return ""
}
