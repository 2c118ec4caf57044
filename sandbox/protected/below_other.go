//go:build !linux

package protected

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

func reopen(pinned *os.File) (*os.File, error) { return os.Open(pinned.Name()) }

func openBelow(dir *os.File, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir.Name(), name), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}

func readBelow(dir *os.File, name string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(dir.Name(), name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fs.ErrInvalid, err)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

func stateOf(dir *os.File, name string) (fileState, error) {
	info, err := os.Lstat(filepath.Join(dir.Name(), name))
	if err != nil {
		return fileState{}, err
	}
	state := fileState{kind: info.Mode().Type(), changed: info.ModTime()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		state.device, state.inode = uint64(stat.Dev), stat.Ino // its type differs
	}
	return state, nil
}

// No sandbox is made on this system, so that nothing is ever moved.
func quarantine(*os.File, string) (moved string, err error) { return "", errors.ErrUnsupported }

func openLocked(dir *os.File, name string) (*os.File, error) { return openBelow(dir, name) }

func leadsBelow(*os.File, string) bool { return false }
