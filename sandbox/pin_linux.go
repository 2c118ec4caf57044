package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pin opens a real path without being able to use what is there: the descriptor names the file that was judged, whatever
// stands at the path later. A symbolic link anywhere on the way means that the path changed since it was resolved.
func pin(real string) (*os.File, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/", Err: err}
	}
	for name := range strings.SplitSeq(strings.Trim(real, "/"), "/") {
		if name == "" {
			continue
		}
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		_ = unix.Close(fd)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: real, Err: err}
		}
		fd = next
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT == unix.S_IFLNK {
			_ = unix.Close(fd)
			return nil, errors.Join(Errorf(CodeChanged, "%s was changed while it was looked at", real), err)
		}
	}
	return os.NewFile(uintptr(fd), real), nil
}

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

// ownerOf is who owns an open file.
func ownerOf(f *os.File) (User, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return User{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return User{int(stat.Uid), int(stat.Gid)}, nil
}
