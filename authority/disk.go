package authority

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxBytes bounds the file: the longest statement, a whole exec-approvals.json, has a megabyte.
const maxBytes = 8 << 20

// read is the content of the file, if it is a plain one that nobody else can write: with a link somebody else would choose what
// this home has signed.
func read(dir string) ([]byte, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fd, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	at, err := unix.Openat(fd, FileName, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(at), path)
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 1 {
		return nil, fmt.Errorf("%s is not a plain file of one name", path)
	}
	if err := trusted(path, &st); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && len(content) > maxBytes {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxBytes)
	}
	return content, err
}

func openDir(dir string) (int, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil {
		err = trusted(dir, &st)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func trusted(path string, st *unix.Stat_t) error {
	switch {
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to uid %d, not to this process's uid %d", path, st.Uid, os.Geteuid())
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%s can be written by other users: chmod go-w it", path)
	}
	return nil
}

// replace puts new content in place of the file, as a whole or not at all.
func replace(dir string, content []byte) (err error) {
	fd, err := openDir(dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	name := "." + FileName + "." + rand.Text()
	at, err := unix.Openat(fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "create", Path: filepath.Join(dir, name), Err: err}
	}
	file := os.NewFile(uintptr(at), name)
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = unix.Renameat(fd, name, fd, FileName)
	}
	if err != nil {
		return errors.Join(err, unix.Unlinkat(fd, name, 0))
	}
	return unix.Fsync(fd)
}
