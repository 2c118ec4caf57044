package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/toolward/toolward/sandbox"
)

const (
	lockWait  = 10 * time.Second
	lockStep  = 50 * time.Millisecond
	lockStale = 30 * time.Minute
	// lockNameless is how long a lock may say nothing: whoever makes one writes it at once.
	lockNameless = 2 * time.Second
)

// lockOwner is what a lock file says.
type lockOwner struct {
	PID     int       `json:"pid"`
	Created time.Time `json:"createdAt"`
	// Held: the kernel holds it, too. Then that alone counts: a process id is given again, in a container soon, and to
	// the very next gateway.
	Held bool `json:"held"`
}

// errLockLost means that somebody took a new lock for one that was left.
var errLockLost = errors.New("the lock was taken over")

// lockFile takes a lock that other processes see: a file that only one can create. One whose owner is gone is taken
// over. It is not re-entrant.
func lockFile(path string) (unlock func(), err error) {
	deadline := time.Now().Add(lockWait)
	for attempt := 1; ; attempt++ {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
		switch {
		case err == nil:
			if unlock, err = holdLock(f, path); !errors.Is(err, errLockLost) {
				return unlock, err
			}
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case reclaim(path, lockNameless):
			continue
		}
		if time.Now().After(deadline) {
			return nil, sandbox.Errorf(sandbox.CodeUnavailable, "%s is held by another process", path)
		}
		time.Sleep(min(time.Second, time.Duration(attempt)*lockStep))
	}
}

func holdLock(f *os.File, path string) (func(), error) {
	// Beside the file's existence: the kernel gives this one back whatever happens to the process.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(errLockLost, f.Close())
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), os.Remove(path), f.Close())
	}
	if !isStill(f, path) {
		return nil, errors.Join(errLockLost, f.Close())
	}
	if err := json.NewEncoder(f).Encode(lockOwner{os.Getpid(), time.Now(), true}); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), os.Remove(path), f.Close())
	}
	return func() {
		_ = os.Remove(path) // before it is let go of: nobody else's may be removed
		_ = f.Close()
	}, nil
}

// isStill reports whether an open file is what stands at its path.
func isStill(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(now, opened)
}

// reclaim removes a lock whose owner has ended, or that is too old to be anybody's: after nameless, if it says nothing.
func reclaim(path string, nameless time.Duration) bool {
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
	case !known && time.Since(opened.ModTime()) < nameless:
		return false
	case known && !owner.Held && alive(owner.PID) && time.Since(owner.Created) <= lockStale:
		return false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false // whatever it says, somebody holds it
	}
	// Whoever else takes the same lock over holds it by now, or waits for this one.
	if !isStill(f, path) {
		return true
	}
	return os.Remove(path) == nil
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
