package undo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Fits says whether a workspace can be kept, without reading a file: nil, [ErrTooMany] or [ErrTooMuch], or what keeps it from being
// looked through.
func (s *Store) Fits(ctx context.Context, workspace string) error {
	dir, err := os.OpenFile(workspace, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	now, err := stampAt(dir)
	if err != nil {
		return err
	}
	m := &scan{ctx: ctx, limits: s.limits, device: now.device}
	if err := m.measure(dir); err != nil {
		return fmt.Errorf("keep %s: %w", workspace, err)
	}
	return nil
}

// measure counts what is in an open directory. What vanishes meanwhile counts nothing.
func (s *scan) measure(dir *os.File) error {
	for {
		names, err := dir.Readdirnames(4096)
		if s.entries += len(names); s.entries > s.limits.Entries {
			return ErrTooMany
		}
		for _, name := range names {
			if err := s.measureEntry(dir, name); err != nil {
				return err
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
	}
}

func (s *scan) measureEntry(dir *os.File, name string) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	var st unix.Stat_t
	if unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil
	}
	now := stampOf(&st)
	if now.is(unix.S_IFREG) && now.size <= s.limits.File {
		if s.bytes += now.size; s.bytes > s.limits.Total {
			return ErrTooMuch
		}
	}
	if !now.is(unix.S_IFDIR) || now.device != s.device {
		return nil
	}
	sub, err := openIn(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil
	case err != nil:
		return err
	}
	defer sub.Close()
	return s.measure(sub)
}
