package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

func open(t *testing.T, traces Traces) *Telemetry {
	t.Helper()
	m, err := New(t.Context(), Options{
		Version: "test", Traces: traces, Pending: func() int { return 3 }, Known: func(name string) bool { return name == "read" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// gateway is a real gateway that is measured.
func gateway(t *testing.T, m *Telemetry, verdict toolward.Verdict) (*toolward.Gateway, *gatetest.Harness) {
	t.Helper()
	tool := func(name string) *toolward.Tool {
		return &toolward.Tool{Name: name, Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
			return toolward.TextResult("done"), nil
		}}
	}
	h := gatetest.New(t, verdict, tool("read"), tool("made_up"))
	return h.With(t, func(c *toolward.Config) { c.Auditor, c.Observer = m.Recorder(h.Auditor), m }), h
}

func call(agent, tool, args string) toolward.Call {
	return toolward.Call{
		ID: "c", Tool: tool, Arguments: []byte(args), Caller: toolward.Caller{Agent: agent, Workspace: "/ws"},
		Session: toolward.SessionKey("agent:" + agent + ":private-session"), Surface: toolward.SurfaceMCP, WorkDir: "/ws", Host: toolward.HostGateway,
	}
}

func scrape(t *testing.T, m *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestEveryDecisionIsCounted(t *testing.T) {
	m := open(t, Traces{})
	allow, _ := gateway(t, m, toolward.Allow)
	deny, _ := gateway(t, m, toolward.Deny)
	for range 2 {
		if _, err := allow.Call(t.Context(), call("coder", "read", `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []toolward.Call{call("coder", "read", `{}`), call("coder", "no-such", `{}`), call("coder", "read", `[]`)} {
		if _, err := deny.Call(t.Context(), c); err == nil {
			t.Fatal("not refused")
		}
	}
	text := scrape(t, m)
	for _, want := range []string{
		`toolward_calls_total{agent="coder",code="",level="normal",surface="mcp",tool="read",verdict="allow",via="class"} 2`,
		`toolward_calls_total{agent="coder",code="blocked",level="normal",surface="mcp",tool="read",verdict="deny",via="denied"} 1`,
		`code="unknown_tool",level="lockdown",surface="mcp",tool="(other)",verdict="deny",via="denied"} 1`,
		`toolward_outcomes_total{status="ok"} 2`,
		`toolward_outcomes_total{status="denied"} 3`,
		`toolward_step_seconds_count{step="call"} 5`,
		`toolward_step_seconds_count{step="record"} 2`,
		`toolward_run_seconds_count{tool="read"} 2`,
		`toolward_approvals_pending 3`,
		`toolward_build_info{version="test"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestNamesThatCallersInventDoNotFillMemory(t *testing.T) {
	m := open(t, Traces{})
	g, _ := gateway(t, m, toolward.Allow)
	for i := range maxAgents + 50 {
		if _, err := g.Call(t.Context(), call(fmt.Sprintf("agent%d", i), "made_up", `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if n := testutil.CollectAndCount(m.metrics.calls); n != maxAgents+1 {
		t.Errorf("%d series of calls, want %d", n, maxAgents+1)
	}
	text := scrape(t, m)
	if strings.Contains(text, "made_up") || !strings.Contains(text, `toolward_calls_total{agent="(other)",code="",level="normal",surface="mcp",tool="(other)",verdict="allow",via="class"} 50`) {
		t.Error("the rest is not counted together")
	}
}

func TestADecisionThatCannotBeRecordedIsCountedAndStillRefused(t *testing.T) {
	m := open(t, Traces{})
	g, h := gateway(t, m, toolward.Allow)
	h.Auditor.Err = errors.New("disk full")
	if _, err := g.Call(t.Context(), call("coder", "read", `{}`)); err == nil {
		t.Fatal("it ran without a record")
	}
	if n := testutil.ToFloat64(m.metrics.unsaved); n < 1 {
		t.Error("not counted")
	}
}

func TestEventsAreCountedByWhatTheyHold(t *testing.T) {
	m := open(t, Traces{})
	m.Event("level", map[string]any{"to": "lockdown"})
	m.Event("anomaly", map[string]any{"detector": "burst", "action": "alert"})
	m.Event("approval", map[string]any{"event": "approval.resolved", "decision": "deny"})
	m.Event("approval", map[string]any{"event": "approval.requested"})
	text := scrape(t, m)
	for _, want := range []string{
		`toolward_level_changes_total{to="lockdown"} 1`, `toolward_anomalies_total{action="alert",detector="burst"} 1`,
		`toolward_approvals_total{decision="deny"} 1`, `toolward_records_total{type="approval"} 2`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

// otlp is a collector that keeps what it gets.
type otlp struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*spans.Span
	raw   []byte
	keys  []string
}

func newOTLP(t *testing.T) *otlp {
	o := &otlp{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
			http.Error(w, "what is this", http.StatusBadRequest)
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.raw = append(o.raw, body...)
		o.keys = append(o.keys, r.Header.Get("X-Key"))
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				o.spans = append(o.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(o.Close)
	return o
}

func TestSpansOfACallReachTheCollectorAsOneTree(t *testing.T) {
	o := newOTLP(t)
	m := open(t, Traces{Endpoint: o.URL, Headers: map[string]string{"X-Key": "k"}})
	g, _ := gateway(t, m, toolward.Allow)
	if _, err := g.Call(t.Context(), call("coder", "read", `{"path":"/etc/private-path"}`)); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var root *spans.Span
	var below []string
	for _, s := range o.spans {
		if s.Name == "toolward.call" {
			root = s
		}
	}
	if root == nil {
		t.Fatalf("no span of the call among %d", len(o.spans))
	}
	for _, s := range o.spans {
		if string(s.ParentSpanId) == string(root.SpanId) && string(s.TraceId) == string(root.TraceId) {
			below = append(below, strings.TrimPrefix(s.Name, "toolward."))
		}
	}
	slices.Sort(below)
	if want := []string{"ask", "decode", "find", "hooks", "judge", "keep", "level", "look", "re-check", "record", "run", "watch"}; !slices.Equal(below, want) {
		t.Errorf("below the call: %v, want %v", below, want)
	}
	for _, private := range []string{"private-session", "private-path"} {
		if strings.Contains(string(o.raw), private) {
			t.Errorf("%s was exported", private)
		}
	}
	if len(o.keys) == 0 || o.keys[0] != "k" {
		t.Errorf("headers: %q", o.keys)
	}
}

func TestARefusalIsToldByItsCodeAlone(t *testing.T) {
	o := newOTLP(t)
	m := open(t, Traces{Endpoint: o.URL + "/v1/traces"})
	g, _ := gateway(t, m, toolward.Deny)
	if _, err := g.Call(t.Context(), call("coder", "private-name", `{}`)); err == nil {
		t.Fatal("not refused")
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(o.raw), "unknown_tool") || strings.Contains(string(o.raw), "private-name") {
		t.Errorf("exported: %q", o.raw)
	}
}

// A collector that does not answer must not hold up calls.
func TestADeadCollectorDelaysNothing(t *testing.T) {
	hung := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	defer server.Close()
	defer close(hung)
	m := open(t, Traces{Endpoint: server.URL})
	g, _ := gateway(t, m, toolward.Allow)
	for range 5000 { // more than the queue of spans holds
		if _, err := g.Call(t.Context(), call("coder", "read", `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := m.Close(ctx); err == nil {
		t.Error("everything was exported to a collector that never answered")
	}
}

func TestSettingsAreChecked(t *testing.T) {
	ratio := func(f float64) *float64 { return &f }
	for _, c := range []struct {
		key    string
		traces Traces
	}{
		{"", Traces{}},
		{"", Traces{Endpoint: "http://127.0.0.1:4318", SampleRatio: ratio(0.1)}},
		{"traces.endpoint", Traces{Endpoint: "127.0.0.1:4318"}},
		{"traces.endpoint", Traces{Endpoint: "ftp://host"}},
		{"traces.endpoint", Traces{Endpoint: "http://user:secret@host"}},
		{"traces.sampleRatio", Traces{SampleRatio: ratio(0)}},
		{"traces.sampleRatio", Traces{SampleRatio: ratio(1.5)}},
	} {
		wrong := Config{c.traces}.Check()
		if c.key == "" && len(wrong) != 0 || c.key != "" && (len(wrong) != 1 || wrong[0].Key != c.key || wrong[0].Text == "") {
			t.Errorf("%+v: %v, want %q", c.traces, wrong, c.key)
		}
	}
}

func BenchmarkMeasuring(b *testing.B) {
	m, err := New(b.Context(), Options{Pending: func() int { return 0 }, Known: func(string) bool { return true }})
	if err != nil {
		b.Fatal(err)
	}
	c := call("coder", "read", `{}`)
	for b.Loop() {
		_, end := m.Step(b.Context(), "call", &c)
		for range 8 {
			_, end := m.Step(b.Context(), "judge", &c)
			end(nil)
		}
		end(nil)
	}
}
