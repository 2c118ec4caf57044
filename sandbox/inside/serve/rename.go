//go:build linux

package serve

import (
	"crypto/rand"
	"io"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/task"
)

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
