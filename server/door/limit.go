package door

import (
	"net/netip"
	"sync"
	"time"
)

// LimitSettings say when a guesser is locked out. Zero fields mean the default.
type LimitSettings struct {
	MaxAttempts    int           // wrong credentials within Window; default 10
	Window         time.Duration // default 60 s
	Lockout        time.Duration // default 300 s
	CountsLoopback bool          // programs of this machine are locked out, too
}

// Limiter counts wrong credentials by what kind they are and where they come from. Only wrong ones count: a client
// that sends none guesses nothing. Its methods may be called from any goroutine.
type Limiter struct {
	settings LimitSettings
	mu       sync.Mutex
	sources  map[limitKey]*attempts
}

type limitKey struct {
	class string
	ip    netip.Addr
}

type attempts struct {
	failed      []time.Time // within the window, oldest first
	lockedUntil time.Time
}

const maxLimited = 10_000 // sources that are remembered

// NewLimiter makes a limiter.
func NewLimiter(s LimitSettings) *Limiter {
	if s.MaxAttempts <= 0 {
		s.MaxAttempts = 10
	}
	if s.Window <= 0 {
		s.Window = time.Minute
	}
	if s.Lockout <= 0 {
		s.Lockout = 5 * time.Minute
	}
	return &Limiter{settings: s, sources: map[limitKey]*attempts{}}
}

// Standing is how a source stands.
type Standing struct {
	Allowed    bool
	Remaining  int // further wrong ones before it is locked out
	RetryAfter time.Duration
}

// Check says whether a credential of this source is looked at now.
func (l *Limiter) Check(class string, ip netip.Addr, now time.Time) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.sources[limitKey{class, ip.Unmap()}]
	if a == nil || l.exempt(ip) {
		return Standing{Allowed: true, Remaining: l.settings.MaxAttempts}
	}
	a.slide(now, l.settings.Window)
	if wait := a.lockedUntil.Sub(now); wait > 0 {
		return Standing{RetryAfter: wait}
	}
	return Standing{Allowed: true, Remaining: l.settings.MaxAttempts - len(a.failed)}
}

// Fail counts a wrong credential. It reports whether its source is locked out from this one on.
func (l *Limiter) Fail(class string, ip netip.Addr, now time.Time) (locked bool) {
	if l.exempt(ip) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := limitKey{class, ip.Unmap()}
	a := l.sources[key]
	if a == nil {
		l.makeRoom(now)
		a = &attempts{}
		l.sources[key] = a
	}
	a.slide(now, l.settings.Window)
	if now.Before(a.lockedUntil) {
		return false
	}
	a.failed = append(a.failed, now)
	if len(a.failed) < l.settings.MaxAttempts {
		return false
	}
	a.lockedUntil, a.failed = now.Add(l.settings.Lockout), nil
	return true
}

// Reset forgets the wrong credentials of a source that has sent a right one.
func (l *Limiter) Reset(class string, ip netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sources, limitKey{class, ip.Unmap()})
}

func (l *Limiter) exempt(ip netip.Addr) bool {
	return !l.settings.CountsLoopback && ip.Unmap().IsLoopback()
}

// slide forgets what is older than the window.
func (a *attempts) slide(now time.Time, window time.Duration) {
	for len(a.failed) > 0 && now.Sub(a.failed[0]) >= window {
		a.failed = a.failed[1:]
	}
}

// makeRoom forgets who has nothing to answer for, then whoever failed longest ago. The caller holds the lock.
func (l *Limiter) makeRoom(now time.Time) {
	if len(l.sources) < maxLimited {
		return
	}
	var oldest limitKey
	var last time.Time
	for key, a := range l.sources {
		a.slide(now, l.settings.Window)
		if len(a.failed) == 0 && !now.Before(a.lockedUntil) {
			delete(l.sources, key)
			continue
		}
		at := a.lockedUntil
		if n := len(a.failed); n > 0 {
			at = a.failed[n-1]
		}
		if last.IsZero() || at.Before(last) {
			oldest, last = key, at
		}
	}
	if len(l.sources) >= maxLimited {
		delete(l.sources, oldest)
	}
}
