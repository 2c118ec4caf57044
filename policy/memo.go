package policy

import "sync"

// memo remembers what was compiled for a key. It is emptied when it is full, because callers choose some of the keys.
// The zero value is ready and holds up to maxRemembered entries.
type memo[K comparable, V any] struct {
	mu    sync.RWMutex
	byKey map[K]V
}

// maxRemembered bounds each memo.
const maxRemembered = 1024

// of returns what is remembered, or makes and remembers it. Two callers may make the same thing at once.
func (m *memo[K, V]) of(key K, make func() V) V {
	m.mu.RLock()
	v, known := m.byKey[key]
	m.mu.RUnlock()
	if known {
		return v
	}
	v = make()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil || len(m.byKey) >= maxRemembered {
		m.byKey = map[K]V{}
	}
	m.byKey[key] = v
	return v
}
