package approval

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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

const manyPending = 10_000

// crowded is a manager with ten thousand pending approvals, and their ids.
func crowded(b *testing.B) (*Manager, []string) {
	m := open(b, discard{newMemory()}, func(o *Options) {
		o.Settings = Settings{Total: 1 << 30, PerSession: 1 << 30, PerConn: 1 << 30, Timeout: 10 * time.Minute}
	})
	p, err := m.Attach(Approver{By: alice})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	ids := make([]string, manyPending)
	for i := range ids {
		ids[i] = poseOne(b, m, i)
	}
	return m, ids
}

func poseOne(b *testing.B, m *Manager, i int) string {
	text := fmt.Sprintf("line %d of the file that the agent wants to write\n", i)
	q := question(func(r *toolward.Request, _ *toolward.Judgement) {
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

func BenchmarkPendingMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // what pools held is garbage for the second one only
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapInuse + s.StackInuse
	}
	var all uint64
	rounds := 0
	for b.Loop() {
		before := heap()
		m, _ := crowded(b)
		all += heap() - before
		rounds++
		m.Close()
	}
	b.ReportMetric(float64(all)/float64(rounds)/manyPending, "B/pending")
}

func BenchmarkResolveAmong10000(b *testing.B) {
	m, ids := crowded(b)
	b.ReportAllocs()
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
		m.mu.Lock()
		e := m.entries[ids[i]]
		m.mu.Unlock()
		if _, err := m.write(context.Background(), e, answerOf{decision: toolward.AllowOnce, by: "alice"}); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkResolveByPrefixAmong10000(b *testing.B) {
	m, ids := crowded(b)
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
	for i := range manyPending {
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
	q := question(func(r *toolward.Request, _ *toolward.Judgement) { r.Facts.Targets[0].Real = "/ws/src/4711/lib/a.go" })
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, _ := m.Granted(context.Background(), q); !ok {
			b.Fatal("not granted")
		}
	}
}
