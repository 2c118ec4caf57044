package undo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Open opens the store in a directory, which is made if it is not there, and finishes what a process was doing that was killed
// while it took a call back. The directory must be out of every agent's reach: who can write to it decides what an undo writes.
// Only one process may have it open ([ErrLocked]).
func Open(ctx context.Context, dir string, limits Limits) (*Store, error) {
	s := &Store{
		dir: dir, limits: limits.orDefaults(), objects: &objects{dir: filepath.Join(dir, "objects")},
		trees: map[string]*tree{}, calls: map[string]*Call{},
	}
	for _, d := range []string{dir, s.objects.dir, s.callsDir(), s.journalDir(), s.recallDir()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("open the undo store: %w", err)
		}
	}
	if err := s.takeLock(); err != nil {
		return nil, fmt.Errorf("open the undo store: %w", err)
	}
	if err := errors.Join(s.objects.measure(), s.readCalls(), s.dropUnfinished()); err != nil {
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
