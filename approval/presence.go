package approval

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
)

// Approver is a screen with a person in front of it who sees new approvals at once: an open console, "approvals
// watch", the terminal console, a foreground daemon.
type Approver struct {
	Name       string // for people, such as "console on 127.0.0.1"
	By         Authority
	Connection string // of the screen; calls from the same connection have no approver in it
	Device     string
}

// Presence is an attached approver. Close detaches it.
type Presence struct {
	people   *people
	approver Approver
	last     atomic.Int64 // wall-clock ms of the last sign of life
}

// Active notes that the person did something: a key, a click, a page looked at.
func (p *Presence) Active() {
	p.last.Store(time.Now().UnixMilli())
	p.people.active()
}

// LastActive is when the person last did something.
func (p *Presence) LastActive() time.Time { return time.UnixMilli(p.last.Load()) }

// Close detaches the approver. Approvals it was shown stay pending. Closing twice is harmless.
func (p *Presence) Close() {
	p.people.mu.Lock()
	delete(p.people.present, p)
	p.people.mu.Unlock()
}

// Channel reaches people who have no screen attached, such as a chat.
type Channel interface {
	// Offer delivers an approval and reports whether somebody who can answer was reached. It must respect ctx.
	Offer(context.Context, *Record) bool
}

// Prompter is the approval socket: a program on this machine that shows one question and answers it.
type Prompter interface {
	// Reachable reports whether the program would answer now.
	Reachable(context.Context) bool
	// Prompt shows the approval and returns one of the three decision words, and who answered. Anything else is no
	// decision. It returns when ctx ends.
	Prompt(context.Context, *Record) (decision, by string, err error)
}

// people is who could answer, and how tired they are of it.
type people struct {
	mu      sync.Mutex
	present map[*Presence]struct{}
	away    map[toolward.SessionKey]*silence
	denied  map[runKey]*denials
	tense   map[toolward.SessionKey]*tension
}

// runKey is a run of a session; a client that names no run gets one per session.
type runKey struct {
	session toolward.SessionKey
	run     string
}

type silence struct {
	timeouts int
	until    time.Time // asks are refused until then
	last     time.Time
}

type denials struct {
	digests map[string]struct{}
	last    time.Time
}

// Fatigue guards. An agent that asks until somebody clicks "allow" out of weariness gets nowhere.
const (
	silentTimeouts = 3
	silentFor      = 5 * time.Minute
	maxSilences    = 1000
	maxRuns        = 1000
	maxDenials     = 256 // of one run
	denialsKept    = 24 * time.Hour
)

func newPeople() *people {
	return &people{
		present: map[*Presence]struct{}{},
		away:    map[toolward.SessionKey]*silence{},
		denied:  map[runKey]*denials{},
		tense:   map[toolward.SessionKey]*tension{},
	}
}

// reachable counts the attached approvers who may answer now and are not the requester itself.
func (p *people) reachable(connection, device string) int {
	p.mu.Lock()
	list := make([]*Presence, 0, len(p.present))
	for a := range p.present {
		if isSelf(a.approver.Connection, a.approver.Device, connection, device) {
			continue
		}
		list = append(list, a)
	}
	p.mu.Unlock()
	n := 0
	for _, a := range list {
		if a.approver.By.MayAnswer() == nil { // a page left open after its sign-in ended does not count
			n++
		}
	}
	return n
}

// isSelf reports whether two parties share a connection or a device.
func isSelf(connA, deviceA, connB, deviceB string) bool {
	return connA != "" && connA == connB || deviceA != "" && deviceA == deviceB
}

// active ends every "approver is away": somebody is there.
func (p *people) active() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.away)
}

// timedOut counts a question that nobody answered.
func (p *people) timedOut(session toolward.SessionKey, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.away[session]
	if s == nil {
		if len(p.away) >= maxSilences {
			dropOldest(p.away, func(s *silence) time.Time { return s.last })
		}
		s = &silence{}
		p.away[session] = s
	}
	s.timeouts++
	s.last = now
	if s.timeouts >= silentTimeouts {
		s.until = now.Add(silentFor)
	}
}

func (p *people) isAway(session toolward.SessionKey, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.away[session]
	if s == nil || s.timeouts < silentTimeouts {
		return false
	}
	if now.Before(s.until) {
		return true
	}
	delete(p.away, session) // after the pause people are asked again, from the start
	return false
}

// deny remembers what a person declined in a run.
func (p *people) deny(d Denial, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := runKey{d.Session, d.Run}
	run := p.denied[key]
	if run == nil {
		if len(p.denied) >= maxRuns {
			dropOldest(p.denied, func(d *denials) time.Time { return d.last })
		}
		run = &denials{digests: map[string]struct{}{}}
		p.denied[key] = run
	}
	run.last = now
	if len(run.digests) < maxDenials {
		run.digests[d.Digest] = struct{}{}
	}
}

func (p *people) wasDenied(d Denial) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	run := p.denied[runKey{d.Session, d.Run}]
	if run == nil {
		return false
	}
	_, ok := run.digests[d.Digest]
	// A run with that many refusals is not asking any more, it is trying: everything is refused.
	return ok || len(run.digests) >= maxDenials
}

func dropOldest[K comparable, V any](m map[K]V, last func(V) time.Time) {
	var oldest K
	found := false
	for k, v := range m {
		if !found || last(v).Before(last(m[oldest])) {
			oldest, found = k, true
		}
	}
	delete(m, oldest)
}

// tension counts the prompts of a session in lockdown.
type tension struct {
	prompts int
	last    time.Time
}
