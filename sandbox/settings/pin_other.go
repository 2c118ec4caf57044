//go:build !linux

package settings

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/toolward/toolward/sandbox"
)

// pin opens a path. Outside Linux engines mount by path, in a machine of their own, and check again what they mounted.
func pin(real string) (*os.File, error) {
	if now, err := filepath.EvalSymlinks(real); err != nil {
		return nil, err
	} else if now != real {
		return nil, sandbox.Errorf(sandbox.CodeChanged, "%s was changed while it was looked at", real)
	}
	return os.OpenFile(real, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

func ownerOf(f *os.File) (sandbox.User, error) {
	info, err := f.Stat()
	if err != nil {
		return sandbox.User{}, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return sandbox.User{UID: int(stat.Uid), GID: int(stat.Gid)}, nil
	}
	return sandbox.User{UID: os.Getuid(), GID: os.Getgid()}, nil
}
