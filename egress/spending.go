package egress

import (
	"sync"
	"time"
)

// spending counts how much has left, by agent and host. It does not depend on the life of a sandbox: one could end its own to
// begin anew.
type spending struct {
	mu  sync.Mutex
	all map[purse]*spent
}

type purse struct {
	agent string
	to    target
}

type spent struct {
	since time.Time
	bytes int64
}

const (
	spendingTime = 24 * time.Hour
	maxPurses    = 16384
)

// to is how much has left to a host within a day.
func (s *spending) to(agent string, to target) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.all[purse{agent, to}]; one != nil && time.Since(one.since) < spendingTime {
		return one.bytes
	}
	return 0
}

// take takes n of most bytes; false if they are not there any more, and then none are. Without room to count nothing leaves.
func (s *spending) take(agent string, to target, n, most int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[purse]*spent{}
	}
	one := s.all[purse{agent, to}]
	if one == nil {
		if len(s.all) >= maxPurses && !s.drop() {
			return false
		}
		one = &spent{since: time.Now()}
		s.all[purse{agent, to}] = one
	}
	if time.Since(one.since) >= spendingTime {
		*one = spent{since: time.Now()}
	}
	if one.bytes+n > most {
		one.bytes = most
		return false
	}
	one.bytes += n
	return true
}

// drop forgets what is a day old; false if nothing is.
func (s *spending) drop() bool {
	before := len(s.all)
	for of, one := range s.all {
		if time.Since(one.since) >= spendingTime {
			delete(s.all, of)
		}
	}
	return len(s.all) < before
}

// renew begins to count anew, because a person has said yes to more.
func (s *spending) renew(agent string, to target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, purse{agent, to})
}
