//go:build linux

package serve

import (
	"crypto/rand"
	"io"
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
