package identity

import (
	"fmt"
	"time"
)

// Limits on wrong passphrases and setup codes.
const (
	freeFailures  = 5                // per source, before it has to wait
	firstWait     = 15 * time.Second // doubles with each further failure
	longestWait   = 15 * time.Minute
	globalWindow  = 10 * time.Minute
	globalAllowed = 50   // failures of all sources within the window
	maxSources    = 1024 // remembered
)

// RateError says that there were too many wrong attempts.
type RateError struct {
	Wait   time.Duration // until the next attempt is looked at
	Global bool          // because of attempts from everywhere
}

func (e *RateError) Error() string {
	who := "from here"
	if e.Global {
		who = "altogether; somebody may be guessing"
	}
	return fmt.Sprintf("too many wrong attempts %s: try again in %s", who, e.Wait.Round(time.Second))
}

// failures limits guessing: per source, and over all sources so that inventing sources does not help. The caller
// holds a lock.
type failures struct {
	apart   bool // nobody can invent a source, so each counts for itself alone
	sources map[string]*source
	recent  []time.Time // of all failures within globalWindow, oldest first
}

type source struct {
	count int
	last  time.Time
}

// check returns an error while attempts from source are not looked at.
func (f *failures) check(from string, now time.Time) error {
	f.prune(now)
	if !f.apart && len(f.recent) >= globalAllowed {
		wait := f.recent[len(f.recent)-globalAllowed].Add(globalWindow).Sub(now)
		return &RateError{Wait: max(wait, time.Second), Global: true}
	}
	s := f.sources[from]
	if s == nil || s.count < freeFailures {
		return nil
	}
	if wait := s.last.Add(waitAfter(s.count)).Sub(now); wait > 0 {
		return &RateError{Wait: wait}
	}
	return nil
}

func (f *failures) failed(from string, now time.Time) {
	if f.sources == nil {
		f.sources = map[string]*source{}
	}
	s := f.sources[from]
	if s == nil {
		f.makeRoom()
		s = &source{}
		f.sources[from] = s
	}
	s.count++
	s.last = now
	if !f.apart {
		f.recent = append(f.recent, now)
	}
}

// succeeded clears the count of one source only: a person who signs in must not reset a guesser elsewhere.
func (f *failures) succeeded(from string) { delete(f.sources, from) }

func (f *failures) prune(now time.Time) {
	i := 0
	for i < len(f.recent) && now.Sub(f.recent[i]) >= globalWindow {
		i++
	}
	f.recent = f.recent[i:]
	for name, s := range f.sources {
		if now.Sub(s.last) > 2*longestWait {
			delete(f.sources, name)
		}
	}
}

// makeRoom forgets the source that has been quiet longest. The global limit still holds for whoever floods.
func (f *failures) makeRoom() {
	if len(f.sources) < maxSources {
		return
	}
	oldest := ""
	for name, s := range f.sources {
		if oldest == "" || s.last.Before(f.sources[oldest].last) {
			oldest = name
		}
	}
	delete(f.sources, oldest)
}

func waitAfter(count int) time.Duration {
	wait := firstWait
	for range count - freeFailures {
		if wait *= 2; wait >= longestWait {
			return longestWait
		}
	}
	return wait
}
