package undo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Store keeps what workspaces were. Its methods may be called from any goroutine.
type Store struct {
	dir     string
	limits  Limits
	lock    *os.File
	objects *objects

	problems []error // of Open

	// using is held for reading by whoever needs objects that no call names yet, and for writing by what removes objects.
	using sync.RWMutex

	mu    sync.Mutex
	trees map[string]*tree
	calls map[string]*Call
	last  int64 // the newest number of a call
	turns int64 // counts uses of trees
}

// tree is a workspace as it was last read. Its lock is held by whoever reads or changes the workspace.
type tree struct {
	mu      sync.Mutex
	top     *folder
	written *folder // what is written down of it
	turn    int64   // of the last use; under the store's lock
}

// forgetAfter is after how many uses of other workspaces what was read of one goes.
const forgetAfter = 64

// Close writes down what was read of workspaces, and gives the store free for another process.
func (s *Store) Close() error { return errors.Join(s.Remember(), s.lock.Close()) }

// Size is how many bytes are kept.
func (s *Store) Size() int64 { return s.objects.bytes.Load() }

// keep reads a workspace and keeps what is new in it. The caller holds the tree's lock, and keeps the store from collecting until
// a call names what keep returns.
func (s *Store) keep(ctx context.Context, workspace string, t *tree) (Hash, error) {
	if t.top == nil {
		t.top = s.recall(workspace)
		t.written = t.top
	}
	top, err := readTree(ctx, s.objects, s.limits, workspace, t.top)
	if err != nil {
		return Hash{}, fmt.Errorf("keep %s: %w", workspace, err)
	}
	t.top = top
	return top.hash, nil
}

// tree is the memory of a workspace. What was read of those that have not been used for longest goes; their locks stay.
func (s *Store) tree(workspace string) *tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.trees[workspace]
	if t == nil {
		t = &tree{}
		s.trees[workspace] = t
	}
	s.turns++
	t.turn = s.turns
	for _, other := range s.trees {
		if s.turns-other.turn >= forgetAfter && other.mu.TryLock() {
			other.top, other.written = nil, nil
			other.mu.Unlock()
		}
	}
	return t
}
