package undo

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Collect forgets the calls that are too old, and while what is kept does not fit the oldest ones of the workspace that needs the
// most, and removes what no call needs any more. Calls that run keep what they need for as long as it fits at all.
func (s *Store) Collect(ctx context.Context, now time.Time) error {
	s.using.Lock()
	defer s.using.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.byAge() {
		if !c.At.Before(now.Add(-s.limits.Age)) {
			break
		}
		if err := s.forget(c); err != nil {
			return err
		}
	}
	if err := s.sweep(ctx); err != nil {
		return err
	}
	for s.Size() > s.limits.Total && len(s.calls) > 0 {
		largest, err := s.largest(ctx)
		if err != nil {
			return err
		}
		// A quarter at once: every sweep reads all that is kept.
		for _, c := range largest[:1+len(largest)/4] {
			if err := s.forget(c); err != nil {
				return err
			}
		}
		if err := s.sweep(ctx); err != nil {
			return err
		}
	}
	return nil
}

// largest are the calls in the workspace that needs the most, the oldest first. Its own history goes, whoever's turn it would be by
// age: else an agent could push out what another one destroyed before, by filling a workspace of its own.
func (s *Store) largest(ctx context.Context) ([]*Call, error) {
	byWorkspace := map[string][]*Call{}
	for _, c := range s.byAge() {
		byWorkspace[string(c.Workspace)] = append(byWorkspace[string(c.Workspace)], c)
	}
	var largest []*Call
	most := int64(-1)
	for _, workspace := range slices.Sorted(maps.Keys(byWorkspace)) {
		calls := byWorkspace[workspace]
		size, err := s.sizeOf(ctx, calls)
		if err != nil {
			return nil, err
		}
		if size > most {
			largest, most = calls, size
		}
	}
	return largest, nil
}

// sizeOf is how many bytes calls need. What others need, too, counts in full.
func (s *Store) sizeOf(ctx context.Context, calls []*Call) (size int64, err error) {
	needed := map[Hash]bool{}
	for _, c := range calls {
		for _, top := range []Hash{c.Before, c.After} {
			if err := s.objects.mark(ctx, top, needed); err != nil {
				return 0, err
			}
		}
	}
	for h := range needed {
		if info, err := os.Lstat(s.objects.path(h)); err == nil {
			size += info.Size()
		}
	}
	return size, nil
}

func (s *Store) byAge() []*Call {
	var list []*Call
	for _, c := range s.calls {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *Call) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// sweep removes the objects that no call needs. Nobody else may be using the store.
func (s *Store) sweep(ctx context.Context) error {
	needed := map[Hash]bool{}
	for _, c := range s.calls {
		for _, top := range []Hash{c.Before, c.After} {
			if err := s.objects.mark(ctx, top, needed); err != nil {
				return err
			}
		}
	}
	for _, t := range s.trees {
		if t.top != nil {
			t.top.without(func(h Hash) bool { return !needed[h] })
		}
	}
	return s.objects.remove(ctx, func(h Hash) bool { return !needed[h] })
}

// mark adds what a directory needs.
func (o *objects) mark(ctx context.Context, h Hash, needed map[Hash]bool) error {
	if needed[h] || h == (Hash{}) {
		return ctx.Err()
	}
	needed[h] = true
	entries, err := o.directory(h)
	if errors.Is(err, ErrGone) || errors.Is(err, ErrDamaged) {
		return nil // taking it back says so; the rest must still be collected
	}
	if err != nil {
		return err
	}
	for i := range entries {
		switch e := &entries[i]; e.Kind {
		case File:
			needed[e.Hash] = true
		case Directory:
			if err := o.mark(ctx, e.Hash, needed); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes objects.
func (o *objects) remove(ctx context.Context, unneeded func(Hash) bool) error {
	return filepath.WalkDir(o.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		h, ok := parseHash(filepath.Base(filepath.Dir(path)) + d.Name())
		if !ok || !unneeded(h) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		o.bytes.Add(-info.Size())
		return nil
	})
}
