package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// Manager asks people, waits and remembers. Its methods may be called from any goroutine.
type Manager struct {
	store    Store
	redact   func(string) string
	channels []Channel
	socket   Prompter
	observe  func(Event)
	outline  func(*toolward.Request) *display.Outline
	remember func(ctx context.Context, agent string, entries []toolward.CommandEntry) error
	log      *slog.Logger
	settings atomic.Pointer[Settings]

	book   *book
	people *people
	subs   *subscribers
	stamps *stamps

	mu        sync.Mutex
	entries   map[string]*entry
	byBinding map[string]*entry // pending ones, so that identical calls share a prompt
	bySlug    map[string]*entry // pending ones, by the start of their ids that people type
	bySession map[toolward.SessionKey]int
	byConn    map[string]int
	lastingOf map[string]int    // pending lasting ones of each agent
	lasting   int               // of all
	untold    map[string]*entry // ended lasting ones, by binding, whose callers have not come back yet
	pending   int
	schedule  schedule
	unwritten []Expiry // ends without a decision that the store does not have yet
	closed    bool

	woken   chan struct{}
	stop    chan struct{}
	stopped chan struct{}
}

var _ toolward.Approver = (*Manager)(nil)

// Options says what a manager works with.
type Options struct {
	Store    Store               // required
	Redact   func(string) string // required: hides secrets in what people are shown and the store keeps
	Settings Settings
	Channels []Channel   // optional ways to reach people who have no screen attached
	Socket   Prompter    // optional
	Observe  func(Event) // optional: told of every event, in order; must not block and must not call the manager
	// Outline says what the command of a call would do; optional, nil if nobody knows.
	Outline func(*toolward.Request) *display.Outline
	// Remember adds to what an agent's commands may do without a question, and returns once it is on the disk.
	// Without it "always" is not offered for commands that were analyzed.
	// With [ErrOnlyOnce] nothing is added, and the answer counts once.
	Remember func(ctx context.Context, agent string, entries []toolward.CommandEntry) error
	Log      *slog.Logger
}

// Open loads what is pending and granted and starts the manager. After a restart pending approvals keep their
// deadline; their callers have 30 seconds to come back by id, those of lasting ones until the deadline. Close it when
// done.
func Open(ctx context.Context, o Options) (*Manager, error) {
	if o.Store == nil || o.Redact == nil {
		return nil, errors.New("approval manager needs a store and a redactor")
	}
	m := &Manager{
		store: o.Store, redact: o.Redact, channels: o.Channels, socket: o.Socket, observe: o.Observe, log: o.Log,
		outline: o.Outline, remember: o.Remember,
		book: newBook(), people: newPeople(), subs: &subscribers{list: map[*Subscription]struct{}{}}, stamps: newStamps(),
		entries: map[string]*entry{}, byBinding: map[string]*entry{}, bySlug: map[string]*entry{},
		bySession: map[toolward.SessionKey]int{}, byConn: map[string]int{}, lastingOf: map[string]int{}, untold: map[string]*entry{},
		woken: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if err := m.Configure(o.Settings); err != nil {
		return nil, err
	}
	if err := m.load(ctx); err != nil {
		return nil, fmt.Errorf("load approvals: %w", err)
	}
	go m.run()
	return m, nil
}

// Configure changes the limits. Approvals that are pending keep the deadline they were shown with.
func (m *Manager) Configure(s Settings) error {
	commit, err := m.Prepare(s)
	if err == nil {
		commit()
	}
	return err
}

// Prepare checks limits. Nothing changes before commit.
func (m *Manager) Prepare(s Settings) (commit func(), err error) {
	if s, err = s.withDefaults(); err != nil {
		return nil, err
	}
	return func() { m.settings.Store(&s) }, nil
}

func (m *Manager) load(ctx context.Context) error {
	now := time.Now()
	// A yes that was not used before the restart is not used after it: too much may have changed, nobody can tell any
	// more whether the call had already begun, and another program may have written the row.
	if err := m.store.VoidAnswers(ctx); err != nil {
		return err
	}
	if err := m.store.PruneApprovals(ctx, now.Add(-keepRecords).UnixMilli()); err != nil {
		return err
	}
	grants, err := m.store.Grants(ctx, now.UnixMilli())
	if err != nil {
		return err
	}
	for _, g := range grants {
		m.book.add(g)
	}
	denied, err := m.store.Denials(ctx, now.Add(-denialsKept).UnixMilli(), maxRuns*8)
	if err != nil {
		return err
	}
	for _, d := range denied {
		m.people.deny(d, now)
	}
	records, err := m.store.PendingApprovals(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := m.restore(r, now); err != nil {
			return err
		}
	}
	return nil
}

// restore takes a pending record back into memory with what is left of its life. A wall clock that was set back
// meanwhile gives nobody more time than the approval had at first.
func (m *Manager) restore(r *Record, now time.Time) error {
	left := min(r.ExpiresMs-now.UnixMilli(), r.ExpiresMs-r.CreatedMs)
	if left <= 0 {
		m.unwritten = append(m.unwritten, Expiry{Key: r.Key(), AtMs: now.UnixMilli()})
		return nil
	}
	e, err := newEntry(r, now)
	if err != nil {
		return err
	}
	shown, err := appearanceOf(r.Request)
	if err != nil {
		return err
	}
	e.restored = &shown
	e.end = now.Add(time.Duration(left) * time.Millisecond)
	e.phase, e.orphan, e.path = pending, !e.lasting, "push"
	close(e.ready)
	m.insert(e)
	due := e.end
	if limit := now.Add(reattach); e.orphan && limit.Before(due) {
		due = limit
	}
	m.schedule.set(e, due)
	return nil
}

// Close stops the manager. Calls that wait are refused at once; their approvals stay pending in the store, with
// their deadline.
func (m *Manager) Close() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		<-m.stopped
		return
	}
	m.closed = true
	for _, e := range m.entries {
		if e.cancel != nil {
			e.cancel()
		}
	}
	m.mu.Unlock()
	close(m.stop)
	<-m.stopped
	m.subs.closeAll()
}

const (
	flushEvery = 5 * time.Second
	pruneEvery = 24 * time.Hour
	tidyEvery  = time.Minute // at most: grants for minutes must not take the place of others for a day
)

// wake makes the goroutine look again.
func (m *Manager) wake() {
	select {
	case m.woken <- struct{}{}:
	default:
	}
}

// insert counts an entry and makes it findable. The caller holds the lock.
func (m *Manager) insert(e *entry) {
	m.entries[e.record.ID] = e
	m.byBinding[e.record.Binding] = e
	slug := e.record.Slug()
	e.next, m.bySlug[slug] = m.bySlug[slug], e
	m.pending++
	m.bySession[e.session]++
	if e.record.Connection != "" {
		m.byConn[e.record.Connection]++
	}
	if e.lasting {
		m.lasting++
		m.lastingOf[e.session.Agent()]++
	}
}

func (m *Manager) uncount(e *entry) {
	if m.byBinding[e.record.Binding] == e {
		delete(m.byBinding, e.record.Binding)
	}
	m.dropSlug(e)
	m.pending--
	if m.bySession[e.session]--; m.bySession[e.session] <= 0 {
		delete(m.bySession, e.session)
	}
	if c := e.record.Connection; c != "" {
		if m.byConn[c]--; m.byConn[c] <= 0 {
			delete(m.byConn, c)
		}
	}
	if agent := e.session.Agent(); e.lasting {
		m.lasting--
		if m.lastingOf[agent]--; m.lastingOf[agent] <= 0 {
			delete(m.lastingOf, agent)
		}
	}
}

// dropSlug makes an entry unfindable by the start of its id. The caller holds the lock.
func (m *Manager) dropSlug(e *entry) {
	slug := e.record.Slug()
	first := m.bySlug[slug]
	if first == e {
		first = e.next
	} else {
		for at := first; at != nil; at = at.next {
			if at.next == e {
				at.next = e.next
				break
			}
		}
	}
	if e.next = nil; first == nil {
		delete(m.bySlug, slug)
		return
	}
	m.bySlug[slug] = first
}

// storeContext is for writes that must happen even if the one who caused them has gone, but must not hang for
// ever: a store that does not answer is a store that failed.
func storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storePatience)
}
