//go:build linux

package serve

import (
	"crypto/rand"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
	"github.com/toolward/toolward/sandbox/task"
)

// temporaryPrefix begins the names of files that are being written.
const temporaryPrefix = ".toolward-write-"

// write makes what the gateway sends the content of a file, all or nothing: readers see the old or the new content.
func (f *files) write(c *wire.Call, st *stream) (info task.FileInfo, err error) {
	if c.Options.Append {
		info, err = f.extend(c, st)
		if err != errMissing {
			return info, err
		}
	}
	l, old, err := f.target(c.Path, &c.Options)
	if err != nil {
		return info, err
	}
	defer l.close()
	name := temporaryPrefix + rand.Text()
	fd, err := unix.Openat(l.dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return info, err
	}
	defer unix.Close(fd)
	if err = st.fill(fd, c); err == nil {
		err = f.putInPlace(fd, l, name, old, &c.Options)
	}
	if err != nil {
		_ = unix.Unlinkat(l.dir, name, 0) // the first error is the one that counts
		return info, err
	}
	return describe(fd, l.path())
}

// target locates the file that is to be written and judges what is there. old is nil if nothing is.
func (f *files) target(p string, o *task.WriteOptions) (l *located, old *unix.Stat_t, err error) {
	l, err = follow(p)
	if task.CodeOf(err) == task.CodeNotFound && o.Parents {
		l, err = f.makeParents(p, o.Exact, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	if err = f.writable(l.path()); err == nil && l.name == "" {
		err = unix.EISDIR
	}
	if err == nil && o.Exact {
		err = exactly(p, l.path())
	}
	if err == nil {
		old, err = f.judge(l, o)
	}
	if err != nil {
		l.close()
		return nil, nil, err
	}
	return l, old, nil
}

// judge looks at what is to be replaced.
func (f *files) judge(l *located, o *task.WriteOptions) (*unix.Stat_t, error) {
	var st unix.Stat_t
	switch err := unix.Fstatat(l.dir, l.name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case err == unix.ENOENT && o.Unchanged != nil:
		return nil, task.Errorf(task.CodeChanged, "%s is not there any more", shown(l.path()))
	case err == unix.ENOENT:
		return nil, nil
	case err != nil:
		return nil, err
	}
	info := infoOf(&st, l.path())
	if err := f.regular(&info, false); err != nil {
		return nil, err
	}
	if o.Missing {
		return nil, unix.EEXIST
	}
	if o.Unchanged != nil && *o.Unchanged != info.Identity {
		return nil, task.Errorf(task.CodeChanged, "%s was changed meanwhile", shown(l.path()))
	}
	return &st, nil
}

// fill writes what the gateway sends.
func (st *stream) fill(fd int, c *wire.Call) error {
	if err := writeAll(fd, c.Data); err != nil || !c.More {
		return err
	}
	taken := buffers.Get().(*[]byte)
	defer buffers.Put(taken)
	for {
		n, err := st.input.Read(*taken)
		if err == io.EOF {
			if st.gone() {
				return errStopped
			}
			return nil
		}
		if err != nil {
			return err
		}
		if err := writeAll(fd, (*taken)[:n]); err != nil {
			return err
		}
	}
}

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// putInPlace gives a written file its mode and its name. What is there is judged once more, as late as possible.
func (f *files) putInPlace(fd int, l *located, name string, old *unix.Stat_t, o *task.WriteOptions) error {
	mode := uint32(0o644)
	if o.Mode != 0 {
		mode = uint32(o.Mode.Perm())
	}
	if old != nil {
		mode = old.Mode & 0o777
		if old.Uid == uint32(unix.Geteuid()) || unix.Geteuid() == 0 {
			_ = unix.Fchown(fd, int(old.Uid), int(old.Gid)) // a new owner is as good where it is not allowed
		}
	}
	if err := unix.Fchmod(fd, mode); err != nil {
		return err
	}
	if err := unix.Fsync(fd); err != nil {
		return err
	}
	// The directory may have been moved since it was opened.
	if real, err := realPath(l.dir); err != nil || f.writable(path.Join(real, l.name)) != nil || o.Exact && real != l.real {
		return movedAway(l)
	}
	if _, err := f.judge(l, o); err != nil {
		return err
	}
	if err := renameTo(l, name, o.Missing); err != nil {
		return err
	}
	return syncDirectory(l.dir)
}

// movedAway says that a directory that was opened is elsewhere by now.
func movedAway(l *located) error {
	return task.Errorf(task.CodeChanged, "the directory of %s was moved", shown(l.path()))
}

func renameTo(l *located, name string, missing bool) error {
	if !missing {
		return unix.Renameat(l.dir, name, l.dir, l.name)
	}
	return moveNew(l.dir, name, l.dir, l.name)
}

// moveNew moves to a name that must be free.
func moveNew(fromDir int, from string, toDir int, to string) error {
	err := unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	// A file system that cannot do it in one step: a second name fails if there is one already.
	if err := unix.Linkat(fromDir, from, toDir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(fromDir, from, 0)
}

// syncDirectory makes a rename survive a crash.
func syncDirectory(dir int) error {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // a directory that cannot be read cannot be synced either; the file is there
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); err != nil && err != unix.EINVAL {
		return err
	}
	return nil
}

// errMissing says that there is no file to be extended.
var errMissing = task.Errorf(task.CodeNotFound, "there is no such file")

// extend adds to the end of a file. What was added is taken away again if not all could be.
func (f *files) extend(c *wire.Call, st *stream) (info task.FileInfo, err error) {
	fd, info, err := f.open(c.Path, unix.O_WRONLY|unix.O_APPEND)
	if err == unix.ENOENT || task.CodeOf(err) == task.CodeNotFound {
		return info, errMissing
	}
	if err != nil {
		return info, err
	}
	defer unix.Close(fd)
	if c.Options.Missing {
		return info, unix.EEXIST
	}
	if c.Options.Unchanged != nil && *c.Options.Unchanged != info.Identity {
		return info, task.Errorf(task.CodeChanged, "%s was changed meanwhile", shown(info.Path))
	}
	if err = st.fill(fd, c); err == nil {
		err = unix.Fsync(fd)
	}
	if err != nil {
		_ = unix.Ftruncate(fd, info.Size) // the first error is the one that counts
		return info, err
	}
	return describe(fd, info.Path)
}

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

// rename moves something to a name that does not exist.
func (f *files) rename(from, to string, gone func() bool) error {
	source, err := locate(from)
	if err != nil {
		return err
	}
	defer source.close()
	if err := f.removable(source.path()); err != nil {
		return err
	}
	target, err := f.makeParents(to, false, 0)
	if err != nil {
		return failure(to, err)
	}
	defer target.close()
	if err := f.removable(target.path()); err != nil {
		return err
	}
	if source.name == "" || target.name == "" {
		return task.Errorf(task.CodeDirectory, "a name is missing at the end of the path")
	}
	err = moveNew(source.dir, source.name, target.dir, target.name)
	if err == unix.EXDEV {
		err = f.moveAcross(source, target, gone)
	}
	if err == unix.EEXIST || err == unix.ENOTEMPTY {
		return task.Errorf(task.CodeExists, "there is a %s already", shown(target.path()))
	}
	return err
}

// moveAcross moves a regular file to another file system: it is copied, and removed if it still is the one that was.
func (f *files) moveAcross(source, target *located, gone func() bool) error {
	from, real, err := source.openLast(unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	info, err := describe(from, real)
	if err == nil {
		err = f.writable(real)
	}
	if err == nil {
		err = f.regular(&info, false)
	}
	if err != nil {
		return err
	}
	name := temporaryPrefix + rand.Text()
	to, err := unix.Openat(target.dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	if err = copyAll(to, from, gone); err == nil {
		err = unix.Fchmod(to, uint32(info.Mode.Perm()))
	}
	if err == nil {
		err = unix.Fsync(to)
	}
	if err == nil {
		err = moveNew(target.dir, name, target.dir, target.name)
	}
	if err != nil {
		_ = unix.Unlinkat(target.dir, name, 0) // the first error is the one that counts
		return err
	}
	var now unix.Stat_t
	err = unix.Fstatat(source.dir, source.name, &now, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || infoOf(&now, real).Identity != info.Identity {
		return task.Errorf(task.CodeChanged, "%s was changed while it was copied: both are there", shown(real))
	}
	return unix.Unlinkat(source.dir, source.name, 0)
}

func copyAll(to, from int, gone func() bool) error {
	taken := buffers.Get().(*[]byte)
	defer buffers.Put(taken)
	for !gone() {
		n, err := readNow(from, *taken)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = writeAll(to, (*taken)[:n])
		}
		if err != nil {
			return err
		}
	}
	return errStopped
}
