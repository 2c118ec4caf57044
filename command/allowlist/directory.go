package allowlist

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/ownfile"
	"github.com/toolward/toolward/schema"
)

// stateDir is the open directory of the file. All work goes through its descriptor, so that nobody can put another
// directory or a link in its place half-way.
type stateDir struct {
	path     string
	fd       int
	lockFile *os.File
}

// openStateDir opens the directory. If it is not there, it is made to be written to; whoever only reads gets
// [fs.ErrNotExist]. A link in its place is refused: it could lead to a list of allowed commands that somebody else has
// written.
func openStateDir(path string, write bool) (*stateDir, error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open(path, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if !write {
			return nil, err
		}
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
		fd, err = unix.Open(path, flags, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open the state directory, which must be a directory and no link,", Path: path, Err: notMissing(err)}
	}
	d := &stateDir{path: path, fd: fd}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		d.close()
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if err := ownfile.Check(path, &st); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// notMissing keeps a directory that vanishes between two looks from passing for a file that was never there.
func notMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(err.Error())
	}
	return err
}

func (d *stateDir) close() {
	if d.lockFile != nil {
		_ = d.lockFile.Close() // and with it the lock
	}
	_ = unix.Close(d.fd)
}

// read is the content of the file.
func (d *stateDir) read() ([]byte, error) {
	file, err := d.open(FileName, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := ownfile.Plain(file.Name(), int(file.Fd())); err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode()&0o044 != 0 {
		_ = file.Chmod(0o600) // it holds a token; a file system without modes cannot keep it better
	}
	content, err := io.ReadAll(io.LimitReader(file, schema.MaxBytes+1))
	if err == nil && len(content) > schema.MaxBytes {
		return nil, fmt.Errorf("%s is longer than %d bytes", file.Name(), schema.MaxBytes)
	}
	return content, notMissing(err)
}

// open opens a file of the directory; a link is an error.
func (d *stateDir) open(name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	path := d.path + "/" + name
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// lockWait is how long a change waits for that of another process, which takes milliseconds.
const lockWait = 10 * time.Second

// lock keeps other processes from changing the file until close. The kernel gives the lock up when the process ends,
// however it ends.
func (d *stateDir) lock(ctx context.Context) error {
	file, err := d.open("exec-approvals.lock", unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return err
	}
	d.lockFile = file
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return &os.PathError{Op: "lock", Path: file.Name(), Err: err}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another program holds %s: %w", file.Name(), ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// replace puts new content in place of the file, as a whole or not at all: whoever reads, and whatever dies when, finds
// the old bytes or the new ones. unchanged is asked at the last moment, for tools that do not know the lock.
func (d *stateDir) replace(content []byte, unchanged func(now []byte) bool) (err error) {
	d.sweep()
	name := temporary()
	file, err := d.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = unix.Unlinkat(d.fd, name, 0)
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(0o600), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", FileName, err)
	}
	now, err := d.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		now = nil // it could not be read before either, and a person replaces it
	}
	if !unchanged(now) {
		return ErrBaseChanged
	}
	if err := unix.Renameat(d.fd, name, d.fd, FileName); err != nil {
		return &os.PathError{Op: "rename to", Path: d.path + "/" + FileName, Err: err}
	}
	if err := unix.Fsync(d.fd); err != nil {
		return &os.PathError{Op: "sync", Path: d.path, Err: err}
	}
	return nil
}

// sweep removes what writers left that died half-way. The lock is held, so none of them is at work.
func (d *stateDir) sweep() {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporaryPrefix) {
			_ = unix.Unlinkat(d.fd, e.Name(), 0)
		}
	}
}

// temporary is a name for a file that is about to become another one.
func temporary() string { return temporaryPrefix + rand.Text() }

const temporaryPrefix = "." + FileName + "."
