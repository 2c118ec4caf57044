package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
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
	mu   sync.Mutex
	top  *folder
	turn int64 // of the last use; under the store's lock
}

// forgetAfter is after how many uses of other workspaces what was read of one goes.
const forgetAfter = 64

// Open opens the store in a directory, which is made if it is not there, and finishes what a process was doing that was killed
// while it took a call back. The directory must be out of every agent's reach: who can write to it decides what an undo writes.
// Only one process may have it open ([ErrLocked]).
func Open(ctx context.Context, dir string, limits Limits) (*Store, error) {
	s := &Store{
		dir: dir, limits: limits.orDefaults(), objects: &objects{dir: filepath.Join(dir, "objects")},
		trees: map[string]*tree{}, calls: map[string]*Call{},
	}
	for _, d := range []string{dir, s.objects.dir, s.callsDir(), s.journalDir()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("open the undo store: %w", err)
		}
	}
	if err := s.takeLock(); err != nil {
		return nil, fmt.Errorf("open the undo store: %w", err)
	}
	if err := errors.Join(s.objects.measure(), s.readCalls()); err != nil {
		return nil, errors.Join(fmt.Errorf("open the undo store: %w", err), s.Close())
	}
	if err := s.finishJournals(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the undo store: %w", err), s.Close())
	}
	return s, nil
}

func (s *Store) takeLock() (err error) {
	s.lock, err = os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(ErrLocked, s.lock.Close())
	}
	return nil
}

// Close gives the store free for another process.
func (s *Store) Close() error { return s.lock.Close() }

// Size is how many bytes are kept.
func (s *Store) Size() int64 { return s.objects.bytes.Load() }

// keep reads a workspace and keeps what is new in it. The caller holds the tree's lock, and keeps the store from collecting until
// a call names what keep returns.
func (s *Store) keep(ctx context.Context, workspace string, t *tree) (Hash, error) {
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
			other.top = nil
			other.mu.Unlock()
		}
	}
	return t
}

// writeWhole replaces a file of the store by one that is complete.
func writeWhole(path string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// filesOf are the complete files of one of the store's directories, by name; those that were never completed go.
func filesOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".json":
			names = append(names, filepath.Join(dir, e.Name()))
			continue
		case stuck:
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return names, nil
}
