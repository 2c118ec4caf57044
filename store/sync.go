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
// asks, so an fsync that begins later covers it; one fsync serves all who
// asked while the previous one ran. When SQLite has moved frames into the main
// file, it has synced that file itself.
type syncer struct {
	path  string // of the log
	delay time.Duration
	tell  func(error)
	wake  chan struct{} // capacity 1
	quit  chan struct{}
	ended chan struct{}

	mu      sync.Mutex
	waiting []waiter // for commits not yet synced
	dirty   bool     // commits since the last fsync began
	broken  error    // the fsync that failed, until recovered

	log *os.File // used by run only, and by stop after it
}

// waiter is someone who wants to know when the next fsync has ended.
type waiter struct {
	done chan error  // buffered
	tell func(error) // instead of done
}

func answer(waiting []waiter, err error) {
	for _, w := range waiting {
		if w.tell != nil {
			w.tell(err)
		} else {
			w.done <- err
		}
	}
}

func newSyncer(path string, delay time.Duration, tell func(error)) *syncer {
	return &syncer{
		path: path, delay: delay, tell: tell,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{}),
	}
}

// request asks for an fsync: at once for those who wait, soon for the others.
func (s *syncer) request(waiting []waiter) {
	s.mu.Lock()
	notify := !s.dirty || len(waiting) > 0
	s.dirty = true
	s.waiting = append(s.waiting, waiting...)
	s.mu.Unlock()
	if notify {
		s.notify()
	}
}

func (s *syncer) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *syncer) run() {
	defer close(s.ended)
	timer := time.NewTimer(s.delay)
	timer.Stop()
	armed := false
	for {
		select {
		case <-s.wake:
			if !s.urgent() {
				if !armed {
					timer.Reset(s.delay)
					armed = true
				}
				continue
			}
		case <-timer.C:
		case <-s.quit:
			return
		}
		timer.Stop()
		armed = false
		s.round()
	}
}

func (s *syncer) urgent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

// round is one fsync and its answers.
func (s *syncer) round() {
	s.mu.Lock()
	waiting, dirty, broken := s.waiting, s.dirty, s.broken
	s.waiting, s.dirty = nil, false
	s.mu.Unlock()
	if !dirty {
		return
	}
	if broken != nil {
		// These commits lie behind frames that were lost: a sync that
		// succeeds now would not bring those back.
		answer(waiting, broken)
		return
	}
	err := s.sync()
	if err != nil {
		err = fmt.Errorf("sync state to disk: %w", err)
		s.mu.Lock()
		s.broken = err
		s.mu.Unlock()
		if s.tell != nil && len(waiting) == 0 {
			s.tell(err)
		}
	}
	answer(waiting, err)
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
			return s.log.Sync()
		}
		_ = s.close()
	}
	if s.log, err = os.OpenFile(s.path, os.O_RDWR, 0); err != nil {
		return err
	}
	return errors.Join(s.log.Sync(), syncDir(filepath.Dir(s.path)))
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
}

// stop syncs what is left and ends the goroutine.
func (s *syncer) stop() error {
	close(s.quit)
	<-s.ended
	s.round()
	return errors.Join(s.failure(), s.close())
}
