package anomaly_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/audit/anomaly"
	"github.com/toolward/toolward/store"
)

// record is a real log on a real database.
type record struct {
	*audit.Log
	source *store.Audit
}

func newRecord(t testing.TB) record {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	source, err := db.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key, first, err := audit.LoadKey(db.Home())
	if err != nil {
		t.Fatal(err)
	}
	same := func(s string) string { return s }
	log, err := audit.Open(t.Context(), source, audit.Options{Key: key, First: first, Redact: same, Escape: same})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return record{log, source}
}

// noFloors raises nothing.
type noFloors struct{}

func (noFloors) RaiseFloor(context.Context, toolward.SessionKey, toolward.Level, time.Duration, string) error {
	return nil
}

// TestRestart plays random calls to a gateway, and then asks a monitor that was there and one that read the record the
// same questions.
func TestRestart(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 9))
			config := anomaly.Config{Loops: loops(2, 4, 6), Detectors: map[anomaly.Detector]anomaly.Override{
				// The record keeps no contents.
				anomaly.ArgSize: at(512, anomaly.Alert), anomaly.ArgEncoded: at(512, anomaly.Alert),
			}}
			w := newWorld(t, config, noFloors{})
			log := newRecord(t)
			gateway, err := toolward.New(toolward.Config{Policy: w.policy, Approver: w.approver, Auditor: log, Sessions: w.sessions, Watcher: w.watcher})
			must(t, err)
			request := func() toolward.Call {
				w.policy.Verdict = toolward.Allow
				if r.IntN(5) == 0 {
					w.policy.Verdict = toolward.Deny
				}
				w.result = fmt.Sprint(r.IntN(2))
				name := fmt.Sprint(r.IntN(3))
				w.facts = toolward.Facts{
					Mutates: r.IntN(2) == 0, Deletes: r.IntN(2), Hosts: []string{"https://h" + name}, Recipients: []string{"mail:me:" + name},
					Targets: []toolward.Target{{Real: "/p/" + name, Zone: []toolward.Zone{"secret", "workspace"}[r.IntN(2)], Op: toolward.OpRead}},
				}
				c := callIn([]toolward.SessionKey{here, "agent:coder:there"}[r.IntN(2)], []string{"write", "exec", "missing"}[r.IntN(10)/4], r.IntN(3))
				c.Run = fmt.Sprint("run-", r.IntN(3))
				if r.IntN(12) == 0 {
					c.Arguments = []byte(`[]`)
				}
				return c
			}
			for range 60 {
				_, _ = gateway.Call(t.Context(), request())
			}
			again, err := anomaly.New(config)
			must(t, err)
			n, err := again.Restore(t.Context(), flushed(t, log))
			if err != nil || n < 60 {
				t.Fatalf("%d records, %v", n, err)
			}
			odd := 0
			for range 40 {
				c := request()
				q := &toolward.Request{
					Call: c, Tool: &toolward.Tool{Name: c.Tool}, Facts: w.facts, Inputs: toolward.LevelInputs{External: true},
					Digest: toolward.NewParams(c.Arguments, nil).Digest(c.Tool, c.Caller.Agent, c.Session),
				}
				now := time.Now()
				want, got := w.monitor.Preview(now, q), again.Preview(now, q)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%+v (-was there +read the record):\n%s", c, diff)
				}
				if len(want.Fired)+len(want.Ask) > 0 {
					odd++
				}
			}
			if odd == 0 {
				t.Error("nothing was odd: the calls mean nothing")
			}
		})
	}
}

// flushed is the source of a log with everything in it that was accepted.
func flushed(t *testing.T, log record) audit.Source {
	t.Helper()
	if _, err := log.Query(t.Context(), audit.Filter{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	return log.source
}

func TestAnEndedRunSurvivesARestart(t *testing.T) {
	log := newRecord(t)
	_, err := log.Append(t.Context(), audit.Event{
		Type: audit.TypeAnomaly, Session: here, Agent: "coder", Data: map[string]any{"detector": "writes", "action": "abort", "run": "run-1"},
	})
	must(t, err)
	_, err = log.Append(t.Context(), audit.Event{Type: audit.TypeAnomaly, Data: map[string]any{"detector": "auditGap", "text": "x"}})
	must(t, err)
	w := newWorld(t, anomaly.Config{}, nil)
	if _, err := w.monitor.Restore(t.Context(), log.source); err != nil {
		t.Fatal(err)
	}
	if code := w.call(callIn(here, "write", 1)); code != toolward.CodeAnomaly {
		t.Errorf("%q", code)
	}
}

// torn is a source whose first record cannot be read.
type torn struct{ audit.Source }

func (s torn) Scan(ctx context.Context, from int64, visit func(*audit.Record) error) error {
	return s.Source.Scan(ctx, from, func(r *audit.Record) error {
		if r.Seq == from {
			r = &audit.Record{Seq: r.Seq, Type: audit.TypeDecision, Agent: "coder", Session: string(here), Tool: "write", JSON: `{"level":"calm"}`}
		}
		return visit(r)
	})
}

// A record that cannot be read is told of; it does not hide what came after it.
func TestAStrangeRecordHidesNothing(t *testing.T) {
	log := newRecord(t)
	for range 2 {
		_, err := log.Append(t.Context(), audit.Event{
			Type: audit.TypeAnomaly, Session: here, Agent: "coder", Data: map[string]any{"detector": "writes", "action": "abort", "run": "run-1"},
		})
		must(t, err)
	}
	w := newWorld(t, anomaly.Config{}, nil)
	if n, err := w.monitor.Restore(t.Context(), torn{flushed(t, log)}); err == nil || n != 2 {
		t.Errorf("%d records, %v", n, err)
	}
	if code := w.call(callIn(here, "write", 1)); code != toolward.CodeAnomaly {
		t.Errorf("%q", code)
	}
}

// What a person has cleared stays cleared: after a restart nobody would know why the run is refused again.
func TestWhatWasClearedStaysClearedAfterARestart(t *testing.T) {
	log := newRecord(t)
	for _, e := range []audit.Event{
		{Type: audit.TypeAnomaly, Session: here, Agent: "coder", Data: map[string]any{"detector": "writes", "action": "abort", "run": "run-1"}},
		{Type: audit.TypeLevel, Session: here, Agent: "coder", Data: map[string]any{"event": "cleared", "external": false, "by": "owner"}},
		{Type: audit.TypeLevel, Session: here, Agent: "coder", Data: map[string]any{"from": "lockdown", "to": "normal"}},
	} {
		_, err := log.Append(t.Context(), e)
		must(t, err)
	}
	w := newWorld(t, anomaly.Config{}, nil)
	if _, err := w.monitor.Restore(t.Context(), log.source); err != nil {
		t.Fatal(err)
	}
	if code := w.call(callIn(here, "write", 1)); code != "" {
		t.Errorf("%q", code)
	}
}

// BenchmarkRestore is what a start costs with 100,000 records in the log, all of the last hour.
func BenchmarkRestore(b *testing.B) {
	log := newRecord(b)
	for i := range 50_000 {
		id, err := log.Decide(b.Context(), decisionOf(i))
		if err != nil {
			b.Fatal(err)
		}
		if err := log.Conclude(b.Context(), id, &toolward.OutcomeRecord{Status: toolward.StatusOK, ResultDigest: "d"}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := log.Query(b.Context(), audit.Filter{Limit: 1}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m, err := anomaly.New(anomaly.Config{})
		if err != nil {
			b.Fatal(err)
		}
		n, err := m.Restore(b.Context(), log.source)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n), "records")
	}
}

func decisionOf(i int) *toolward.DecisionRecord {
	params := toolward.NewParams([]byte(`{"path":"src/server/handlers/list.go","limit":200}`), nil)
	call := toolward.Call{
		ID: fmt.Sprint(i), Run: "run-1", Tool: "read", Session: toolward.SessionKey(fmt.Sprint("agent:coder:mcp:", i%50)),
		Surface: toolward.SurfaceMCP, WorkDir: "/home/ada/shop", Caller: toolward.Caller{Agent: "coder", Context: "main", Workspace: "/home/ada/shop"},
	}
	return &toolward.DecisionRecord{
		Call: call, Tool: "read", Digest: params.Digest("read", "coder", call.Session), Params: params, Verdict: toolward.Allow,
		Facts:    toolward.Facts{Targets: []toolward.Target{{Real: "/home/ada/shop/src/server/handlers/list.go", Op: toolward.OpRead, Zone: "workspace"}}},
		Judgment: toolward.Judgment{Verdict: toolward.Allow, Row: "read workspace"}, Via: "class",
	}
}
