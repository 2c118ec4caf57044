package fleet

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/protected"
	"github.com/toolward/toolward/sandbox/settings"
)

// ManagerOptions say what a Manager works with.
type ManagerOptions struct {
	Engines  []sandbox.Engine // those that this program has, in the order of preference
	StateDir string           // Toolward's home
	Settings *settings.Settings
	// NewHome says that nothing can be left of an earlier run: the home has just been made.
	NewHome bool
	Egress  Egress // nil: no sandbox gets the network egress
	// Observe is told what happens to sandboxes. It must not block for long.
	Observe func(Event)
	Log     *slog.Logger
}

// Event is something that happened to a sandbox.
type Event struct {
	Kind     EventKind `json:"event"`
	Name     string    `json:"name"`
	ScopeKey string    `json:"scopeKey"`
	Engine   string    `json:"engine"`
	Session  string    `json:"session,omitempty"` // whose call it was, if it was a call
	Why      string    `json:"why,omitempty"`
	// With EventProtected: paths inside, and whether git runs one of them as it is.
	Paths []string `json:"paths,omitempty"`
	Runs  bool     `json:"runs,omitempty"`
	// With EventListening: the port, and what the program calls itself.
	Port    uint16 `json:"port,omitempty"`
	Program string `json:"program,omitempty"`
}

// EventKind says what happened.
type EventKind string

// The events.
const (
	EventCreated   EventKind = "created"
	EventStarted   EventKind = "started"
	EventRecreated EventKind = "recreated"
	EventKept      EventKind = "kept" // although it is not what it should be
	EventStopped   EventKind = "stopped"
	EventRemoved   EventKind = "removed"
	EventEnded     EventKind = "ended" // by itself, or from outside
	EventAdopted   EventKind = "adopted"
	EventLeft      EventKind = "left"      // the gateway ends, and it goes on
	EventFound     EventKind = "found"     // it has gone on without a gateway
	EventFailed    EventKind = "failed"    // it could not be made
	EventProtected EventKind = "protected" // commands have made what is protected, where there was none at the start
	EventListening EventKind = "listening" // a program inside listens on a port, and goes on
)

// Manager has the sandboxes of one Toolward home: it makes them when they are needed, makes them anew when they are not
// what they should be, and ends those that nobody uses. It never runs anything outside a sandbox. It is safe for
// concurrent use.
type Manager struct {
	options  ManagerOptions
	engines  map[string]sandbox.Engine
	registry *Registry
	probes   map[string]*probe
	making   chan struct{}            // one token for each sandbox that is being made at once
	asking   map[string]chan struct{} // by engine: one token for each question that it has not answered
	meter    *meter

	mu       sync.Mutex
	settings *settings.Settings
	boxes    map[string]*box
	ready    map[settings.Request]readyBox
	pruned   time.Time
	closed   bool

	end     context.CancelFunc
	ended   context.Context
	workers sync.WaitGroup
}

// box is one sandbox by its name. Who makes, stops or removes it holds its turn.
type box struct {
	name string
	turn chan struct{}

	// Guarded by the Manager's mutex.
	handle   sandbox.Handle // nil: not running, or not known
	engine   string
	users    int            // leases that were not released
	sessions map[string]int // the same by session
	idle     chan struct{}  // closed when users becomes 0; nil if nobody waits
	used     time.Time
	unsaved  bool // used has changed since it was written
	layout   *settings.Layout
	// workspace is the agent's directory that is mounted; nil if none is, or an earlier gateway has done it.
	workspace os.FileInfo
	resolved  *settings.Resolved
	patrol    *patrol // nil: nothing is protected, or nothing has run
	ears      ears
	made      *made // what the sandbox was made as; nil: not by this gateway, or not used by it yet
}

// readyBox is a box that a request may use without a second look.
type readyBox struct {
	box   *box
	until time.Time // zero: as long as the settings stay
}

// Configure puts settings in force. Sandboxes that are not what they should be by them are made anew at their next use.
func (m *Manager) Configure(s *settings.Settings) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settings = s
	clear(m.ready)
}

// Settings are those in force.
func (m *Manager) Settings() *settings.Settings {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings
}

// Sandboxed reports whether a session of an agent is sandboxed, and why.
func (m *Manager) Sandboxed(agent, session string) (yes bool, why string) {
	return m.Settings().Sandboxed(agent, session)
}

// boxNamed returns the box of a name, made if necessary. The caller holds the mutex.
func (m *Manager) boxNamed(name string) *box {
	b := m.boxes[name]
	if b == nil {
		b = &box{name: name, turn: make(chan struct{}, 1)}
		m.boxes[name] = b
	}
	return b
}

// turn waits for the turn of the box of a name. Who has it gives it back.
func (m *Manager) turn(ctx context.Context, name string) (*box, error) {
	for {
		m.mu.Lock()
		b := m.boxNamed(name)
		m.mu.Unlock()
		if err := b.take(ctx); err != nil {
			return nil, err
		}
		m.mu.Lock()
		current := m.boxes[name] == b
		m.mu.Unlock()
		if current {
			return b, nil
		}
		b.give() // it was removed while we waited
	}
}

// take waits for the turn of a box.
func (b *box) take(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return sandbox.Errorf(sandbox.CodeTimeout, "wait for sandbox %s: %v", b.name, context.Cause(ctx))
	}
}

func (b *box) give() { <-b.turn }

// alive is the handle of a box that runs, or nil. The caller holds the mutex.
func (b *box) alive() sandbox.Handle {
	if b.handle == nil || !b.handle.Runs() {
		return nil
	}
	return b.handle
}

// tell hands an event to whoever observes.
func (m *Manager) tell(kind EventKind, e Event) {
	e.Kind = kind
	m.options.Observe(e)
}

// names of the engines that this program has, for people.
func (m *Manager) engineNames() []string { return slices.Sorted(maps.Keys(m.engines)) }

// made is what a sandbox was made as, or found to be.
type made struct {
	spec      sandbox.Spec // nothing in it is open
	layout    settings.Layout
	protected bool // spec.Protected is what it was made with
	kept      bool // it is in use although the configuration says something else by now
	known     bool
}

// probe remembers what an engine can do: for good if it works, else for a minute, so that somebody who mends it need
// not restart the gateway.
type probe struct {
	engine sandbox.Engine
	turn   chan struct{}
	found  sandbox.Capabilities
	err    error
	at     time.Time
}

// making is one attempt to have a sandbox. It holds the turn of its box.
type making struct {
	m        *Manager
	box      *box
	settings *settings.Settings // when the attempt began
	resolved *settings.Resolved
	engine   sandbox.Engine
	site     settings.Site
	request  settings.Request
	former   []Former // of a sandbox that has outlived its gateway: the sessions that have used it
}

// patrol looks whether something protected has come to be in a sandbox: when a command has ended, before its result is handed back, and
// beside those that run.
type patrol struct {
	survey *protected.Survey
	event  Event // what all of its events say
	tell   func(EventKind, Event)

	looking sync.Mutex // held while one looks and tells

	mu      sync.Mutex
	wrote   map[string]bool // sessions whose commands have ended since the last look
	walking bool
	partly  bool // it was said that not everything is looked at
	ended   bool
}

const (
	maxReady   = 4096
	drainTime  = 10 * time.Second
	pruneEvery = 5 * time.Minute
	flushEvery = 30 * time.Second
	keepWarned = time.Minute // how long a kept box is used without a second look
)
