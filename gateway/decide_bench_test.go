package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/audit/anomaly"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/policy"
)

// BenchmarkDecide is the time from a call to its pass or refusal, record included, without the disk: every part of
// the gateway is the real one but the store of the record, which drops what it is given. The same calls go in turns
// through policies of 100 and of 1,000 rules, so that their ratio is of one moment.
//
// Half of the calls read and a quarter write inside the workspace, and their files are looked up on the real file
// system; the rest is for a tool of a plug-in that rules name one by one: one is allowed, one refused.
func BenchmarkDecide(b *testing.B) {
	d := benchDaemon(b)
	few, many := dropGateway(b, d, 100), dropGateway(b, d, 1000)
	calls := decideCalls(d.benchWorkspace())
	defer debug.SetGCPercent(debug.SetGCPercent(collectAt(0))) // as the gateway does
	fewTook, manyTook := make([]time.Duration, 0, 1<<20), make([]time.Duration, 0, 1<<20)
	for b.Loop() {
		for _, call := range calls {
			fewTook = append(fewTook, decideOnce(b, few, call))
			manyTook = append(manyTook, decideOnce(b, many, call))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(micros(quantile(fewTook, 0.50)), "µs-p50")
	b.ReportMetric(micros(quantile(fewTook, 0.99)), "µs-p99")
	b.ReportMetric(micros(quantile(manyTook, 0.50)), "µs-p50-1000rules")
	b.ReportMetric(micros(quantile(manyTook, 0.99)), "µs-p99-1000rules")
	b.ReportMetric(micros(quantile(manyTook, 0.50))/micros(quantile(fewTook, 0.50)), "x-of-100rules")
}

// BenchmarkDecideOne is BenchmarkDecide by kind of call, for profiles.
func BenchmarkDecideOne(b *testing.B) {
	d := benchDaemon(b)
	gateway := dropGateway(b, d, 100)
	for _, call := range decideCalls(d.benchWorkspace())[1:] {
		b.Run(call.ID, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decideOnce(b, gateway, call)
			}
		})
	}
}

func decideOnce(b *testing.B, gateway *toolward.Gateway, call toolward.Call) time.Duration {
	start := time.Now()
	pass, err := gateway.Admit(b.Context(), call)
	took := time.Since(start)
	if allowed := call.ID != "refused"; (err == nil) != allowed || allowed == (pass == nil) {
		b.Fatal(call.ID, pass, err)
	}
	if pass != nil {
		if err := pass.Close(b.Context(), toolward.OutcomeRecord{Status: toolward.StatusUnused}); err != nil {
			b.Fatal(err)
		}
	}
	return took
}

// decideCalls is one round of calls, none of which asks.
func decideCalls(workspace string) []toolward.Call {
	list := []struct{ id, tool, arguments string }{
		{"read", "read", `{"path":"src/server/handlers/list.go","offset":1,"limit":200}`},
		{"read", "read", `{"path":"src/server/handlers/list.go","offset":1,"limit":200}`},
		{"write", "write", `{"path":"src/server/handlers/list.go","content":"package handlers\n\nimport \"net/http\"\n\nfunc list(w http.ResponseWriter, r *http.Request) {\n\tw.WriteHeader(200)\n}\n"}`},
		{"allowed", "server__tool_0", `{"query":"open issues","limit":20}`},
		{"refused", "server__tool_1", `{"query":"open issues","limit":20}`},
	}
	calls := make([]toolward.Call, len(list))
	for i, c := range list {
		calls[i] = toolward.Call{
			ID: c.id, Run: "run-7", Tool: c.tool, Arguments: json.RawMessage(c.arguments), Session: "agent:coder:mcp:laptop:2f1c",
			Surface: toolward.SurfaceMCP, WorkDir: workspace, Host: toolward.HostGateway,
			Caller: toolward.Caller{Agent: "coder", Context: "main", Client: "bench 1.0", Workspace: workspace},
		}
	}
	return calls
}

// dropGateway is the gateway with a policy of n rules, and a record that goes nowhere.
func dropGateway(b *testing.B, d *Gateway, n int) *toolward.Gateway {
	b.Helper()
	config, tools := rules(n, d.tools)
	config.Around = d.surroundings()
	snapshot, _, err := policy.Compile(config, tools)
	if err != nil {
		b.Fatal(err)
	}
	key, _, err := audit.LoadKey(d.home)
	if err != nil {
		b.Fatal(err)
	}
	log, err := audit.Open(b.Context(), droppingStore{&sync.Mutex{}}, audit.Options{Key: key, First: true, Redact: d.secrets.String, Escape: display.Block})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(log.Close)
	gateway, err := toolward.New(toolward.Config{
		Policy: policy.NewLive(snapshot), Approver: d.approver, Auditor: log, Sessions: d.sessions, Watcher: quietWatcher(b, d), Log: d.log,
	})
	if err != nil {
		b.Fatal(err)
	}
	return gateway
}

// quietWatcher has every detector at work. None has consequences: a benchmark is a burst of calls and refusals.
func quietWatcher(b *testing.B, d *Gateway) *anomaly.Watcher {
	b.Helper()
	alert := anomaly.Alert
	settings := map[anomaly.Detector]anomaly.Override{}
	for _, d := range anomaly.Defaults() {
		settings[d.Detector] = anomaly.Override{Action: &alert, Escalate: anomaly.Escalation{Set: true}}
	}
	monitor, err := anomaly.New(anomaly.Config{Detectors: settings})
	if err != nil {
		b.Fatal(err)
	}
	watcher, err := anomaly.NewWatcher(monitor, d.sessions, func(anomaly.Notice) {}, d.log)
	if err != nil {
		b.Fatal(err)
	}
	return watcher
}

// rules spreads n entries over every kind of list that a policy has, and registers the tools that they name.
func rules(n int, builtin []*toolward.Tool) (policy.Config, []*toolward.Tool) {
	c := policy.Config{
		TEG:    policy.TEG{Preset: policy.PresetWorkspace, Tools: map[string]string{}},
		Agents: []policy.Agent{{ID: "coder", TEG: policy.AgentTEG{Tools: map[string]string{}}}},
	}
	agent := &c.Agents[0]
	tools := slices.Clone(builtin)
	for i := range n {
		name := fmt.Sprintf("server__tool_%d", i)
		switch i % 6 {
		case 0:
			c.TEG.Tools[name] = "safe"
		case 1:
			c.TEG.Tools[name] = "blocked"
		case 2:
			c.TEG.Tools[fmt.Sprintf("message.action%d", i)] = "blocked"
		case 3:
			c.Tools.Deny = append(c.Tools.Deny, name)
		case 4:
			agent.Tools.Deny = append(agent.Tools.Deny, name+"*")
		default:
			agent.TEG.Tools[name] = "needs_approval"
		}
		tools = append(tools, &toolward.Tool{
			Name: name, Plugin: "server",
			Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}`),
		})
	}
	return c, tools
}

// droppingStore accepts every record and keeps none.
type droppingStore struct{ turn *sync.Mutex }

var _ audit.Store = droppingStore{}

// Append hands out a transaction that succeeds without doing anything.
func (d droppingStore) Append(_ context.Context, _ bool, add func(audit.Appender) error, ended func(bool)) error {
	d.turn.Lock()
	defer d.turn.Unlock()
	if err := add(droppingTx{}); err != nil {
		return err
	}
	ended(true)
	return nil
}

func (droppingStore) Drop(context.Context, int64, audit.Seal) error { return nil }
func (droppingStore) Last(context.Context) (audit.Record, error)    { return audit.Record{}, nil }

func (droppingStore) Seals(context.Context) ([]audit.Seal, error)                  { return nil, nil }
func (droppingStore) Scan(context.Context, int64, func(*audit.Record) error) error { return nil }
func (droppingStore) Find(context.Context, audit.Filter) ([]audit.Record, error)   { return nil, nil }
func (droppingStore) Before(context.Context, time.Time) (int64, error)             { return 0, nil }

type droppingTx struct{}

func (droppingTx) Put(*audit.Record) error     { return nil }
func (droppingTx) Seal(*audit.Seal) error      { return nil }
func (droppingTx) Last() (audit.Record, error) { return audit.Record{}, nil }
