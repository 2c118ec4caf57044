package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// syncer brings commits to the disk: it fsyncs SQLite's write-ahead log on a
// descriptor of its own. A commit has written its frames to the log before it
// is counted here, so an fsync that begins later covers it; one fsync serves
// all who came while the previous one ran. When SQLite has moved frames into
// the main file, it has synced that file itself.
type syncer struct {
	path  string // of the log
	delay time.Duration
	tell  func(error)
	later *time.Timer // syncs what nobody waits for

	mu      sync.Mutex
	ready   sync.Cond // the fsync that ran has ended
	busy    bool      // one is running
	count   uint64    // commits
	safe    uint64    // of these on disk
	planned uint64    // the timer will see to it that these are
	broken  error     // the fsync that failed, until recovered

	log *os.File // used by whoever has set busy
}

func newSyncer(path string, delay time.Duration, tell func(error)) *syncer {
	s := &syncer{path: path, delay: delay, tell: tell}
	s.ready.L = &s.mu
	s.later = time.AfterFunc(time.Hour, s.overdue)
	s.later.Stop()
	return s
}

// committed counts a commit, which is then on disk within the delay, and
// returns its number.
func (s *syncer) committed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if s.planned <= s.safe { // nothing is planned, or somebody waited for it
		s.planned = s.count
		s.later.Reset(s.delay)
	}
	return s.count
}

// latest is the number of the last commit.
func (s *syncer) latest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// overdue syncs for those who do not wait.
func (s *syncer) overdue() {
	if err := s.through(s.latest()); err != nil && s.tell != nil {
		s.tell(err)
	}
}

// through returns when a commit is on disk, or can no longer get there.
func (s *syncer) through(commit uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy && s.safe < commit && s.broken == nil {
		s.ready.Wait()
	}
	switch {
	case s.safe >= commit:
		return nil
	case s.broken != nil:
		// This commit lies behind frames that were lost: a sync that succeeds
		// now would not bring those back.
		return s.broken
	}
	s.busy = true
	upTo := s.count
	s.mu.Unlock()
	err := s.sync()
	s.mu.Lock()
	s.busy = false
	if err != nil {
		s.broken = fmt.Errorf("sync state to disk: %w", err)
	} else {
		s.safe = upTo
	}
	s.ready.Broadcast()
	return s.broken
}

// sync fsyncs the log. The file is compared with its name every time: SQLite
// replaces the log when its last connection closes, and syncing a file that is
// no longer the log would promise what is not so.
func (s *syncer) sync() error {
	named, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s.close() // no log: everything is in the main file, and synced
	}
	if err != nil {
		return err
	}
	if s.log != nil {
		opened, err := s.log.Stat()
		if err == nil && os.SameFile(named, opened) {
			return syncFile(s.log)
		}
		_ = s.close()
	}
	if s.log, err = os.OpenFile(s.path, os.O_RDWR, 0); err != nil {
		return err
	}
	return errors.Join(syncFile(s.log), syncDir(filepath.Dir(s.path)))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (s *syncer) close() error {
	if s.log == nil {
		return nil
	}
	err := s.log.Close()
	s.log = nil
	return err
}

// failure is the fsync error that has not been recovered from.
func (s *syncer) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// recovered is called when everything committed is known to be in the main
// file and synced.
func (s *syncer) recovered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = nil
	s.safe = s.count
}

// stop syncs what is left. Nothing may be committed any more.
func (s *syncer) stop() error {
	s.later.Stop()
	err := s.through(s.latest())
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy {
		s.ready.Wait()
	}
	return errors.Join(err, s.close())
}
