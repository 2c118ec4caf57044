package authority

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/ownfile"
)

// maxBytes bounds the file: the longest statement, a whole exec-approvals.json, has a megabyte.
const maxBytes = 8 << 20

// replace puts new content in place of the file, as a whole or not at all.
func replace(dir string, content []byte) (err error) {
	fd, err := ownfile.OpenDir(dir)
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
