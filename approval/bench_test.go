package approval

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/toolward/toolward"
)

// discard is a store that accepts everything, so that benchmarks measure the manager alone.
type discard struct{ *memory }

func (discard) AddApproval(context.Context, *Record) error                     { return nil }
func (discard) ResolveApproval(context.Context, Key, Resolution, *Grant) error { return nil }
func (discard) ConsumeApproval(context.Context, Key, int64) (bool, error)      { return true, nil }
func (discard) ExpireApprovals(context.Context, []Expiry) error                { return nil }
func (discard) CountGrantUses(context.Context, []GrantUse) error               { return nil }
func (discard) Approval(context.Context, string) (*Record, error)              { return nil, nil }

// crowds are how many approvals wait.
var crowds = []int{10_000, 100_000}

// eachCrowd runs a benchmark with each of them.
func eachCrowd(b *testing.B, run func(b *testing.B, pending int)) {
	for _, n := range crowds {
		b.Run(fmt.Sprint(n), func(b *testing.B) { run(b, n) })
	}
}

// crowded is a manager with so many pending approvals, and their ids.
func crowded(b *testing.B, pending int) (*Manager, []string) {
	m := open(b, discard{newMemory()}, func(o *Options) {
		o.Settings = Settings{Total: 1 << 30, PerSession: 1 << 30, PerConn: 1 << 30, Timeout: 10 * time.Minute}
	})
	p, err := m.Attach(Approver{By: alice})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	ids := make([]string, pending)
	for i := range ids {
		ids[i] = poseOne(b, m, i)
	}
	return m, ids
}

func poseOne(b *testing.B, m *Manager, i int) string {
	text := fmt.Sprintf("line %d of the file that the agent wants to write\n", i)
	q := question(func(r *toolward.Request, _ *toolward.Judgment) {
		r.Params = toolward.NewParams([]byte(fmt.Sprintf(`{"content":%q,"path":"src/a.go"}`, text)), map[string]any{"path": "src/a.go", "content": text})
		r.Call.Detach = true
		r.Call.Session = toolward.SessionKey(fmt.Sprintf("agent:coder:%d", i%500))
	})
	_, err := m.Ask(context.Background(), q)
	var p *toolward.Pending
	if !errors.As(err, &p) {
		b.Fatal(err)
	}
	return p.ID
}

// BenchmarkPendingMemory measures what one pending approval takes, all of it and without the text that people are shown.
func BenchmarkPendingMemory(b *testing.B) { eachCrowd(b, pendingMemory) }

func pendingMemory(b *testing.B, pending int) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // what pools held is garbage for the second one only
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapInuse + s.StackInuse
	}
	var all, text uint64
	rounds := 0
	for b.Loop() {
		before := heap()
		m, _ := crowded(b, pending)
		all += heap() - before
		for _, e := range m.entries {
			text += uint64(len(e.detail))
		}
		rounds++
		m.Close()
	}
	each := float64(rounds) * float64(pending)
	b.ReportMetric(float64(all)/each, "B/pending")
	b.ReportMetric((float64(all)-float64(text))/each, "B-beyond-text/pending")
}

// BenchmarkResolve measures an answer without the commit, from its id to the end of the approval, while so many wait.
func BenchmarkResolve(b *testing.B) { eachCrowd(b, resolveAmong) }

func resolveAmong(b *testing.B, pending int) {
	m, ids := crowded(b, pending)
	b.ReportAllocs()
	took := make([]time.Duration, 0, 1<<16)
	b.ResetTimer()
	i := 0
	for b.Loop() {
		if i == len(ids) {
			b.StopTimer()
			for j := range ids {
				ids[j] = poseOne(b, m, j)
			}
			i = 0
			b.StartTimer()
		}
		start := time.Now()
		e, err := m.answerable(Response{ID: ids[i], By: alice, Shown: stamp(m, ids[i])}, toolward.AllowOnce)
		if err == nil {
			_, err = m.write(context.Background(), e, answerOf{decision: toolward.AllowOnce, by: "alice"})
		}
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		i++
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// stamp is one of a second ago, as if the approval had been on the screen since.
func stamp(m *Manager, id string) string {
	return m.stamps.sign(&m.entries[id].record, alice.SignIn(), time.Now().Add(-time.Second))
}

func BenchmarkResolveByPrefix(b *testing.B) { eachCrowd(b, resolveByPrefix) }

func resolveByPrefix(b *testing.B, pending int) {
	m, ids := crowded(b, pending)
	i := 0
	for b.Loop() {
		m.mu.Lock()
		_, err := m.find(ids[i%len(ids)][:13])
		m.mu.Unlock()
		if err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkGrantedAmong10000(b *testing.B) {
	m := open(b, discard{newMemory()}, nil)
	for i := range 10_000 {
		kind, prefix := toolward.GrantPath, fmt.Sprintf("/ws/src/%d", i)
		if i%2 == 0 {
			kind, prefix = toolward.GrantExact, ""
		}
		m.book.add(&Grant{
			ID: fmt.Sprint(i), Tool: "write", Agent: "coder", Scope: ScopeAgent, Contexts: []string{"main"}, Host: "gateway",
			MaxLevel: toolward.Normal, ExpiresMs: 1 << 60,
			Match: Match{Kind: kind, Prefix: prefix, Digest: fmt.Sprint(i), Ops: []toolward.Op{toolward.OpWrite}},
		})
	}
	q := question(func(r *toolward.Request, _ *toolward.Judgment) { r.Facts.Targets[0].Real = "/ws/src/4711/lib/a.go" })
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, _ := m.Granted(context.Background(), q); !ok {
			b.Fatal("not granted")
		}
	}
}
