package gateway

import (
	"slices"
	"sync"
)

// maxWarned is how many warnings are remembered. One that has been forgotten is logged again.
const maxWarned = 256

// warned remembers which warnings the log has, so that a configuration that is saved again and again does not bury what is
// new. The zero value has seen none.
type warned struct {
	mu   sync.Mutex
	said []string // oldest first
}

// first reports whether a text has not been seen, and remembers it.
func (w *warned) first(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.said, text) {
		return false
	}
	if len(w.said) >= maxWarned {
		w.said = w.said[1:]
	}
	w.said = append(w.said, text)
	return true
}
