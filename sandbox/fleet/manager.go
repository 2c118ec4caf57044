package fleet

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
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
	resolved *settings.Resolved
	patrol   *patrol // nil: nothing is protected, or nothing has run
	made     *made   // what the sandbox was made as; nil: not by this gateway, or not used by it yet
}

// readyBox is a box that a request may use without a second look.
type readyBox struct {
	box   *box
	until time.Time // zero: as long as the settings stay
}

const (
	maxReady   = 4096
	drainTime  = 10 * time.Second
	pruneEvery = 5 * time.Minute
	flushEvery = 30 * time.Second
	keepWarned = time.Minute // how long a kept box is used without a second look
)

// NewManager opens the registry of a home. Nothing runs before Start.
func NewManager(o ManagerOptions) *Manager {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(Event) {}
	}
	m := &Manager{
		options: o, engines: map[string]sandbox.Engine{}, probes: map[string]*probe{}, settings: o.Settings,
		registry: NewRegistry(filepath.Join(o.StateDir, "sandbox", "containers.json")),
		boxes:    map[string]*box{}, ready: map[settings.Request]readyBox{},
		making: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0))), asking: map[string]chan struct{}{},
	}
	m.meter = newMeter(m.Stats)
	for _, e := range o.Engines {
		m.asking[e.Name()] = make(chan struct{}, unanswered)
		m.engines[e.Name()], m.probes[e.Name()] = e, &probe{engine: e, turn: make(chan struct{}, 1)}
	}
	m.ended, m.end = context.WithCancel(context.Background())
	return m
}

// Start finds what an earlier run left, and begins to look after sandboxes until Close. A home has one Manager at a time.
func (m *Manager) Start(ctx context.Context) error {
	if !m.options.NewHome { // no engine is asked, and none can hold up a first start
		if err := m.sweep(ctx); err != nil {
			return err
		}
		if err := m.reconcile(ctx); err != nil {
			return err
		}
	} else if m.options.Egress != nil {
		m.options.Egress.Outlived(nil)
	}
	m.workers.Go(m.attend)
	return nil
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

// Layout says where everything is in the sandbox of a request, without making one. Its private directory is made: the
// first call is judged by what is there.
func (m *Manager) Layout(ctx context.Context, q settings.Request) (*settings.Layout, error) {
	m.mu.Lock()
	compiled := m.settings
	if r, ok := m.ready[q]; ok && r.box.layout != nil {
		layout := r.box.layout
		m.mu.Unlock()
		return layout, nil
	}
	m.mu.Unlock()
	resolved := compiled.For(q.Agent)
	_, site, err := m.pick(ctx, resolved)
	if err != nil {
		return nil, err
	}
	layout, err := resolved.Layout(site, q)
	if err != nil {
		return nil, err
	}
	return layout, resolved.MakeWorkspace(layout, site.Engine)
}

// Close ends the Manager. Sandboxes that do not outlive the gateway end with their engines, which the caller closes.
func (m *Manager) Close() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.closed = true
	clear(m.ready)
	handles, patrols := []sandbox.Handle{}, []*patrol{}
	for _, b := range m.boxes {
		if b.handle != nil {
			handles = append(handles, b.handle)
			b.handle = nil
		}
		if b.patrol != nil {
			patrols = append(patrols, b.patrol)
		}
	}
	m.mu.Unlock()
	m.end()
	m.workers.Wait()
	for _, p := range patrols {
		p.last()
	}
	if err := m.flush(); err != nil {
		m.options.Log.Error("sandboxes: when they were used last could not be written", "err", err)
	}
	m.leave()
	var closing sync.WaitGroup // each may take seconds
	for _, h := range handles {
		closing.Go(func() {
			if err := h.Close(); err != nil {
				m.options.Log.Warn("sandbox: let go", "err", err)
			}
		})
	}
	closing.Wait()
}

// attend writes down what was used, and ends what nobody uses.
func (m *Manager) attend() {
	flush, prune := time.NewTicker(flushEvery), time.NewTicker(pruneEvery)
	defer flush.Stop()
	defer prune.Stop()
	for {
		select {
		case <-m.ended.Done():
			return
		case <-flush.C:
			m.ranOn()
			if err := m.flush(); err != nil {
				m.options.Log.Error("sandboxes: when they were used last could not be written", "err", err)
			}
		case <-prune.C:
			m.pruneNow()
		}
	}
}

// pruneNow prunes in the background of the Manager's own life.
func (m *Manager) pruneNow() {
	if _, err := m.Prune(m.ended); err != nil && m.ended.Err() == nil {
		m.options.Log.Error("sandboxes could not be pruned", "err", err)
	}
}

// pruneOnUse prunes if that was not done lately.
func (m *Manager) pruneOnUse() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || time.Since(m.pruned) < pruneEvery {
		return
	}
	m.pruned = time.Now()
	m.workers.Go(m.pruneNow)
}

// flush writes down when sandboxes were used last.
func (m *Manager) flush() error {
	m.mu.Lock()
	used := map[string]int64{}
	for _, b := range m.boxes {
		if b.unsaved {
			used[b.name], b.unsaved = b.used.UnixMilli(), false
		}
	}
	m.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	err := m.registry.Update(func(entries []Registered) ([]Registered, bool) {
		changed := false
		for i := range entries {
			if ms := used[entries[i].Name]; ms > entries[i].UsedMs {
				entries[i].UsedMs, changed = ms, true
			}
		}
		return entries, changed
	})
	if err != nil {
		m.mu.Lock()
		for name := range used {
			if b := m.boxes[name]; b != nil {
				b.unsaved = true
			}
		}
		m.mu.Unlock()
	}
	return err
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
