package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	lockWait  = 10 * time.Second
	lockStep  = 50 * time.Millisecond
	lockStale = 30 * time.Minute
)

// lockOwner is what a lock file says.
type lockOwner struct {
	PID     int       `json:"pid"`
	Created time.Time `json:"createdAt"`
}

// lockFile takes a lock that other processes see: a file that only one can create. One whose owner is gone is taken
// over. It is not re-entrant.
func lockFile(path string) (unlock func(), err error) {
	deadline := time.Now().Add(lockWait)
	for attempt := 1; ; attempt++ {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
		if err == nil {
			return holdLock(f, path)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if reclaim(path) {
			continue
		}
		if time.Now().After(deadline) {
			return nil, Errorf(CodeUnavailable, "%s is held by another process", path)
		}
		time.Sleep(min(time.Second, time.Duration(attempt)*lockStep))
	}
}

func holdLock(f *os.File, path string) (func(), error) {
	// Beside the file's existence: the kernel gives this one back whatever happens to the process.
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = json.NewEncoder(f).Encode(lockOwner{os.Getpid(), time.Now()})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), os.Remove(path), f.Close())
	}
	return func() {
		_ = os.Remove(path) // before it is let go of: nobody else's may be removed
		_ = f.Close()
	}, nil
}

// reclaim removes a lock whose owner has ended, or that is too old to be anybody's.
func reclaim(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	var owner lockOwner
	content, err := io.ReadAll(io.LimitReader(f, 4096))
	known := err == nil && json.Unmarshal(content, &owner) == nil && owner.PID > 0 && !owner.Created.IsZero()
	switch {
	case !known && time.Since(opened.ModTime()) <= lockStale:
		return false
	case known && alive(owner.PID) && time.Since(owner.Created) <= lockStale:
		return false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false // whatever it says, somebody holds it
	}
	// Whoever else takes the same lock over holds it by now, or waits for this one.
	if now, err := os.Lstat(path); err != nil || !os.SameFile(now, opened) {
		return true
	}
	return os.Remove(path) == nil
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
