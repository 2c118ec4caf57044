package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Errors of [Listen].
var (
	ErrPathTooLong = fmt.Errorf("the path of a socket has at most %d bytes on every system", maxPath)
	ErrInUse       = errors.New("another program is answering there")
)

// Listen binds a socket with mode 0600 inside a directory that must be ours with mode 0700. A socket of ours that
// nobody answers at is replaced; anything else at that path could be a trap that makes us delete a person's file.
func Listen(path string) (*net.UnixListener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("socket %s: %d bytes: %w", path, len(path), ErrPathTooLong)
	}
	if err := checkDirectory(filepath.Dir(path), 0o077); err != nil {
		return nil, err
	}
	// Between bind and chmod only the directory's mode protects the socket, which is why it is checked first.
	return listen(path, 0o600)
}

// ListenShared binds a socket that programs of every user can connect to, inside a directory that must be ours and that nobody else
// can write to. Whoever serves there asks the kernel who connected.
func ListenShared(path string) (*net.UnixListener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("socket %s: %d bytes: %w", path, len(path), ErrPathTooLong)
	}
	if err := checkDirectory(filepath.Dir(path), 0o022); err != nil {
		return nil, err
	}
	return listen(path, 0o666)
}

func listen(path string, mode fs.FileMode) (*net.UnixListener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, mode); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("protect %s: %w", path, err)
	}
	return listener, nil
}

// checkDirectory refuses a directory that other users could swap, or to whom it gives one of these rights: they could replace the
// socket with their own and read, or answer, what is asked there.
func checkDirectory(dir string, others fs.FileMode) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("directory of the socket: %w", err)
	}
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case info.Mode().Perm()&others != 0:
		return fmt.Errorf("%s has mode %04o: other users could enter or change it; run: chmod %o %s", dir, info.Mode().Perm(), 0o777&^others, dir)
	case !ownedByUs(info):
		return fmt.Errorf("%s belongs to another user", dir)
	}
	return nil
}

func removeStale(path string) error {
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
		_ = conn.Close()
		return fmt.Errorf("socket %s: %w", path, ErrInUse)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}

// checkAddress refuses to connect where somebody else could have put a socket for us to talk to.
func checkAddress(path string) error {
	if !filepath.IsAbs(path) || len(path) > maxPath {
		return fmt.Errorf("socket %q: not an absolute path of at most %d bytes", path, maxPath)
	}
	if err := checkDirectory(filepath.Dir(path), 0o077); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return fmt.Errorf("socket %s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket || !ownedByUs(info):
		return fmt.Errorf("%s is not a socket of ours", path)
	}
	return nil
}

// ExpandPath puts the home directory in the place of a leading "~/", as other programs write the path.
func ExpandPath(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	home, err := os.UserHomeDir()
	if !ok || err != nil {
		return path
	}
	return filepath.Join(home, rest)
}

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// peerUID asks the kernel which user is at the other end.
func peerUID(conn net.Conn) (int, error) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return 0, errors.New("not a local socket")
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("identify the other end: %w", err)
	}
	uid, inner := 0, error(nil)
	err = control.Control(func(fd uintptr) { uid, inner = credentials(int(fd)) })
	if err := errors.Join(err, inner); err != nil {
		return 0, fmt.Errorf("identify the other end: %w", err)
	}
	return uid, nil
}
