package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// Usage is what a sandbox uses at a time, as people see it.
type Usage struct {
	At time.Time `json:"at,omitzero"` // of the reading; zero: there is none
	// Busy is how many processors it kept busy between two readings: 0.5 is half of one. nil is not known.
	Busy       *float64 `json:"busy,omitempty"`
	Processors float64  `json:"processors,omitempty"` // that it may keep busy; 0 is unknown
	CPUMs      int64    `json:"cpuMs"`                // processor time since it was started
	Memory     int64    `json:"memory"`               // without page cache where that can be told
	Cache      int64    `json:"cache"`
	MemoryPeak int64    `json:"memoryPeak"`
	Pids       int64    `json:"pids"`
	OOMKills   int64    `json:"oomKills"`
	Problem    string   `json:"problem,omitempty"` // why there is no reading now
}

// Bounds of reading what sandboxes use.
const (
	readingFresh   = time.Second            // whoever asks again within it gets the same reading
	readingGap     = 250 * time.Millisecond // between the two readings that a first look takes
	readingBase    = 15 * time.Second       // an older reading says nothing about how busy it is now
	readingTime    = 3 * time.Second        // one reading may take so long
	readingKept    = time.Minute
	readingsAtOnce = 8 // for each engine
)

// meter reads what sandboxes use, when somebody asks and no more often than that is of use, however many ask. A sandbox
// that does not answer holds one goroutine and nobody who asks for longer than they want.
type meter struct {
	read func(ctx context.Context, name string) (*sandbox.Stats, error)

	mu    sync.Mutex
	slots map[string]chan struct{} // by engine, so that a stuck one does not hold up the other
	last  map[string]*reading
}

// reading is the latest that is known of one sandbox.
type reading struct {
	id    string // of the engine: another one begins anew
	asked time.Time
	began time.Time // of the latest reading
	usage Usage
	cpu   time.Duration
	done  chan struct{} // closed when the reading that is under way has ended; nil if none is
}

func newMeter(read func(context.Context, string) (*sandbox.Stats, error)) *meter {
	return &meter{read: read, slots: map[string]chan struct{}{}, last: map[string]*reading{}}
}

// Usage says what sandboxes use that run. It starts none, and returns when ctx ends with what is known by then.
func (m *Manager) Usage(ctx context.Context, infos []Info) map[string]Usage {
	return m.meter.usage(ctx, infos)
}

func (m *meter) usage(ctx context.Context, infos []Info) map[string]Usage {
	var wait []chan struct{}
	m.mu.Lock()
	m.forget()
	for i := range infos {
		if infos[i].Running {
			wait = append(wait, m.ask(&infos[i]))
		}
	}
	m.mu.Unlock()
	for _, done := range wait {
		if done == nil {
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]Usage{}
	for i := range infos {
		if r := m.last[infos[i].Name]; r != nil && infos[i].Running {
			u := r.usage
			if r.done != nil && time.Since(u.At) > readingTime {
				u.Problem = "no answer"
			}
			all[infos[i].Name] = u
		}
	}
	return all
}

// ask begins a reading unless there is a fresh one, and returns what is closed when it has ended. The caller holds the
// mutex.
func (m *meter) ask(i *Info) chan struct{} {
	r := m.last[i.Name]
	if r == nil || r.id != i.EngineID && r.done == nil {
		r = &reading{id: i.EngineID}
		m.last[i.Name] = r
	}
	now := time.Now()
	if r.done == nil && (r.began.IsZero() || now.Sub(r.began) >= readingFresh) {
		r.done, r.began = make(chan struct{}), now
		slots := m.slots[i.Engine]
		if slots == nil {
			slots = make(chan struct{}, readingsAtOnce)
			m.slots[i.Engine] = slots
		}
		go m.take(r, i.Name, i.Limits.CPUs, slots)
	}
	r.asked = now
	return r.done
}

// forget drops what nobody has asked about lately. The caller holds the mutex.
func (m *meter) forget() {
	for name, r := range m.last {
		if r.done == nil && time.Since(r.asked) > readingKept {
			delete(m.last, name)
		}
	}
}

// take reads once, or twice where there is nothing yet that processor time could be compared with.
func (m *meter) take(r *reading, name string, limit float64, slots chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), readingTime)
	defer cancel()
	if again := m.once(ctx, r, name, limit, slots); again {
		gap := time.NewTimer(readingGap)
		defer gap.Stop()
		<-gap.C
		m.once(ctx, r, name, limit, slots)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	close(r.done)
	r.done = nil
}

func (m *meter) once(ctx context.Context, r *reading, name string, limit float64, slots chan struct{}) (again bool) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		m.failed(r, "no answer")
		return false
	}
	stats, err := m.read(ctx, name)
	<-slots
	switch {
	case err != nil && ctx.Err() != nil:
		m.failed(r, "no answer")
	case err != nil:
		m.failed(r, err.Error())
	case stats == nil:
		m.failed(r, "this gateway does not hold it")
	default:
		return m.note(r, stats, limit)
	}
	return false
}

func (m *meter) failed(r *reading, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.usage = Usage{Problem: why}
}

// note keeps a reading, and reports whether another one is needed to tell how busy the sandbox is.
func (m *meter) note(r *reading, stats *sandbox.Stats, limit float64) (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, before := time.Now(), r.usage.At
	u := Usage{
		At: now, CPUMs: stats.CPU.Milliseconds(), Memory: stats.Memory, Cache: stats.Cache, MemoryPeak: stats.MemoryPeak,
		Pids: stats.Pids, OOMKills: stats.OOMKills, Processors: float64(stats.Processors),
	}
	if limit > 0 && (u.Processors == 0 || limit < u.Processors) {
		u.Processors = limit
	}
	passed := now.Sub(before)
	usable := !before.IsZero() && passed > 0 && passed <= readingBase && stats.CPU >= r.cpu
	if usable {
		busy := float64(stats.CPU-r.cpu) / float64(passed)
		u.Busy = &busy
	}
	r.usage, r.cpu = u, stats.CPU
	return !usable
}
