//go:build unix

package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenInput opens the resolved place for a program to read from, as "<" of a command does. Unlike with [Open] a file
// may have been made there since it was resolved: an earlier part of the same command may do that, and the place is
// the same.
func OpenInput(r Resolved) (*os.File, error) {
	return openStream(r, func(dir int, base string) (*os.File, error) { return openRegular(dir, base, r.Real) })
}

// OpenOutput opens the resolved place for a program to write to, as ">" of a command does and, appending, ">>". A
// missing file is created (0666 less the umask). What it opens is a regular file without other names, reached without
// symbolic links; it is emptied only after that is sure.
func OpenOutput(r Resolved, appending bool) (*os.File, error) {
	return openStream(r, func(dir int, base string) (*os.File, error) {
		return openForWriting(dir, base, r.Real, appending)
	})
}

func openStream(r Resolved, open func(dir int, base string) (*os.File, error)) (*os.File, error) {
	if r.Kind != KindRegular && r.Kind != KindMissing {
		return nil, wrongKind(r)
	}
	dir, base, err := parentOf(r.Real)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, notDirectory(r.Real, err)
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	return open(dir, base)
}

// notDirectory says which element of a path is a file and no directory: "touch a && echo x > a/b" is a mistake and no
// swap. A symbolic link is one, since all had been removed from the path: then err stays as it is.
func notDirectory(real string, err error) error {
	for i := 1; i < len(real); i++ {
		if real[i] != '/' {
			continue
		}
		info, lookErr := os.Lstat(real[:i])
		switch {
		case lookErr != nil || info.Mode()&fs.ModeSymlink != 0:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is a %s, not a directory: %w (%w)", real[:i], kindOf(info.Mode()), ErrBadPath, unix.ENOTDIR)
		}
	}
	return err
}

func openForWriting(dir int, base, real string, appending bool) (*os.File, error) {
	// O_NONBLOCK: a FIFO that was put there in between must not hang the gate, nor a terminal become ours.
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	if appending {
		flags |= unix.O_APPEND
	}
	fd, err := openatRetry(dir, base, flags, 0o666)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: real, Err: changedBy(err)}
	}
	f := os.NewFile(uintptr(fd), real)
	if err := prepareForWriting(fd, real, appending); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func prepareForWriting(fd int, real string, appending bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: real, Err: err}
	}
	if kind := kindOfMode(uint32(st.Mode)); kind != KindRegular {
		return fmt.Errorf("%s is now a %s: %w", real, kind, ErrChanged)
	}
	if st.Nlink > 1 {
		// As with WriteFile: a second name may stand in a guarded place.
		return fmt.Errorf("%s: %w", real, ErrLinked)
	}
	if !appending && st.Size > 0 {
		if err := unix.Ftruncate(fd, 0); err != nil {
			return &os.PathError{Op: "truncate", Path: real, Err: err}
		}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		return &os.PathError{Op: "open", Path: real, Err: err}
	}
	return nil
}
