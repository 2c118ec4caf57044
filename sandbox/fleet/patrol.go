package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/protected"
	"github.com/toolward/toolward/sandbox/settings"
)

// How often, and for how long, a sandbox is looked at for what is protected.
const (
	patrolEvery = 200 * time.Millisecond
	patrolShare = 50          // a look that takes long is followed by that many times its length without one
	lookEvery   = time.Second // while commands run
	lastLook    = 10 * time.Second
	maxTold     = 10 // paths in one event
)

func newPatrol(m *Manager, s *protected.Survey, e Event) *patrol {
	return &patrol{survey: s, event: e, tell: m.tell, wrote: map[string]bool{}}
}

// after is called when a command of each of the sessions has ended, or has run for a while. It reports whether somebody has
// to walk: then the caller sees to that walk is called.
func (p *patrol) after(sessions []string) (walk bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, session := range sessions {
		p.wrote[session] = true
	}
	walk = !p.walking && !p.ended
	p.walking = p.walking || walk
	return walk
}

// walk looks until no command has ended since, with pauses between.
func (p *patrol) walk(ended context.Context) {
	for {
		began := time.Now()
		if !p.look(ended) {
			return
		}
		pause := time.NewTimer(max(patrolEvery, patrolShare*time.Since(began)))
		select {
		case <-pause.C:
		case <-ended.Done():
			pause.Stop()
			return // whoever ends the Manager looks once more
		}
	}
}

// look looks once; false if nothing has run since the last time.
func (p *patrol) look(ctx context.Context) bool {
	p.mu.Lock()
	p.walking = len(p.wrote) > 0
	walking := p.walking
	p.mu.Unlock()
	if walking {
		_, _ = p.report(ctx) // it tells itself what it found, and what it could not look at
	}
	return walking
}

// last looks once more, whether or not a command has ended, and lets go of the sandbox.
func (p *patrol) last() {
	p.mu.Lock()
	ended := p.ended
	p.ended = true
	p.mu.Unlock()
	if ended {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastLook)
	defer cancel()
	_, _ = p.report(ctx) // it tells itself what it found, and what it could not look at
	p.survey.Close()
}

// report tells what a look has found. Whose command made it is not known where several have run: it is told for each that has
// since the look before. A look finds a thing once, so none begins before the one before it has told what it found: else one
// session would be told what another has made, and the other would not.
func (p *patrol) report(ctx context.Context, more ...string) (found []protected.Appeared, err error) {
	p.looking.Lock()
	defer p.looking.Unlock()
	p.mu.Lock()
	for _, session := range more {
		p.wrote[session] = true
	}
	sessions := slices.Sorted(maps.Keys(p.wrote))
	clear(p.wrote)
	p.mu.Unlock()
	if len(sessions) == 0 {
		sessions = []string{p.event.Session}
	}
	found, err = p.survey.Look(ctx)
	p.mu.Lock()
	partly := err != nil && ctx.Err() == nil && !p.partly
	p.partly = p.partly || partly
	if ctx.Err() != nil { // it was broken off: the next one tells of them
		for _, session := range sessions {
			p.wrote[session] = true
		}
	}
	p.mu.Unlock()
	for _, session := range sessions {
		e := p.event
		e.Session = session
		if len(found) > 0 {
			e.describe(found)
			p.tell(EventProtected, e)
		}
		if partly {
			// In doubt it runs something: a tree that is too large is a way to hide it.
			e.Why, e.Paths, e.Runs = "not everything that commands write can be looked at: "+err.Error(), nil, true
			p.tell(EventProtected, e)
		}
	}
	return found, err
}

// settle looks when a command has ended, before its result is handed back: what git on the machine would run is quarantined by then. It
// says what people and models should know.
func (p *patrol) settle(session string) (warning string) {
	ctx, cancel := context.WithTimeout(context.Background(), lastLook)
	defer cancel()
	found, err := p.report(ctx, session)
	names := []string{}
	for _, a := range found {
		if a.Runs {
			names = append(names, fate(a))
		}
	}
	if len(names) > 0 {
		warning = "git on the machine would run something because of what was made here: " + strings.Join(names[:min(len(names), maxTold)], ", ")
		if more := len(names) - maxTold; more > 0 {
			warning += fmt.Sprintf(" and %d more", more)
		}
	}
	if err != nil {
		warning = joinWords(warning, "not everything that was written could be looked at, so do not run git there on the machine: "+err.Error())
	}
	return warning
}

// looked is a command after whose end its sandbox is looked at before anybody hears of it.
type looked struct {
	sandbox.Process
	patrol  *patrol
	session string
	mu      sync.Mutex
	warning string
}

// Wait looks also where the command was killed: what it has made is there all the same.
func (l *looked) Wait(ctx context.Context) (sandbox.ExitStatus, error) {
	status, err := l.Process.Wait(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warning = joinWords(l.warning, l.patrol.settle(l.session))
	status.Warning = joinWords(status.Warning, l.warning)
	return status, err
}

func joinWords(first, second string) string { return strings.Trim(first+"; "+second, "; ") }

// fate says what has become of something that git would run.
func fate(a protected.Appeared) string {
	if a.Moved == "" {
		return fmt.Sprintf("%s (%v)", a.Path, a.Err)
	}
	return a.Path + " (it is now " + a.Moved + ")"
}

// describe says what was found, what runs by itself first.
func (e *Event) describe(found []protected.Appeared) {
	slices.SortStableFunc(found, func(a, b protected.Appeared) int {
		switch {
		case a.Runs == b.Runs:
			return 0
		case a.Runs:
			return -1
		}
		return 1
	})
	for _, a := range found[:min(len(found), maxTold)] {
		e.Paths = append(e.Paths, a.Path)
	}
	e.Runs = found[0].Runs
	e.Why = "commands made what programs of the machine obey"
	if e.Runs {
		e.Why += "; git would run something because of " + fate(found[0])
	}
	if more := len(found) - len(e.Paths); more > 0 {
		e.Why += fmt.Sprintf("; %d more are not named", more)
	}
}

// patrols has a box looked after, if what is protected in it is. The caller holds the mutex, and ends the patrol that is
// returned, which looked after the box before.
func (m *Manager) patrols(b *box, plan *settings.Plan, anew bool, session string) (before *patrol) {
	if b.patrol != nil && !anew || plan.Survey == nil {
		return nil // what it has seen counts for the same sandbox
	}
	before = b.patrol
	b.patrol = newPatrol(m, plan.Survey, Event{Name: b.name, ScopeKey: plan.ScopeKey, Engine: b.engine, Session: session})
	plan.Survey = nil
	return before
}

// ran has what a command may have made looked at. The caller holds the mutex.
func (m *Manager) ran(b *box, sessions ...string) {
	if p := b.patrol; p != nil && !m.closed && len(sessions) > 0 && p.after(sessions) {
		m.workers.Go(func() { p.walk(m.ended) })
	}
}

// ranOn has what commands that still run may have made looked at; with idle also what programs may have made that have left theirs.
func (m *Manager) ranOn(idle bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.boxes {
		if idle || len(b.sessions) > 0 {
			m.listen(b)
		}
		m.ran(b, slices.Collect(maps.Keys(b.sessions))...)
		if idle && len(b.sessions) == 0 && b.patrol != nil && b.alive() != nil {
			m.ran(b, b.patrol.event.Session)
		}
	}
}

// endPatrol looks a last time at a sandbox in which nothing runs any more.
func (m *Manager) endPatrol(b *box) {
	m.mu.Lock()
	p := b.patrol
	b.patrol = nil
	m.mu.Unlock()
	if p != nil {
		p.last()
	}
}
