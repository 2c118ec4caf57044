package approval

import (
	"container/heap"
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
	Channels []Channel   // optional ways to reach people who have no surface attached
	Socket   Prompter    // optional
	Observe  func(Event) // optional: told of every event, in order; must not block and must not call the manager
	// Outline says what the command of a call would do; optional, nil if nobody knows.
	Outline func(*toolward.Request) *display.Outline
	// Remember adds to what an agent's commands may do without a question, and returns once it is on the disk.
	// Without it "always" is not offered for commands that were analyzed.
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
	s, err := s.withDefaults()
	if err != nil {
		return err
	}
	m.settings.Store(&s)
	return nil
}

func (m *Manager) load(ctx context.Context) error {
	now := time.Now()
	if !m.settings.Load().KeepAnswers {
		// A yes that was not used before the restart is not used after it: too much may have changed, and
		// nobody can tell any more whether the call had already begun.
		if err := m.store.VoidAnswers(ctx); err != nil {
			return err
		}
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

// run is the one goroutine: it ends what is due and writes what can wait.
func (m *Manager) run() {
	defer close(m.stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	prune, tidy := time.Now().Add(pruneEvery), time.Now()
	for {
		now := time.Now()
		m.mu.Lock()
		m.sweep(now)
		wait := pruneEvery
		if len(m.schedule) > 0 {
			wait = m.schedule[0].due.Sub(now)
		}
		expiries := m.unwritten
		m.unwritten = nil
		m.mu.Unlock()

		retry := m.flush(expiries)
		if retry {
			wait = min(wait, flushEvery)
		}
		if !now.Before(prune) {
			prune = now.Add(pruneEvery)
			m.prune(now)
		}
		if now.Sub(tidy) >= tidyEvery {
			tidy = now
			m.book.dropExpired(now.UnixMilli())
		}
		timer.Reset(max(min(wait, prune.Sub(now)), time.Millisecond))
		select {
		case <-timer.C:
		case <-m.woken:
		case <-m.stop:
			m.mu.Lock()
			expiries := m.unwritten
			m.unwritten = nil
			m.mu.Unlock()
			m.flush(expiries)
			m.writeUses()
			return
		}
	}
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

// flush writes ends without a decision, and counted uses every few seconds. It reports whether something is left
// for later.
func (m *Manager) flush(expiries []Expiry) (left bool) {
	if len(expiries) > 0 {
		ctx, cancel := storeContext(context.Background())
		err := m.store.ExpireApprovals(ctx, expiries)
		cancel()
		if err != nil {
			// Nothing depends on these rows: past its deadline an approval is ended, whatever the row says.
			m.log.Warn("ends of approvals could not be written, trying again", "count", len(expiries), "err", err)
			m.mu.Lock()
			m.unwritten = append(expiries, m.unwritten...)
			m.mu.Unlock()
			left = true
		}
	}
	if m.book.usesDue(time.Now()) {
		m.writeUses()
	}
	return left || m.book.hasUses()
}

func (m *Manager) writeUses() {
	uses := m.book.takeUses()
	if len(uses) == 0 {
		return
	}
	ctx, cancel := storeContext(context.Background())
	defer cancel()
	if err := m.store.CountGrantUses(ctx, uses); err != nil {
		m.log.Warn("uses of grants could not be written, trying again", "err", err)
		m.book.giveBack(uses)
	}
}

func (m *Manager) prune(now time.Time) {
	m.book.dropExpired(now.UnixMilli())
	ctx, cancel := storeContext(context.Background())
	defer cancel()
	if err := m.store.PruneApprovals(ctx, now.Add(-keepRecords).UnixMilli()); err != nil {
		m.log.Warn("old approvals could not be removed", "err", err)
	}
}

// sweep ends everything that is due. The caller holds the lock.
func (m *Manager) sweep(now time.Time) {
	for len(m.schedule) > 0 && !m.schedule[0].due.After(now) {
		e := m.schedule[0]
		switch {
		case e.phase >= resolved:
			heap.Pop(&m.schedule)
			if m.entries[e.record.ID] == e { // the id may belong to a newer approval by now
				delete(m.entries, e.record.ID)
			}
			m.forgetUntold(e)
		case e.claimed || e.phase == registering:
			// Somebody was in time and is being written down; whoever writes sets the next due time.
			heap.Pop(&m.schedule)
		case e.orphan && now.Before(e.end):
			m.end(e, ByRequesterGone, now)
		default:
			m.end(e, "", now)
			m.people.timedOut(e.session, now)
		}
	}
}

// end resolves a pending entry without a decision. The caller holds the lock.
func (m *Manager) end(e *entry, by string, now time.Time) {
	m.settle(e, Resolution{Decision: toolward.NoDecision, By: by, AtMs: now.UnixMilli()}, kept{}, now)
	m.unwritten = append(m.unwritten, Expiry{e.record.Key(), by, now.UnixMilli()})
	m.wake()
}

// settle makes an entry resolved, wakes everybody who waits, and returns the record as people are shown it. The caller holds
// the lock.
func (m *Manager) settle(e *entry, end Resolution, k kept, now time.Time) Record {
	m.uncount(e)
	e.phase, e.claimed = resolved, false
	e.record.State, e.record.Decision = StateResolved, end.Decision
	e.record.ResolvedBy, e.record.Reason, e.record.ResolvedMs, e.record.Grant = end.By, end.Reason, end.AtMs, k.id()
	e.record.Saved = k.entries
	if e.cancel != nil {
		e.cancel()
	}
	close(e.done)
	m.schedule.set(e, now.Add(grace))
	m.keepUntold(e, now)
	r := e.shown()
	m.publish(Event{Type: EventResolved, Approval: r})
	return r
}

// shown is the record with what people are shown of it, if that is in memory.
func (e *entry) shown() Record {
	r := e.record
	if e.detail != nil {
		r.Request, _ = decodeDetails(e.detail) // our own encoding; without it the event still says what happened
	}
	return r
}

func (m *Manager) publish(e Event) {
	if m.observe != nil {
		m.observe(e)
	}
	m.subs.publish(e)
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
