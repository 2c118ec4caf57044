package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// SocketName is the file name of the local socket under the home directory.
const SocketName = "toolward.sock"

// maxSocketPath is the longest path, in bytes, that every supported system can bind (macOS: 104 with its NUL).
const maxSocketPath = 103

// listenSocket binds the local socket with mode 0600 inside home, which must be a directory of ours with mode 0700.
// The caller holds the home's daemon lock, so an existing socket is a dead daemon's; it is removed only if it really
// is a socket and ours. Anything else at that path could be a trap that makes us delete a person's file.
func listenSocket(home string) (*net.UnixListener, error) {
	path := filepath.Join(home, SocketName)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket %s: the path has %d bytes, at most %d work on every system; choose a shorter TOOLWARD_HOME", path, len(path), maxSocketPath)
	}
	if err := checkHome(home); err != nil {
		return nil, err
	}
	if err := removeStaleSocket(path); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// Between bind and chmod only the directory's mode protects the socket, which is why it is checked first.
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return nil, fmt.Errorf("protect %s: %w", path, err)
	}
	return listener, nil
}

// checkHome refuses a home that other users could enter or swap: they could replace the socket with their own and
// answer the hook program's questions.
func checkHome(home string) error {
	info, err := os.Lstat(home)
	if err != nil {
		return fmt.Errorf("home %s: %w", home, err)
	}
	switch {
	case !info.IsDir():
		return fmt.Errorf("home %s is not a directory", home)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("home %s has mode %04o: other users could enter it; run: chmod 700 %s", home, info.Mode().Perm(), home)
	case !ownedByUs(info):
		return fmt.Errorf("home %s belongs to another user", home)
	}
	return nil
}

func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket %s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is in the way: it is not a socket, so it is not removed", path)
	case !ownedByUs(info):
		return fmt.Errorf("%s is in the way: the socket belongs to another user, so it is not removed", path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var dialer net.Dialer
	if conn, err := dialer.DialContext(ctx, "unix", path); err == nil {
		conn.Close()
		return fmt.Errorf("another program is answering on %s; is toolward already running?", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
