package undo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Change is what became of one path of a tree.
type Change struct {
	Path          string // within the tree
	Before, After *Entry // nil where it did not exist
}

// Changes lists what differs between two trees, by path: a directory stands before what is in it. It fails with [ErrGone] if one
// of them is not kept any more.
func (s *Store) Changes(from, to Hash) ([]Change, error) {
	var changes []Change
	err := s.objects.compare("", from, to, &changes)
	return changes, err
}

func (o *objects) compare(at string, from, to Hash, into *[]Change) error {
	if from == to {
		return nil
	}
	before, err := o.directory(from)
	if err != nil {
		return err
	}
	after, err := o.directory(to)
	if err != nil {
		return err
	}
	for len(before) > 0 || len(after) > 0 {
		var b, a *Entry
		name := ""
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].name < after[0].name:
			name, b, before = before[0].name, &before[0].Entry, before[1:]
		case len(before) == 0 || after[0].name < before[0].name:
			name, a, after = after[0].name, &after[0].Entry, after[1:]
		default:
			name, b, a = before[0].name, &before[0].Entry, &after[0].Entry
			before, after = before[1:], after[1:]
		}
		if err := o.compareEntry(path.Join(at, name), b, a, into); err != nil {
			return err
		}
	}
	return nil
}

func (o *objects) compareEntry(at string, before, after *Entry, into *[]Change) error {
	if same(before, after) {
		return nil
	}
	wasDir, isDir := before.isDirectory(), after.isDirectory()
	if !wasDir || !isDir || before.Mode != after.Mode {
		*into = append(*into, Change{at, before, after})
	}
	switch {
	case wasDir && isDir:
		return o.compare(at, before.Hash, after.Hash, into)
	case wasDir:
		return o.all(at, before.Hash, func(at string, e *Entry) { *into = append(*into, Change{at, e, nil}) })
	case isDir:
		return o.all(at, after.Hash, func(at string, e *Entry) { *into = append(*into, Change{at, nil, e}) })
	}
	return nil
}

func (e *Entry) isDirectory() bool { return e != nil && e.Kind == Directory }

// all visits everything in a directory.
func (o *objects) all(at string, h Hash, visit func(at string, e *Entry)) error {
	entries, err := o.directory(h)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		visit(path.Join(at, e.name), &e.Entry)
		if e.Kind == Directory {
			if err := o.all(path.Join(at, e.name), e.Hash, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookup finds what a path stands for in a tree; nil if nothing.
func (o *objects) lookup(tree Hash, at string) (*Entry, error) {
	name, rest, deeper := strings.Cut(at, "/")
	entries, err := o.directory(tree)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		switch e := &entries[i]; {
		case e.name != name:
		case !deeper:
			return &e.Entry, nil
		case e.Kind == Directory:
			return o.lookup(e.Hash, rest)
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// alike reports whether a path is the same in two trees, as far as it alone is concerned: of directories, only the mode.
func alike(a, b *Entry) bool {
	if a.isDirectory() && b.isDirectory() {
		return a.Mode == b.Mode
	}
	return same(a, b)
}

// Content is what is kept of a file, if it has not more than most bytes.
func (s *Store) Content(e *Entry, most int64) ([]byte, error) {
	s.using.RLock()
	defer s.using.RUnlock()
	if e.Kind != File || e.Size > most {
		return nil, fmt.Errorf("%d bytes are not shown", e.Size)
	}
	content, err := os.ReadFile(s.objects.path(e.Hash))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("file %s: %w", e.Hash, ErrGone)
	case err != nil:
		return nil, err
	case sha256.Sum256(content) != e.Hash:
		return nil, fmt.Errorf("file %s: %w", e.Hash, ErrDamaged)
	}
	return content, nil
}
