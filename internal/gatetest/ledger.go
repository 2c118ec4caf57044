package gatetest

import (
	"bytes"
	"context"
	"os"
	"sync"
)

// AsItStands is a ledger of exec-approvals.json for tests that are about something else: whatever the file at this path says was
// accepted by a person.
type AsItStands string

// Accepted is the file.
func (path AsItStands) Accepted() []byte {
	if info, err := os.Lstat(string(path)); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	content, err := os.ReadFile(string(path))
	if err != nil {
		return nil
	}
	return content
}

// May is always true.
func (AsItStands) May() error { return nil }

// Accept has nothing to do.
func (AsItStands) Accept(context.Context, []byte) error { return nil }

// Tighten has nothing to do.
func (AsItStands) Tighten([]byte) {}

// Ledger remembers what was accepted, as the key of a home does while somebody is signed in. Locked refuses to accept more.
type Ledger struct {
	Locked error

	mu       sync.Mutex
	accepted []byte
}

// Accepted is what was accepted.
func (l *Ledger) Accepted() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted
}

// May returns Locked.
func (l *Ledger) May() error { return l.Locked }

// Accept remembers content, unless the ledger is locked.
func (l *Ledger) Accept(_ context.Context, content []byte) error {
	if l.Locked != nil {
		return l.Locked
	}
	l.Tighten(content)
	return nil
}

// Tighten remembers content.
func (l *Ledger) Tighten(content []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted = bytes.Clone(content)
}
