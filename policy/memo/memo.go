// Package memo remembers what was compiled for a key.
package memo

import "sync"

// Map remembers what was compiled for a key. It is emptied when it is full, because callers choose some of the keys.
// The zero value is ready and holds up to Most entries.
type Map[K comparable, V any] struct {
	mu    sync.RWMutex
	byKey map[K]V
}

// Most bounds each Map.
const Most = 1024

// Of returns what is remembered, or makes and remembers it. Two callers may make the same thing at once.
func (m *Map[K, V]) Of(key K, make func() V) V {
	m.mu.RLock()
	v, known := m.byKey[key]
	m.mu.RUnlock()
	if known {
		return v
	}
	v = make()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil || len(m.byKey) >= Most {
		m.byKey = map[K]V{}
	}
	m.byKey[key] = v
	return v
}

// Len is how much is remembered.
func (m *Map[K, V]) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.byKey)
}
