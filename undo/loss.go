package undo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Loss is something that no snapshot holds: who deletes it or writes over it cannot take that back.
type Loss struct {
	Path string // within the workspace
	Why  string
	Size int64 // of a file that is too large; else 0
}

// mostLosses is how many are found at once: people are told of a few.
const mostLosses = 100

// errEnough ends a search.
var errEnough = errors.New("enough")

// Losses finds what a snapshot of a workspace would not hold of a path in it, of a tree with all that lies below. No file is read. Links are not
// followed: who deletes one loses what it says, which is kept. The errors are those of [Store.Fits]: then nobody can tell.
func (s *Store) Losses(ctx context.Context, workspace, within string, tree bool) ([]Loss, error) {
	dir, err := os.OpenFile(workspace, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // only looked at
	top, err := stampAt(dir)
	if err != nil {
		return nil, err
	}
	look := &losses{scan: scan{ctx: ctx, limits: s.limits, device: top.device}, tree: tree}
	name, at, rest := ".", "", filepath.Clean(within)
	for {
		var more bool
		if name, rest, more = strings.Cut(rest, "/"); !more {
			break
		}
		below, err := openIn(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, &PathError{path.Join(at, name), err}
		}
		_ = dir.Close()
		dir, at = below, path.Join(at, name)
		if now, err := stampAt(dir); err != nil || now.device != top.device {
			return []Loss{{Path: at, Why: mounted}}, err
		}
	}
	if err := look.entry(dir, name, at); err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("look through %q: %w", within, err)
	}
	return look.found, nil
}

// losses is one search.
type losses struct {
	scan
	tree  bool
	found []Loss
}

func (l *losses) add(at, why string, size int64) error {
	if l.found = append(l.found, Loss{at, why, size}); len(l.found) == mostLosses {
		return errEnough
	}
	return nil
}

// entry looks at one name of an open directory. What is not there any more is no loss.
func (l *losses) entry(dir *os.File, name, in string) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if l.entries++; l.entries > l.limits.Entries {
		return ErrTooMany
	}
	at := path.Join(in, name)
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return &PathError{at, err}
	}
	switch now := stampOf(&st); {
	case now.device != l.device:
		return l.add(at, mounted, 0)
	case now.is(unix.S_IFDIR):
		if !l.tree {
			return nil
		}
		return l.below(dir, name, at)
	case now.is(unix.S_IFLNK):
		return nil
	case !now.is(unix.S_IFREG):
		return l.add(at, noFile, 0)
	case now.size > l.limits.File:
		return l.add(at, tooLarge, now.size)
	case !readable(dir, name, &st):
		return l.add(at, unreadable, 0)
	}
	return nil
}

// readable reports whether this user may read a file; of its own files that is in the mode.
func readable(dir *os.File, name string, st *unix.Stat_t) bool {
	return int(st.Uid) == os.Geteuid() && st.Mode&0o400 != 0 ||
		unix.Faccessat(int(dir.Fd()), name, unix.R_OK, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EACCESS) == nil
}

func (l *losses) below(dir *os.File, name, at string) error {
	sub, err := openIn(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return l.add(at, unreadable, 0)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil
	case err != nil:
		return &PathError{at, err}
	}
	defer func() { _ = sub.Close() }()
	for {
		names, err := sub.Readdirnames(4096)
		for _, name := range names {
			if err := l.entry(sub, name, at); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &PathError{at, err}
		}
	}
}
