//go:build unix

package place

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Open opens for reading the regular file that was resolved, and nothing else: no component may be a symbolic
// link by now, and what is opened must be a regular file (a FIFO or device put there in between is refused
// without blocking). The error wraps ErrChanged when something was swapped.
func Open(r Resolved) (*os.File, error) {
	if r.Kind != KindRegular {
		return nil, wrongKind(r)
	}
	dir, base, err := parentOf(r.Real)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	return openRegular(dir, base, r.Real)
}

// Content is what a file holds, and its state when it was read.
type Content struct {
	Data  []byte
	Stamp Stamp
	Mode  os.FileMode // permission bits
}

// ReadFile reads the resolved file, at most limit bytes: a larger file is ErrTooLarge before anything is read,
// so that a sparse file of many gigabytes costs nothing.
func ReadFile(r Resolved, limit int64) (Content, error) {
	f, err := Open(r)
	if err != nil {
		return Content{}, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Content{}, &os.PathError{Op: "stat", Path: r.Real, Err: err}
	}
	if st.Size > limit {
		return Content{}, fmt.Errorf("%s has %d bytes, more than %d: %w", r.Real, st.Size, limit, ErrTooLarge)
	}
	content := Content{Stamp: stampFrom(&st), Mode: os.FileMode(st.Mode & 0o777)} // widths differ between systems
	content.Data, err = appendAll(make([]byte, 0, st.Size+1), io.LimitReader(f, limit+1))
	if err != nil {
		return Content{}, fmt.Errorf("read %s: %w", r.Real, err)
	}
	if int64(len(content.Data)) > limit { // it grew, or it is a /proc file that reports no size
		return Content{}, fmt.Errorf("%s has more than %d bytes: %w", r.Real, limit, ErrTooLarge)
	}
	return content, nil
}

func appendAll(data []byte, r io.Reader) ([]byte, error) {
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// OpenDir opens the resolved directory for listing. Its entries are opened with OpenChild and OpenChildDir,
// which makes a whole tree walk free of races: every step starts from an open directory.
func OpenDir(r Resolved) (*os.File, error) {
	if r.Kind != KindDirectory {
		return nil, fmt.Errorf("%s is a %s, not a directory", r.Real, r.Kind)
	}
	if r.Real == "/" {
		return os.Open("/")
	}
	dir, base, err := parentOf(r.Real)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	return openDirectoryIn(dir, base, r.Real)
}

// SameDirectory refuses a directory that was exchanged for another one of the same name since it was resolved.
func SameDirectory(dir *os.File, r Resolved) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return &os.PathError{Op: "stat", Path: r.Real, Err: err}
	}
	if uint64(st.Dev) != r.Device || st.Ino != r.Inode { // widths differ between systems
		return fmt.Errorf("%s: %w", r.Real, ErrChanged)
	}
	return nil
}

// OpenChild opens a regular file by its name in an open directory; a symbolic link is refused.
func OpenChild(dir *os.File, name string) (*os.File, error) {
	if err := childName(name); err != nil {
		return nil, err
	}
	return openRegular(int(dir.Fd()), name, dir.Name()+"/"+name)
}

// OpenChildDir opens a directory by its name in an open directory; a symbolic link is refused.
func OpenChildDir(dir *os.File, name string) (*os.File, error) {
	if err := childName(name); err != nil {
		return nil, err
	}
	return openDirectoryIn(int(dir.Fd()), name, dir.Name()+"/"+name)
}

func childName(name string) error {
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("%q is not the name of an entry: %w", name, ErrBadPath)
	}
	for i := range len(name) {
		if name[i] == '/' || name[i] == 0 {
			return fmt.Errorf("%q is not a single name: %w", name, ErrBadPath)
		}
	}
	return nil
}

func openDirectoryIn(dir int, base, real string) (*os.File, error) {
	fd, err := openatRetry(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: real, Err: changedBy(err)}
	}
	return os.NewFile(uintptr(fd), real), nil
}

func openRegular(dir int, base, real string) (*os.File, error) {
	// O_NONBLOCK: opening a FIFO that was put there in between must not hang the gate.
	fd, err := openatRetry(dir, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: real, Err: changedBy(err)}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return nil, &os.PathError{Op: "stat", Path: real, Err: err}
	}
	if kind := kindOfMode(uint32(st.Mode)); kind != KindRegular {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("%s is now a %s: %w", real, kind, ErrChanged)
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		_ = unix.Close(fd)
		return nil, &os.PathError{Op: "open", Path: real, Err: err}
	}
	return os.NewFile(uintptr(fd), real), nil
}

func wrongKind(r Resolved) error {
	switch r.Kind {
	case KindMissing:
		return &os.PathError{Op: "open", Path: r.Real, Err: os.ErrNotExist}
	case KindRegular:
		return nil
	}
	return fmt.Errorf("%s is a %s: %w", r.Real, r.Kind, ErrNotFile)
}

// Stamp tells one state of a file from another: the same stamp means that nobody wrote in between (as far as
// time stamps can tell).
type Stamp struct {
	Device, Inode     uint64
	Size              int64
	Modified, Changed int64 // nanoseconds since 1970
}

// StampOf is the stamp of an open file.
func StampOf(f *os.File) (Stamp, error) {
	stamp, _, err := stampOf(f)
	return stamp, err
}

func stampOf(f *os.File) (Stamp, int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Stamp{}, 0, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return stampFrom(&st), st.Size, nil
}

func stampFrom(st *unix.Stat_t) Stamp {
	return Stamp{
		Device: uint64(st.Dev), Inode: st.Ino, Size: st.Size, // widths differ between systems
		Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(),
	}
}
