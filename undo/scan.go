package undo

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stamp is what the file system says of a file. While it stays the same the file has not changed, once the file is settled.
type stamp struct {
	device, inode     uint64
	mode              uint32
	size              int64
	modified, changed int64 // Unix nanoseconds
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{
		device: uint64(st.Dev), inode: st.Ino, mode: uint32(st.Mode), size: st.Size, modified: st.Mtim.Nano(), changed: st.Ctim.Nano(),
	}
}

func (s stamp) is(kind uint32) bool { return s.mode&unix.S_IFMT == kind }

// permissions are the bits that chmod sets.
func (s stamp) permissions() uint32 { return s.mode & 0o7777 }

// tick is within what time the file system may give two changes the same stamp.
const tick = 20 * time.Millisecond

// settled reports whether a change after now must show in the stamp.
func (s stamp) settled(now time.Time) bool {
	return max(s.modified, s.changed) < now.Add(-tick).UnixNano()
}

// folder is a directory as it was last read.
type folder struct {
	stamp   stamp
	settled bool // the names in it are known while the stamp stays the same
	hash    Hash
	lost    bool   // the directory is not kept any more under its hash: it must be written again
	items   []item // by name
}

// item is one entry of a folder as it was last read.
type item struct {
	named
	stamp   stamp
	settled bool
	folder  *folder // of a directory that is kept
}

// find finds an entry, which most likely is the one at n.
func (f *folder) find(n int, name string) *item {
	if f == nil {
		return nil
	}
	if n < len(f.items) && f.items[n].name == name {
		return &f.items[n]
	}
	i, found := slices.BinarySearchFunc(f.items, name, func(i item, name string) int { return strings.Compare(i.name, name) })
	if !found {
		return nil
	}
	return &f.items[i]
}

// scan is one reading of a tree.
type scan struct {
	ctx     context.Context
	objects *objects
	limits  Limits
	device  uint64 // of the tree's root; other file systems are not kept
	start   time.Time
	entries int
	bytes   int64 // of the files so far
}

// busyPatience is for how long something that changes meanwhile is read again. Servers in the background, other calls of the same agent
// and a person's editor write at the same time, and a call should not fail for that.
const busyPatience = 3 * time.Second

// tries are those to read one thing that changes meanwhile. The zero value is before the first.
type tries struct {
	since time.Time // the first
	pause time.Duration
}

// next waits, except before the first try. It stops a program that writes without a pause: then nobody could ever read a state that was.
func (t *tries) next(ctx context.Context) error {
	switch {
	case t.since.IsZero():
		t.since, t.pause = time.Now(), time.Millisecond
		return ctx.Err()
	case time.Since(t.since) > busyPatience:
		return ErrBusy
	}
	timer := time.NewTimer(t.pause)
	defer timer.Stop()
	t.pause = min(2*t.pause, 100*time.Millisecond)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readTree reads a tree. old is what it was when it was last read; what has the same stamp is not read again.
func readTree(ctx context.Context, o *objects, limits Limits, root string, old *folder) (*folder, error) {
	dir, err := os.OpenFile(root, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, &PathError{".", err}
	}
	s := &scan{ctx: ctx, objects: o, limits: limits, device: uint64(st.Dev), start: time.Now()}
	return s.folder(dir, "", old)
}

// folder reads one open directory.
func (s *scan) folder(dir *os.File, at string, old *folder) (*folder, error) {
	for t := (tries{}); ; {
		if err := t.next(s.ctx); err != nil {
			return nil, &PathError{path.Join(".", at), err}
		}
		entries, bytes := s.entries, s.bytes
		f, err := s.folderOnce(dir, at, old)
		if !errors.Is(err, errAgain) {
			return f, err
		}
		s.entries, s.bytes = entries, bytes
		if _, err := dir.Seek(0, 0); err != nil {
			return nil, &PathError{at, err}
		}
	}
}

// errAgain says that a directory has changed while it was read.
var errAgain = errors.New("again")

func (s *scan) folderOnce(dir *os.File, at string, old *folder) (*folder, error) {
	now := time.Now()
	before, err := stampAt(dir)
	if err != nil {
		return nil, &PathError{at, err}
	}
	names, err := s.names(dir, before, old)
	if err != nil {
		return nil, &PathError{at, err}
	}
	f := &folder{stamp: before, settled: before.settled(now)}
	for n, name := range names {
		was := old.find(n, name)
		i, err := s.item(dir, at, name, was)
		if err != nil {
			return nil, err
		}
		// As long as all is as it was, nothing is copied.
		if f.items == nil && (i != was || n >= len(old.items) || was != &old.items[n]) {
			f.items = make([]item, 0, len(names))
			if old != nil {
				f.items = append(f.items, old.items[:n]...)
			}
		}
		if f.items != nil {
			f.items = append(f.items, *i)
		}
	}
	after, err := stampAt(dir)
	if err != nil {
		return nil, &PathError{at, err}
	}
	if after.modified != before.modified || after.changed != before.changed {
		return nil, errAgain
	}
	if f.items == nil && old != nil && len(names) == len(old.items) && !old.lost {
		if f.settled == old.settled && before == old.stamp {
			return old, nil
		}
		f.items, f.hash = old.items, old.hash
		return f, nil
	}
	if f.items == nil && old != nil {
		f.items = slices.Clone(old.items[:len(names)])
	}
	f.hash, err = s.objects.addDirectory(encodeDirectory(f.entries()))
	return f, err
}

func (f *folder) entries() []named {
	out := make([]named, len(f.items))
	for i := range f.items {
		out[i] = f.items[i].named
	}
	return out
}

func stampAt(f *os.File) (stamp, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	return stampOf(&st), err
}

// names lists a directory, unless it is known.
func (s *scan) names(dir *os.File, now stamp, old *folder) ([]string, error) {
	var names []string
	if old != nil && old.settled && old.stamp == now {
		names = make([]string, len(old.items))
		for i := range old.items {
			names[i] = old.items[i].name
		}
	} else {
		for {
			more, err := dir.Readdirnames(4096)
			if names = append(names, more...); errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if s.entries+len(names) > s.limits.Entries {
				return nil, ErrTooMany
			}
		}
		slices.Sort(names)
	}
	if s.entries += len(names); s.entries > s.limits.Entries {
		return nil, ErrTooMany
	}
	return names, nil
}

// item reads one entry of the directory at a path. It returns was, the entry as it was last read, if that is what it still is.
func (s *scan) item(dir *os.File, in, name string, was *item) (*item, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, s.vanished(path.Join(in, name), err)
	}
	now := stampOf(&st)
	if now.is(unix.S_IFREG) && now.size <= s.limits.File {
		if s.bytes += now.size; s.bytes > s.limits.Total {
			return nil, ErrTooMuch // before more of it is kept: it would push out what other calls need
		}
	}
	isDir := now.is(unix.S_IFDIR) && now.device == s.device
	if was != nil && was.settled && was.stamp == now && !isDir {
		return was, nil
	}
	at := path.Join(in, name)
	i := &item{named: named{name: name}, stamp: now, settled: now.settled(s.start)}
	switch {
	case i.stamp.device != s.device:
		i.Entry = apart(mounted)
	case isDir:
		err := s.subfolder(dir, at, i, was)
		if err == nil && was != nil && i.folder == was.folder && i.Entry == was.Entry && i.stamp == was.stamp {
			return was, nil
		}
		return i, err
	case i.stamp.is(unix.S_IFREG):
		return i, s.file(dir, at, i)
	case i.stamp.is(unix.S_IFLNK):
		return i, s.link(dir, at, i)
	default:
		i.Entry = apart(noFile)
	}
	return i, nil
}

// Why something is not kept.
const (
	mounted    = "another file system is mounted there"
	noFile     = "it is no file, directory or link"
	unreadable = "this user may not read it"
	tooLarge   = "it is larger than is kept"
)

func apart(why string) Entry { return Entry{Kind: Apart, Why: why} }

// vanished is the error of an entry that was listed. One that has gone meanwhile has the directory read again.
func (s *scan) vanished(at string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return errAgain
	}
	return &PathError{at, err}
}

// subfolder reads a directory in a directory.
func (s *scan) subfolder(dir *os.File, at string, i, was *item) error {
	sub, err := openIn(dir, i.name, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrPermission) {
		i.Entry = apart(unreadable)
		return nil
	}
	if err != nil {
		return s.vanished(at, err)
	}
	defer sub.Close()
	var old *folder
	if was != nil {
		old = was.folder
	}
	if i.folder, err = s.folder(sub, at, old); err != nil {
		return err
	}
	if i.folder.stamp.inode != i.stamp.inode || i.folder.stamp.device != i.stamp.device {
		return errAgain // another directory was put in its place
	}
	i.Entry = Entry{Kind: Directory, Mode: i.stamp.permissions(), Hash: i.folder.hash}
	return nil
}

// openIn opens an entry of an open directory, and never what a link leads to.
func openIn(dir *os.File, name string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, err
		}
	}
}

func (s *scan) link(dir *os.File, at string, i *item) error {
	buf := make([]byte, max(i.stamp.size, 0)+1)
	n, err := unix.Readlinkat(int(dir.Fd()), i.name, buf)
	switch {
	case errors.Is(err, unix.EINVAL), err == nil && n == len(buf):
		return errAgain // no link any more, or another one
	case err != nil:
		return s.vanished(at, err)
	}
	i.Entry = Entry{Kind: Link, Target: string(buf[:n])}
	return nil
}

// file reads a file. One that is written to meanwhile is read again: a state that never was must not be kept.
func (s *scan) file(dir *os.File, at string, i *item) error {
	if i.stamp.size > s.limits.File {
		i.Entry = apart(tooLarge)
		return nil
	}
	f, err := openIn(dir, i.name, unix.O_RDONLY)
	if errors.Is(err, fs.ErrPermission) {
		i.Entry = apart(unreadable)
		return nil
	}
	if err != nil {
		return s.vanished(at, err)
	}
	defer f.Close()
	for t := (tries{}); ; {
		if err := t.next(s.ctx); err != nil {
			return &PathError{at, err}
		}
		now := time.Now()
		before, err := stampAt(f)
		if err != nil {
			return &PathError{at, err}
		}
		if !before.is(unix.S_IFREG) || before.size > s.limits.File {
			return errAgain
		}
		hash, size, err := s.objects.addFile(f, before.size)
		if err != nil {
			return &PathError{at, err}
		}
		after, err := stampAt(f)
		if err != nil {
			return &PathError{at, err}
		}
		if after == before && size == before.size {
			i.stamp, i.settled = before, before.settled(now)
			i.Entry = Entry{Kind: File, Mode: before.permissions(), Size: size, Hash: hash}
			return nil
		}
		if _, err := f.Seek(0, 0); err != nil {
			return &PathError{at, err}
		}
	}
}
