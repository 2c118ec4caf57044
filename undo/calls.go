package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func (s *Store) callsDir() string { return filepath.Join(s.dir, "calls") }

func (s *Store) callPath(c *Call) string {
	return filepath.Join(s.callsDir(), fmt.Sprintf("%012d.json", c.Number))
}

func (s *Store) readCalls() error {
	names, err := filesOf(s.callsDir())
	if err != nil {
		return err
	}
	for _, name := range names {
		var c Call
		if err := readWhole(name, &c); err != nil {
			return err
		}
		if s.callPath(&c) != name {
			return fmt.Errorf("%s: %w", name, ErrDamaged)
		}
		s.calls[c.ID] = &c
		s.last = max(s.last, c.Number)
	}
	return nil
}

// Begin keeps the workspace before a call. It must succeed before the call has its first effect: without it, nobody could take
// the call back. c needs its ID, Workspace and At, and whatever people shall read of it.
func (s *Store) Begin(ctx context.Context, c Call) error {
	if c.ID == "" || !filepath.IsAbs(string(c.Workspace)) {
		return errors.New("undo: a call needs an ID and an absolute workspace")
	}
	s.using.RLock()
	err := s.begin(ctx, &c)
	s.using.RUnlock()
	if err != nil || s.Size() <= s.limits.Total {
		return err
	}
	if err := s.Collect(ctx, c.At); err != nil {
		return errors.Join(err, s.Drop(c.ID))
	}
	if _, kept := s.Call(c.ID); !kept { // its files fit, but not with its directories
		return fmt.Errorf("keep %s: %w", c.Workspace, ErrTooMuch)
	}
	return nil
}

func (s *Store) begin(ctx context.Context, c *Call) (err error) {
	t := s.tree(string(c.Workspace))
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Before, err = s.keep(ctx, string(c.Workspace), t); err != nil {
		return err
	}
	return s.add(c)
}

// add remembers a new call.
func (s *Store) add(c *Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[c.ID] != nil {
		return fmt.Errorf("undo: the call %s has begun before", c.ID)
	}
	s.last++
	c.Number = s.last
	if err := writeWhole(s.callPath(c), c); err != nil {
		return err
	}
	s.calls[c.ID] = c
	return nil
}

// End keeps the workspace after a call, and forgets a call that has changed nothing.
func (s *Store) End(ctx context.Context, id string) error {
	s.using.RLock()
	defer s.using.RUnlock()
	c, ok := s.Call(id)
	if !ok {
		return fmt.Errorf("undo: the call %s: %w", id, ErrGone)
	}
	t := s.tree(string(c.Workspace))
	t.mu.Lock()
	defer t.mu.Unlock()
	after, err := s.keep(ctx, string(c.Workspace), t)
	if err != nil {
		return err
	}
	if t.written == nil {
		// What has just been read as a whole is written down at once: a gateway may be killed. That it fails costs time, later.
		_ = s.remember(string(c.Workspace), t)
	}
	return s.end(id, after)
}

func (s *Store) end(id string, after Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[id]
	if c == nil {
		return fmt.Errorf("undo: the call %s: %w", id, ErrGone)
	}
	if after == c.Before {
		return s.forget(c)
	}
	ended := *c
	ended.After = after
	if err := writeWhole(s.callPath(c), &ended); err != nil {
		return err
	}
	s.calls[id] = &ended
	return nil
}

// Drop forgets a call that did not run after all.
func (s *Store) Drop(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[id]; c != nil {
		return s.forget(c)
	}
	return nil
}

// forget must be called with the lock held.
func (s *Store) forget(c *Call) error {
	if err := os.Remove(s.callPath(c)); err != nil {
		return err
	}
	delete(s.calls, c.ID)
	return nil
}

// Call finds a call.
func (s *Store) Call(id string) (Call, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[id]; c != nil {
		return *c, true
	}
	return Call{}, false
}

// Calls lists the calls that can be taken back, newest first.
func (s *Store) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Call, 0, len(s.calls))
	for _, c := range s.calls {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Call) int { return cmp.Compare(b.Number, a.Number) })
	return list
}
