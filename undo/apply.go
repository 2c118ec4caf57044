package undo

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stagingPrefix begins the name of the directory in a workspace in which files wait to be put in their places. It lies in the
// workspace because a file can be moved within one file system only.
const stagingPrefix = ".toolward-undo-"

// workspace is an open workspace in which steps are carried out. No path leads out of it: every directory is opened from the one
// above it, and links are not followed.
type workspace struct {
	root    *os.File
	staging *os.File
	name    string // of the staging directory
}

func openWorkspace(at string) (*workspace, error) {
	root, err := os.OpenFile(at, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &workspace{root: root}, nil
}

func (w *workspace) close() {
	_ = w.root.Close()
	if w.staging != nil {
		_ = w.staging.Close()
	}
}

func newStagingName() string { return stagingPrefix + rand.Text() }

// openStaging opens the staging directory, made if it is not there.
func (w *workspace) openStaging(name string) (err error) {
	if err := unix.Mkdirat(int(w.root.Fd()), name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	w.name = name
	w.staging, err = openIn(w.root, name, unix.O_RDONLY|unix.O_DIRECTORY)
	return err
}

// removeStaging removes the staging directory with all that still waits in it.
func (w *workspace) removeStaging() error {
	if w.staging == nil {
		return nil
	}
	if _, err := w.staging.Seek(0, 0); err != nil {
		return err
	}
	names, err := w.staging.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, unix.Unlinkat(int(w.staging.Fd()), name, 0))
	}
	return errors.Join(err, unix.Unlinkat(int(w.root.Fd()), w.name, unix.AT_REMOVEDIR))
}

// stage makes the files and links of the steps, complete, where they wait. Nothing is changed yet: a full disk shows here.
func (w *workspace) stage(o *objects, steps []step) error {
	for i := range steps {
		want := steps[i].Want
		if want == nil || want.Kind == Directory {
			continue
		}
		steps[i].Staged = strconv.Itoa(i)
		if err := w.stageOne(o, steps[i].Staged, want); err != nil {
			return &PathError{string(steps[i].Path), err}
		}
	}
	return nil
}

func (w *workspace) stageOne(o *objects, name string, want *Entry) error {
	if want.Kind == Link {
		return unix.Symlinkat(want.Target, int(w.staging.Fd()), name)
	}
	fd, err := unix.Openat(int(w.staging.Fd()), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	err = o.restore(want.Hash, f)
	if err == nil {
		err = unix.Fchmod(int(f.Fd()), want.Mode)
	}
	return errors.Join(err, f.Close())
}

// apply carries out steps that have been staged: first what must go, deepest first; then directories, topmost first; then files and
// links; at last the modes of directories, deepest first, because a directory may be made one that nobody can write to. What has
// been done already is left alone, so that steps can be carried out again after a crash.
func (w *workspace) apply(steps []step) error {
	ordered := slices.Clone(steps)
	slices.SortFunc(ordered, func(a, b step) int { return cmp.Compare(string(a.Path), string(b.Path)) })
	for _, s := range slices.Backward(ordered) {
		if err := w.clear(s); err != nil {
			return &PathError{string(s.Path), err}
		}
	}
	for _, s := range ordered {
		if s.Want.isDirectory() {
			if err := w.makeDirectory(s); err != nil {
				return &PathError{string(s.Path), err}
			}
		}
	}
	for _, s := range ordered {
		if err := w.place(s); err != nil {
			return &PathError{string(s.Path), err}
		}
	}
	for _, s := range slices.Backward(ordered) {
		if s.Want.isDirectory() {
			if err := w.setMode(s); err != nil {
				return &PathError{string(s.Path), err}
			}
		}
	}
	return nil
}

// parent opens the directory of a path, and makes it one that can be written to. The steps of its mode come last.
func (w *workspace) parent(at string) (dir *os.File, name string, err error) {
	dir, name, err = w.lookAt(at)
	if err != nil {
		return nil, "", err
	}
	now, err := stampAt(dir)
	if err == nil && now.permissions()&0o300 != 0o300 {
		err = unix.Fchmod(int(dir.Fd()), now.permissions()|0o300)
	}
	if err != nil {
		_ = dir.Close()
		return nil, "", err
	}
	return dir, name, nil
}

// clear removes what stands where a step wants nothing, or something of another kind.
func (w *workspace) clear(s step) error {
	dir, name, err := w.parent(string(s.Path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // its directory has gone already
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	var st unix.Stat_t
	err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	isDir := stampOf(&st).is(unix.S_IFDIR)
	switch {
	case s.Want != nil && s.Want.isDirectory() == isDir:
		return nil // place replaces a file in one step
	case !isDir:
		return unix.Unlinkat(int(dir.Fd()), name, 0)
	}
	err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	if s.Want == nil && (errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrExist)) {
		return nil // somebody has put something in it since, which stays
	}
	return err
}

func (w *workspace) makeDirectory(s step) error {
	dir, name, err := w.parent(string(s.Path))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// place moves a staged file or link to its place.
func (w *workspace) place(s step) error {
	if s.Staged == "" {
		return nil
	}
	dir, name, err := w.parent(string(s.Path))
	if err != nil {
		return err
	}
	defer dir.Close()
	err = unix.Renameat(int(w.staging.Fd()), s.Staged, int(dir.Fd()), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // moved before a crash
	}
	return err
}

func (w *workspace) setMode(s step) error {
	dir, name, err := w.parent(string(s.Path))
	if err != nil {
		return err
	}
	defer dir.Close()
	sub, err := openIn(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer sub.Close()
	return unix.Fchmod(int(sub.Fd()), s.Want.Mode)
}

// lockedParents are steps that give directories their modes back which must be made writable for the steps, and are not among them.
func lockedParents(now *folder, steps []step) (more []step) {
	planned := map[string]bool{}
	for _, s := range steps {
		planned[string(s.Path)] = true
	}
	for _, s := range steps {
		dir := path.Dir(string(s.Path))
		if dir == "." || planned[dir] {
			continue
		}
		planned[dir] = true
		if i := now.at(dir); i != nil && i.isDirectory() && i.Mode&0o300 != 0o300 {
			more = append(more, step{Path: []byte(dir), Want: &i.Entry})
		}
	}
	return more
}

// unchanged checks that nothing that the steps replace has changed since the workspace was read: what somebody saved meanwhile
// must not be overwritten unseen.
func (w *workspace) unchanged(steps []step, read *folder) error {
	for _, s := range steps {
		dir, name, err := w.lookAt(string(s.Path))
		if err != nil {
			continue // there is nothing, or no directory for it yet
		}
		var st unix.Stat_t
		err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		_ = dir.Close()
		was := read.at(string(s.Path))
		switch now := stampOf(&st); {
		case err != nil && was == nil, err == nil && now.is(unix.S_IFDIR):
		case err != nil || was == nil || was.stamp != now:
			return &PathError{string(s.Path), fmt.Errorf("somebody changed it just now: %w", ErrBusy)}
		}
	}
	return nil
}

// lookAt opens the directory of a path without changing it.
func (w *workspace) lookAt(at string) (dir *os.File, name string, err error) {
	dir, err = openIn(w.root, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	parents, name := path.Split(at)
	for _, next := range strings.Split(strings.Trim(parents, "/"), "/") {
		if err != nil || next == "" {
			break
		}
		var deeper *os.File
		deeper, err = openIn(dir, next, unix.O_RDONLY|unix.O_DIRECTORY)
		_ = dir.Close()
		dir = deeper
	}
	if err != nil {
		return nil, "", err
	}
	return dir, name, nil
}

// at finds what was read of a path.
func (f *folder) at(p string) *item {
	name, rest, deeper := strings.Cut(p, "/")
	i := f.find(0, name)
	if i == nil || !deeper {
		return i
	}
	return i.folder.at(rest)
}
