package builtin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// sessions are the commands that are running or whose end nobody has cleared away yet. A command is found again by
// its id and only from its own scope: foreign and unknown ids look alike, so that one agent cannot probe what
// another runs.
type sessions struct {
	limits sessionLimits

	mu     sync.Mutex
	closed bool
	byID   map[string]*session
	sweep  *time.Timer // armed while finished commands are kept
}

type sessionLimits struct {
	running         int           // of one scope
	runningTotal    int           // of all scopes
	finished        int           // kept in all
	finishedBytes   int           // of output kept for all finished ones
	finishedFor     time.Duration // how long one is kept
	afterStopWaitUp time.Duration // how long closing waits for commands to end
}

// session is a command with a name.
type session struct {
	id         string
	scope      string
	text       string // the command as approved
	dir        string
	output     *transcript
	background bool // guarded by sessions.mu
	*execution

	pollMu     sync.Mutex
	emptyPolls int // polls in a row that showed nothing
}

var (
	errNoSession    = errors.New("no such session")
	errTooMany      = errors.New("too many commands are running; wait for one to end, or end one with process kill")
	errShuttingDown = errors.New("the gateway is stopping and starts no more commands")
	errStillRunning = errors.New("it is still running; use kill or remove")
)

func newSessions(limits sessionLimits) *sessions {
	return &sessions{limits: limits, byID: map[string]*session{}}
}

// start starts a command under a fresh id.
func (s *sessions) start(scope, text string, spec commandSpec) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errShuttingDown
	}
	own, all := 0, 0
	for _, other := range s.byID {
		if other.running() {
			all++
			if other.scope == scope {
				own++
			}
		}
	}
	if own >= s.limits.running || all >= s.limits.runningTotal {
		return nil, errTooMany
	}
	started := &session{id: s.freshID(), scope: scope, text: text, dir: spec.dir, output: spec.output}
	spec.onExit = func() { s.ended(started) }
	var err error
	if started.execution, err = startCommand(spec); err != nil {
		return nil, err
	}
	s.byID[started.id] = started
	return started, nil
}

// ended lets go of a command that nobody will ask for, and otherwise sees to it that it expires.
func (s *sessions) ended(done *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !done.background {
		return // the call that started it takes it away
	}
	s.tidy()
}

// keep moves a command to the background: it stays until it has ended and expired.
func (s *sessions) keep(kept *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept.background = true
	if !kept.running() {
		s.tidy()
	}
}

// forget takes a command away.
func (s *sessions) forget(gone *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, gone.id)
}

// tidy drops finished commands that are too old or too many, and arms the timer for the next. The caller holds mu.
func (s *sessions) tidy() {
	var finished []*session
	for _, candidate := range s.byID {
		if candidate.background && !candidate.running() {
			finished = append(finished, candidate)
		}
	}
	slices.SortFunc(finished, func(a, b *session) int { return b.result().at.Compare(a.result().at) })
	chars, kept := 0, 0
	for _, candidate := range finished {
		chars += candidate.output.size()
		tooMany := kept > 0 && (kept >= s.limits.finished || chars > s.limits.finishedBytes)
		if tooMany || time.Since(candidate.result().at) >= s.limits.finishedFor {
			delete(s.byID, candidate.id)
			continue
		}
		kept++
	}
	if s.sweep != nil {
		s.sweep.Stop()
		s.sweep = nil
	}
	if kept > 0 && !s.closed {
		s.sweep = time.AfterFunc(max(30*time.Second, s.limits.finishedFor/6), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.tidy()
		})
	}
}

// find returns a background command of the scope.
func (s *sessions) find(scope, id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.byID[id]; ok && found.scope == scope && found.background {
		return found, nil
	}
	return nil, fmt.Errorf("%w: %s", errNoSession, quoteShort(id))
}

// list returns the background commands of the scope, the youngest first.
func (s *sessions) list(scope string) []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*session
	for _, candidate := range s.byID {
		if candidate.scope == scope && candidate.background {
			list = append(list, candidate)
		}
	}
	slices.SortFunc(list, func(a, b *session) int {
		if c := b.started.Compare(a.started); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	return list
}

// close ends every command and waits until they are gone, or for a while.
func (s *sessions) close() {
	s.mu.Lock()
	s.closed = true
	if s.sweep != nil {
		s.sweep.Stop()
	}
	all := make([]*session, 0, len(s.byID))
	for _, running := range s.byID {
		all = append(all, running)
	}
	s.mu.Unlock()
	for _, running := range all {
		running.stop(endedShutdown)
	}
	deadline := time.After(s.limits.afterStopWaitUp)
	for _, running := range all {
		select {
		case <-running.done:
		case <-deadline:
			return
		}
	}
}

// freshID makes an id of two words; on a collision it is numbered up to 12, then it gets a third word. The caller
// holds mu.
func (s *sessions) freshID() string {
	word := func(words []string) string { return words[rand.IntN(len(words))] }
	for {
		id := word(idAdjectives) + "-" + word(idNouns)
		if s.byID[id] == nil {
			return id
		}
		for n := 2; n <= 12; n++ {
			if numbered := fmt.Sprintf("%s-%d", id, n); s.byID[numbered] == nil {
				return numbered
			}
		}
		if id += "-" + word(idNouns); s.byID[id] == nil {
			return id
		}
	}
}

var (
	idAdjectives = strings.Fields(`amber brisk calm clear cool crisp dawn deep eager fair fast fleet fond fresh gentle
glad good grand keen kind lucky marine mellow mild neat nimble nova oceanic plaid quick quiet rapid royal sharp
still sunny swift tender tidal tidy vivid warm wild young`)
	idNouns = strings.Fields(`atlas bison bloom breeze brook canyon cedar cliff cloud comet coral cove crane crest
daisy dune ember falcon fern fjord forest glade grove harbor haven heron kelp lagoon lake lark lobster meadow
nexus ocean orbit otter pine prairie reef ridge river rook sable sage shell shoal shore summit tide trail valley
willow zephyr`)
)

// nextPoll counts a poll and returns after which time the next one makes sense: 5, 10, 30 and then always 60
// seconds while nothing new comes.
func (s *session) nextPoll(newOutput bool) time.Duration {
	s.pollMu.Lock()
	defer s.pollMu.Unlock()
	return pollPause(&s.emptyPolls, newOutput)
}

func pollPause(emptyPolls *int, newOutput bool) time.Duration {
	if newOutput {
		*emptyPolls = 0
		return 5 * time.Second
	}
	*emptyPolls++
	switch *emptyPolls {
	case 1:
		return 5 * time.Second
	case 2:
		return 10 * time.Second
	case 3:
		return 30 * time.Second
	}
	return time.Minute
}
