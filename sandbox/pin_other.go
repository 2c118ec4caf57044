//go:build !linux

package sandbox

import (
	"os"
	"path/filepath"
	"syscall"
)

// pin opens a path. Outside Linux engines mount by path, in a machine of their own, and check again what they mounted.
func pin(real string) (*os.File, error) {
	if now, err := filepath.EvalSymlinks(real); err != nil {
		return nil, err
	} else if now != real {
		return nil, Errorf(CodeChanged, "%s was changed while it was looked at", real)
	}
	return os.OpenFile(real, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

func ownerOf(f *os.File) (User, error) {
	info, err := f.Stat()
	if err != nil {
		return User{}, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return User{int(stat.Uid), int(stat.Gid)}, nil
	}
	return User{os.Getuid(), os.Getgid()}, nil
}
