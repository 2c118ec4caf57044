// Package anomaly watches the calls of sessions for what is odd: bursts, floods of writes and deletions, probing,
// loops, data on its way out, attempts to get round a refusal.
//
// A [Monitor] is told of every call before it is decided ([Monitor.Before]), of every refusal ([Monitor.Denied],
// [Monitor.Invalid]), of every end ([Monitor.After]) and of every message of a user ([Monitor.User]). It answers with
// a [Report]: what fired, and what must follow for this call and this session. It only ever makes things stricter,
// touches neither disk nor network, and has no clock of its own: the caller says when things happened. So the state
// after a restart is restored by telling it the past from the audit log again, and dropping the reports.
//
// A detector fires when the number of events in its sliding window reaches a threshold from below, and again only
// after the number has fallen below it. What an action demands, though, holds for every call that the detector
// counts while its value is that high.
//
// Memory is bounded: 1,000 sessions, the least recently used forgotten first, and 512 events each. Names and
// parameters are kept as keyed hashes that nobody outside can collide.
package anomaly

import (
	"container/list"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
)

const maxSessions = 1000

// Monitor watches all sessions. It may be used concurrently.
type Monitor struct {
	settings atomic.Pointer[settings]
	seed     maphash.Seed
	sights   sync.Pool // of *sight

	mu       sync.Mutex
	sessions map[toolward.SessionKey]*list.Element // of *state
	order    list.List                             // the latest used in front
	epoch    time.Time                             // when the monitor was made
}

// settings are a Config ready for use. They are never changed, only replaced.
type settings struct {
	rules  [detectors]rule
	loops  loopRules
	agents map[string]loopRules
	known  func(string) bool
}

// state is one session.
type state struct {
	key       toolward.SessionKey
	now       int64 // the latest time seen, see clock; time never runs back
	counters  [detectors]counter
	asks      [detectors]int64 // until when counted calls ask
	notified  [detectors]int64 // when the operator was told last
	contacted contacts
	spawned   uint64
	calls     history
	warned    warnings
	sizes     lengths
	seen      set // hosts and recipients that the session has been in contact with
	words     set // of owners
	refusals  []refusal
	reads     []read
	runs      recent // runs that were seen
	ended     recent // runs that an alarm has ended
}

// New makes a monitor. It fails for settings out of bounds.
func New(c Config) (*Monitor, error) {
	m := &Monitor{seed: maphash.MakeSeed(), epoch: time.Now(), sessions: map[toolward.SessionKey]*list.Element{}}
	m.sights.New = func() any { return &sight{} }
	return m, m.Configure(c)
}

// Configure replaces the settings, or says which are out of bounds and changes nothing.
func (m *Monitor) Configure(c Config) error {
	commit, err := m.Prepare(c)
	if err == nil {
		commit()
	}
	return err
}

// Prepare checks settings. Nothing changes before commit, which replaces those in force. What has been seen stays: a changed
// file must not make a session look new.
func (m *Monitor) Prepare(c Config) (commit func(), err error) {
	rules, wrong := rulesOf(c.Detectors)
	if len(wrong) > 0 {
		return nil, wrong[0]
	}
	next := &settings{rules: rules, loops: c.Loops.rules(), known: c.Known, agents: map[string]loopRules{}}
	for agent, loops := range c.Agents {
		if agent == "" {
			return nil, errors.New("anomaly: loop detection of an agent without an id")
		}
		next.agents[agent] = loops.Over(c.Loops).rules()
	}
	return func() { m.settings.Store(next) }, nil
}

// Before observes a call whose facts are known and that is about to be decided. A call is observed once, even if
// plug-ins rewrite it or people are asked.
func (m *Monitor) Before(at time.Time, r *toolward.Request) Report {
	v := m.look(r)
	defer m.done(v)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.before(m.session(r.Call.Session, at), v)
}

// Preview is what Before would report, and leaves everything as it is. It is for explanations.
func (m *Monitor) Preview(at time.Time, r *toolward.Request) Report {
	v := m.look(r)
	defer m.done(v)
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &state{key: r.Call.Session}
	if e, ok := m.sessions[r.Call.Session]; ok {
		s = e.Value.(*state).clone()
	}
	s.now = max(s.now, m.clock(at))
	return m.before(s, v)
}

func (m *Monitor) before(s *state, v *sight) Report {
	r := v.request
	if s.ended.contains(v.run) {
		return Report{Floor: toolward.Normal, Block: true, Ended: true}
	}
	if v.run != 0 && s.runs.add(v.run) {
		// A run begins with a message of a user, or after a long pause.
		s.counters[Burst] = counter{}
	}
	e := events{call: v}
	program := byProgram(r)
	e.n[Burst], e.n[Rate] = one(!program), one(!program)
	if (r.Facts.Mutates || r.Facts.Deletes > 0) && !confinedCommand(r) {
		e.n[Writes] = 1
	}
	e.n[Deletes] = max(0, r.Facts.Deletes)
	e.n[Fanout] = len(r.Facts.Recipients)
	if toolOf(r) == "sessions_spawn" {
		e.n[Fanout]++
	}
	for _, p := range v.params {
		if s.sizes.odd(p.param, p.bytes) {
			e.n[ArgSize]++
		}
	}
	e.n[ArgEncoded] = one(v.encoded)
	e.n[Evasion] = one(s.evades(v))
	near := s.chained()
	if readsSecret(r) {
		s.remember(read{id: m.idOf(r), left: exfilCalls})
		near = true
	}
	for i, who := range v.contacts {
		if s.seen.contains(who) {
			continue
		}
		e.n[ExfilChain] = one(near)
		// A program's new host is asked about in any case, unless it is listed or granted, which is to be named.
		if r.Inputs.External && !program && !v.named[i] && !m.ownerNamed(s, v, i) {
			e.n[NewTarget] = 1
		}
	}
	report := m.feed(s, &e)
	s.endIf(report.Abort, v.run)
	if !report.Block && !program {
		s.calls.record(m.loopRules(r), v.call, m.idOf(r))
	}
	return report
}

// byProgram reports whether a program in a sandbox made the call by connecting to somewhere. How often and how fast it does
// that, and that it tries again, says nothing about the agent; where it goes does.
func byProgram(r *toolward.Request) bool { return r.Call.Surface == toolward.SurfaceSandbox }

// confinedCommand reports whether a call is a command in a sandbox. How many of them change something says little: they change what is
// theirs, by the hundred in a build.
func confinedCommand(r *toolward.Request) bool {
	return r.Facts.Command != "" && r.Host() == toolward.HostSandbox
}

// endIf remembers that an alarm has ended a run: 0 is all calls that belong to none.
func (s *state) endIf(abort bool, run uint64) {
	if abort {
		s.ended.add(run)
	}
}

// Denied observes that a call was refused, for any reason but its arguments, after Before where that came to pass.
func (m *Monitor) Denied(at time.Time, r *toolward.Request, code toolward.Code) Report {
	v := m.glance(r)
	defer m.done(v)
	outcome := Outcome{Error: "refused: " + string(code)}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.session(r.Call.Session, at)
	s.refused(v)
	if id := m.idOf(r); id != 0 {
		// What was refused has not been read.
		s.reads = slices.DeleteFunc(s.reads, func(past read) bool { return past.id == id })
	}
	if code != toolward.CodeLoop && !byProgram(r) {
		// A refusal for a loop is no news of the loop.
		s.calls.outcome(m.loopRules(r), v.call, m.idOf(r), outcome.hash(m.seed, ""))
	}
	e := events{}
	e.n[Denied] = one(!byProgram(r) || code == toolward.CodeDeniedByUser)
	report := m.feed(s, &e)
	s.endIf(report.Abort, v.run)
	return report
}

// Invalid observes that a call was refused for its arguments.
func (m *Monitor) Invalid(at time.Time, r *toolward.Request) Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.session(r.Call.Session, at)
	e := events{}
	e.n[Invalid] = 1
	report := m.feed(s, &e)
	s.endIf(report.Abort, m.runOf(r))
	return report
}

// User observes a message of a user. The hosts and recipients in an owner's words are named by an owner.
func (m *Monitor) User(at time.Time, session toolward.SessionKey, owner bool, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.session(session, at)
	s.counters[Burst] = counter{}
	if owner {
		m.name(s, text)
	}
	m.feed(s, &events{})
}

// After observes how a call ended that ran. Only then are its hosts and recipients no longer new.
func (m *Monitor) After(at time.Time, r *toolward.Request, o *Outcome) {
	v := m.glance(r)
	defer m.done(v)
	hash := o.hash(m.seed, v.action)
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.session(r.Call.Session, at)
	if !byProgram(r) {
		s.calls.outcome(m.loopRules(r), v.call, m.idOf(r), hash)
	}
	if o.Error == "" {
		for _, who := range v.contacts {
			s.seen.add(who)
		}
	}
}

// Clear forgets what made alarms go off in a session, because a person has said that it is all right: counts, calls
// that ask, runs that were ended. What the session has read, reached and was refused stays known.
func (m *Monitor) Clear(session toolward.SessionKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.sessions[session]; ok {
		s := e.Value.(*state)
		s.counters, s.asks, s.contacted, s.ended = [detectors]counter{}, [detectors]int64{}, contacts{}, recent{}
	}
}

// session finds or begins a session and moves its clock.
func (m *Monitor) session(key toolward.SessionKey, at time.Time) *state {
	now := m.clock(at)
	e, ok := m.sessions[key]
	if ok {
		m.order.MoveToFront(e)
	} else {
		m.makeRoom()
		e = m.order.PushFront(&state{key: key, now: now})
		m.sessions[key] = e
	}
	s := e.Value.(*state)
	// A clock that is set back must not empty the windows.
	s.now = max(s.now, now)
	return s
}

// makeRoom forgets the session unused for longest. One with an ended run is passed over: nobody shall bring such a
// run back by opening many sessions.
func (m *Monitor) makeRoom() {
	for tries := 0; m.order.Len() >= maxSessions; tries++ {
		oldest := m.order.Back()
		if s := oldest.Value.(*state); len(s.ended.list) == 0 || tries >= maxSessions/2 {
			delete(m.sessions, s.key)
			m.order.Remove(oldest)
			return
		}
		m.order.MoveToFront(oldest)
	}
}

// clock counts nanoseconds from long before the first observation, so that 0 is always long ago. It takes the
// monotonic reading where there is one, which nobody can set back.
func (m *Monitor) clock(at time.Time) int64 {
	const years = 1 << 60 // 36 of them
	return years + min(max(int64(at.Sub(m.epoch)), -years/2), years)
}

func (m *Monitor) loopRules(r *toolward.Request) loopRules {
	in := m.settings.Load()
	if rules, ok := in.agents[r.Call.Caller.Agent]; ok {
		return rules
	}
	return in.loops
}

// events are what one observation counts for each detector.
type events struct {
	n    [detectors]int
	call *sight // nil if it is not a call
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// feed gives one observation to all detectors in their order.
func (m *Monitor) feed(s *state, e *events) Report {
	report := Report{Floor: toolward.Normal}
	in := m.settings.Load()
	for d := range Detector(detectors) {
		switch r := &in.rules[d]; {
		case d == Loop:
			if e.call != nil && !byProgram(e.call.request) {
				m.feedLoop(s, r, e.call, &report)
			}
		case !r.enabled, e.n[d] == 0 && s.isIdle(d):
		default:
			m.feedCounter(s, d, r, e, &report)
		}
	}
	return report
}

// isIdle reports that a detector remembers nothing that time could change.
func (s *state) isIdle(d Detector) bool {
	c := &s.counters[d]
	return c.n == 0 && c.count == 0 && c.above == [2]bool{} && (d != Fanout || len(s.contacted.list) == 0)
}

// feedCounter counts single events one by one, so that a patch of forty deletions passes every threshold on its way.
func (m *Monitor) feedCounter(s *state, d Detector, r *rule, e *events, report *Report) {
	c, most, window := &s.counters[d], 1, int64(r.window)
	for _, step := range r.steps {
		most = max(most, step.Threshold)
	}
	perCall := r.window == 0 && d != Burst
	if perCall && e.call != nil {
		c.count, c.above = 0, [2]bool{}
	}
	value := 0
	for i := range max(1, min(e.n[d], 2*maxEvents)) {
		counts := i < e.n[d]
		switch {
		case d == Burst || perCall:
			if counts {
				c.count = min(c.count+1, most)
			}
			value = c.count
		case d == Fanout:
			s.contacted.expire(s.now, window)
			if counts {
				s.contacted.touch(m.recipient(s, e.call.request, i), s.now, most)
			}
			value = len(s.contacted.list)
		default:
			c.expire(s.now, window)
			if counts {
				c.push(s.now, most)
			}
			value = c.n
		}
		if step := c.crossed(value, r.steps); step >= 0 {
			report.Fired = append(report.Fired, Detection{
				Detector: d, Count: value, Action: r.steps[step].Action, Notify: s.notify(d),
			})
		}
	}
	if e.n[d] > 0 {
		s.follow(d, value, r.steps, report)
	}
}

// recipient is the i-th of those that a call reaches. Every spawned session is another one.
func (m *Monitor) recipient(s *state, r *toolward.Request, i int) uint64 {
	if i < len(r.Facts.Recipients) {
		return m.hash(kindRecipient, r.Facts.Recipients[i])
	}
	s.spawned++
	return s.spawned ^ m.hash(kindSpawn, string(s.key))
}

// feedLoop has no windows: a warning takes the first step's action, a critical loop that of the last step. A critical
// loop is blocked whatever the step says, also when nobody wants to hear of it: that is what loop detection is for,
// and it has a switch of its own.
func (m *Monitor) feedLoop(s *state, r *rule, v *sight, report *Report) {
	stuck := s.calls.check(m.loopRules(v.request), v.call, v.poll)
	report.Stuck = stuck
	report.Block = report.Block || stuck.Critical
	if stuck.Detector == "" || !r.enabled {
		return
	}
	step := r.steps[0]
	if stuck.Critical {
		step = r.steps[len(r.steps)-1]
	}
	if step.Action == Ask {
		report.Ask = append(report.Ask, Loop)
	} else {
		report.demand(Loop, step.Action)
	}
	if stuck.Critical || s.warned.due(v.call^m.hash(kindWord, stuck.Detector), stuck.Count) {
		report.Fired = append(report.Fired, Detection{
			Detector: Loop, Count: stuck.Count, Action: step.Action, Notify: s.notify(Loop), Detail: stuck.Detector,
		})
	}
}
