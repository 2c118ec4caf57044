//go:build linux

package serve

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/task"
)

// remove removes a file, a link or a directory.
func (f *files) remove(p string, o *task.RemoveOptions, gone func() bool) error {
	l, err := locate(p)
	if err != nil {
		return err
	}
	defer l.close()
	if err := f.removable(l.path()); err != nil {
		return err
	}
	if l.name == "" {
		return task.Errorf(task.CodeDirectory, "%s cannot be removed by this name", shown(p))
	}
	if err := still(p, l, o); err != nil {
		return err
	}
	return f.removeAt(l, o.Recursive, gone, 0)
}

// still refuses to remove what is not what it was when it was judged.
func still(p string, l *located, o *task.RemoveOptions) error {
	if o.Unchanged != nil {
		var st unix.Stat_t
		if err := unix.Fstatat(l.dir, l.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if infoOf(&st, l.path()).Identity != *o.Unchanged {
			return task.Errorf(task.CodeChanged, "%s was changed meanwhile", shown(l.path()))
		}
	}
	if !o.Exact {
		return nil
	}
	if err := exactly(p, l.path()); err != nil {
		return err
	}
	if real, err := realPath(l.dir); err != nil || real != l.real {
		return movedAway(l)
	}
	return nil
}

func (f *files) removeAt(l *located, recursive bool, gone func() bool, depth int) error {
	err := unix.Unlinkat(l.dir, l.name, 0)
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	refused := err
	if err = unix.Unlinkat(l.dir, l.name, unix.AT_REMOVEDIR); err == unix.ENOTDIR {
		return refused
	}
	if err != unix.ENOTEMPTY && err != unix.EEXIST || !recursive {
		return err
	}
	if depth > maxDepth {
		return task.Errorf(task.CodeFailed, "%s is too deep", shown(l.path()))
	}
	fd, real, err := l.openLast(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	if err := f.empty(fd, real, gone, depth); err != nil {
		return err
	}
	return unix.Unlinkat(l.dir, l.name, unix.AT_REMOVEDIR)
}

// empty removes what is in a directory, which it closes.
func (f *files) empty(fd int, real string, gone func() bool, depth int) error {
	dir := os.NewFile(uintptr(fd), real)
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(256)
		if len(names) == 0 {
			if err == io.EOF {
				return nil
			}
			return err
		}
		for _, name := range names {
			if gone() {
				return errStopped
			}
			inner := &located{dir: fd, real: real, name: name}
			if err := f.removable(inner.path()); err != nil {
				return err
			}
			if err := f.removeAt(inner, true, gone, depth+1); err != nil {
				return failure(inner.path(), err)
			}
		}
	}
}
