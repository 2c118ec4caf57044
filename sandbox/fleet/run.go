package fleet

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
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

// Layout says where everything is in the sandbox of a request, without making one. Its private directory is made: the
// first call is judged by what is there.
func (m *Manager) Layout(ctx context.Context, q settings.Request) (*settings.Layout, error) {
	if _, layout := m.readyFor(q); layout != nil {
		return layout, nil
	}
	resolved := m.Settings().For(q.Agent)
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
	look, flush, prune := time.NewTicker(lookEvery), time.NewTicker(flushEvery), time.NewTicker(pruneEvery)
	defer look.Stop()
	defer flush.Stop()
	defer prune.Stop()
	for {
		select {
		case <-m.ended.Done():
			return
		case <-look.C:
			m.ranOn(false)
		case <-flush.C:
			m.ranOn(true)
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
