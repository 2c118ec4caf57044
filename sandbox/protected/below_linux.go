package protected

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// reopen opens a pinned directory to be read.
func reopen(pinned *os.File) (*os.File, error) {
	fd, err := unix.Openat(int(pinned.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: pinned.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), pinned.Name()), nil
}

// openBelow opens a directory in another one, if it is one and no symbolic link.
func openBelow(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir.Name() + "/" + name, Err: err}
	}
	return os.NewFile(uintptr(fd), dir.Name()+"/"+name), nil
}

// readBelow reads up to limit bytes of a regular file in a directory. Nothing else is waited for: a FIFO would never end.
func readBelow(dir *os.File, name string, limit int64) ([]byte, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir.Name() + "/" + name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fs.ErrInvalid, err)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// stateOf is the state of an entry of a directory, of a symbolic link itself; with "" that of the directory.
func stateOf(dir *os.File, name string) (fileState, error) {
	var stat unix.Stat_t
	err := error(nil)
	if name == "" {
		err = unix.Fstat(int(dir.Fd()), &stat)
	} else {
		err = unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return fileState{}, &os.PathError{Op: "stat", Path: dir.Name() + "/" + name, Err: err}
	}
	state := fileState{device: stat.Dev, inode: stat.Ino, changed: time.Unix(stat.Ctim.Unix())}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		state.kind = fs.ModeDir
	case unix.S_IFLNK:
		state.kind = fs.ModeSymlink
	case unix.S_IFREG:
	default:
		state.kind = fs.ModeIrregular
	}
	return state, nil
}
