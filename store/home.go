package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// HomeError says why a home directory, or a file in it, cannot be used.
type HomeError struct {
	Path string
	// Problem is one clause, Hint how a person mends it.
	Problem, Hint string
	Err           error // the system's error, if one was the cause
}

func (e *HomeError) Error() string {
	text := "home " + e.Path + ": " + e.Problem
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

func (e *HomeError) Unwrap() error { return e.Err }

// LockedError says that another daemon has the home.
type LockedError struct {
	Home string
	PID  int // 0 when the other daemon has not written it yet
}

func (e *LockedError) Error() string {
	who := "another daemon"
	if e.PID > 0 {
		who = "another daemon, pid " + strconv.Itoa(e.PID) + ","
	}
	return fmt.Sprintf("home %s: %s is running with it (stop it first, or set TOOLWARD_HOME to use another home)", e.Home, who)
}

// prepareHome makes sure that the home exists, belongs to us alone and can be
// written, and returns its real path. A home of another user is refused:
// whoever owns the directory can exchange the database, and with it every
// grant, under a running daemon.
func prepareHome(home string) (string, error) {
	if home == "" {
		return "", &HomeError{Path: `""`, Problem: "no path given", Hint: "set TOOLWARD_HOME or HOME"}
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return "", fmt.Errorf("home %s: %w", home, err)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", unusable(home, "cannot be created", err)
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		return "", unusable(home, "cannot be resolved", err)
	}
	info, err := os.Stat(home)
	if err != nil {
		return "", unusable(home, "cannot be read", err)
	}
	if !info.IsDir() {
		return "", &HomeError{Path: home, Problem: "is not a directory"}
	}
	if err := ownedByUs(home, info); err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(home, 0o700); err != nil {
			return "", unusable(home, "is open to other users and cannot be closed", err)
		}
	}
	return home, nil
}

// lockPatience bounds how long the lock of a daemon that has ended may last. A process that it was just starting when it was
// killed holds the lock, too, until it is scheduled once more and ends.
const lockPatience = 5 * time.Second

// lockHome takes the lock that makes us the only daemon of this home. The
// kernel releases it when the last process that has it ends, however it ends, so
// a stale lock cannot stay.
func lockHome(home string) (*os.File, error) {
	path := filepath.Join(home, "lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, unusable(home, "cannot be written", err)
	}
	if err := takeLock(home, file); err != nil {
		_ = file.Close()
		return nil, err
	}
	if err := errors.Join(file.Chmod(0o600), writePID(file)); err != nil {
		_ = file.Close()
		return nil, unusable(home, "cannot be written", err)
	}
	return file, nil
}

// takeLock waits only for a daemon that does not run any more.
func takeLock(home string, file *os.File) error {
	for end := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return unusable(home, "cannot be locked", err)
		}
		pid := readPID(file)
		if ended := pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH); !ended || time.Now().After(end) {
			return &LockedError{Home: home, PID: pid}
		}
	}
}

func readPID(file *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// prepareFile creates the database file with mode 0600 before SQLite does, so
// that there is no moment at which others can open it; SQLite gives the log
// beside it the same mode. Nothing in this process may open the file again:
// closing a second descriptor would drop SQLite's locks on it.
func prepareFile(path string) error {
	err := trustedFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return unusable(filepath.Dir(path), "cannot be written", err)
	}
	return file.Close()
}

// trustedFile checks that the database is a plain file of ours that nobody
// else can read: a symbolic link or a foreign file there would let someone
// else supply grants.
func trustedFile(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return unusable(filepath.Dir(path), "has no readable "+filepath.Base(path), err)
	}
	if !info.Mode().IsRegular() {
		return &HomeError{Path: path, Problem: "is not a plain file", Hint: "move it away"}
	}
	if err := ownedByUs(path, info); err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return unusable(path, "is open to other users and cannot be closed", err)
		}
	}
	return nil
}

func ownedByUs(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return &HomeError{Path: path, Problem: "has an owner that cannot be determined"}
	}
	if int(stat.Uid) != os.Geteuid() {
		return &HomeError{
			Path:    path,
			Problem: fmt.Sprintf("belongs to uid %d, but this process runs as uid %d", stat.Uid, os.Geteuid()),
			Hint:    "run Toolward as its owner, or set TOOLWARD_HOME to a directory of your own",
		}
	}
	return nil
}

// unusable adds the hint that fits a system error.
func unusable(path, problem string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EROFS):
		hint = "the file system is read-only; set TOOLWARD_HOME to a directory that can be written"
	case errors.Is(err, fs.ErrPermission):
		hint = "give yourself write permission, or set TOOLWARD_HOME to a directory of your own"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint = "the disk is full; free some space"
	case errors.Is(err, syscall.ELOOP):
		hint = "it is a symbolic link; move it away"
	}
	return &HomeError{Path: path, Problem: problem, Hint: hint, Err: err}
}
