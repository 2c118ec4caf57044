// Package ownfile reads files that decide what is allowed: only the user that the process runs as, and root, may be able to
// choose what stands in them. A link, a second name, another owner or a mode that lets others write would let somebody else choose.
package ownfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Read is the content of a plain file of at most limit bytes. It fails with [fs.ErrNotExist] only if there is no such file; every
// other error says what is wrong with it, and how that is mended.
func Read(path string, limit int64) ([]byte, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	content, err := read(path, limit)
	if errors.Is(err, fs.ErrNotExist) { // it vanished between two looks, which must not pass for a file that was never there
		err = errors.New(err.Error())
	}
	return content, err
}

func read(path string, limit int64) ([]byte, error) {
	dir, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	// O_NONBLOCK: to open a pipe that nobody writes to waits for ever.
	fd, err := unix.Openat(dir, filepath.Base(path), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s is a link, and whoever can write where it leads would choose what counts: put a plain file in its place", path)
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if err := Plain(path, fd); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return content, err
}

// OpenDir opens a directory in which nobody else can put a file in the place of another. The caller closes it.
func OpenDir(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		err = Check(path, &st)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// Plain refuses an open file that is none, that has a second name, or that others can write.
func Plain(path string, fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s is not a plain file", path)
	case st.Nlink > 1:
		// Under a second name, in a workspace say, an agent may write what it may not under this one.
		return fmt.Errorf("%s has a second name (a hard link), under which it can be written: copy it, and put the copy in its place", path)
	}
	return Check(path, &st)
}

// Check refuses what others than this process's user and root can write.
func Check(path string, st *unix.Stat_t) error {
	switch {
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to uid %d, not to this process's uid %d: chown it", path, st.Uid, os.Geteuid())
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%s can be written by other users: chmod go-w it", path)
	}
	return nil
}
