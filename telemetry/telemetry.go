package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/toolward/toolward"
)

// Config is the section "telemetry" of the configuration.
type Config struct {
	Traces Traces `json:"traces,omitzero" jsonschema:"OpenTelemetry spans of every step of a call; off without an endpoint"`
}

// Traces says where spans go.
type Traces struct {
	Endpoint    string            `json:"endpoint,omitempty" jsonschema:"OTLP over HTTP, such as http://127.0.0.1:4318; empty (default): no traces"`
	Headers     map[string]string `json:"headers,omitempty" jsonschema:"sent with every export, such as an API key"`
	SampleRatio *float64          `json:"sampleRatio,omitempty" jsonschema:"share of calls that are traced, above 0 to 1; default 1"`
}

// Problem is something wrong in the section.
type Problem struct {
	Key  string // below "telemetry"
	Text string // with what to write instead
}

// Check lists everything that is wrong in the section.
func (c Config) Check() (wrong []Problem) {
	t := c.Traces
	if t.Endpoint != "" {
		u, err := url.Parse(t.Endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			wrong = append(wrong, Problem{"traces.endpoint", fmt.Sprintf("%q is not the address of a collector; use a plain URL such as http://127.0.0.1:4318", t.Endpoint)})
		}
	}
	if r := t.SampleRatio; r != nil && (!(*r > 0) || *r > 1) {
		wrong = append(wrong, Problem{"traces.sampleRatio", fmt.Sprintf("%v is out of range; use a share above 0 and at most 1, or remove the endpoint for no traces", *r)})
	}
	return wrong
}

// Options says what is measured.
type Options struct {
	Version string
	Traces  Traces
	Pending func() int        // questions that wait now; required
	Known   func(string) bool // whether a tool of this name is registered; required
}

// Telemetry measures. Its methods may be called from any goroutine.
type Telemetry struct {
	metrics *metrics
	known   func(string) bool
	agents  *names
	plugins *names
	tracer  trace.Tracer // nil if nobody collects spans
	stop    func(context.Context) error
}

// Agents and plug-ins beyond these numbers share one label value.
const (
	maxAgents  = 200
	maxPlugins = 100
)

// New makes the measuring part. Spans are exported until Close.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	if o.Pending == nil || o.Known == nil {
		return nil, errors.New("telemetry: a part is missing")
	}
	t := &Telemetry{
		metrics: newMetrics(o.Version, o.Pending), known: o.Known,
		agents: newNames(maxAgents), plugins: newNames(maxPlugins),
	}
	if o.Traces.Endpoint != "" {
		if err := t.openTraces(ctx, o); err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
	}
	return t, nil
}

// Close exports what is left, as long as the context allows.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.stop == nil {
		return nil
	}
	return t.stop(ctx)
}

// tool is the label of a tool: its name if it is registered. Names that clients made up are bounded that way.
func (t *Telemetry) tool(name string) string {
	if t.known(name) {
		return name
	}
	return Other
}

// Recorder counts what passes through an auditor.
func (t *Telemetry) Recorder(next toolward.Auditor) toolward.Auditor { return recorder{t, next} }

type recorder struct {
	*Telemetry
	next toolward.Auditor
}

func (r recorder) Decide(ctx context.Context, d *toolward.DecisionRecord) (toolward.RecordID, error) {
	id, err := r.next.Decide(ctx, d)
	m := r.metrics
	if err != nil {
		m.unsaved.Inc()
		return id, err
	}
	m.calls.WithLabelValues(r.agents.of(d.Call.Caller.Agent), string(d.Call.Surface), r.tool(d.Tool),
		d.Verdict.String(), string(d.Code), kindOfVia(d.Via), d.Level.String()).Inc()
	for _, f := range d.Judgment.Findings {
		m.findings.WithLabelValues(f.Code, f.Effect.String()).Inc()
	}
	for _, h := range d.Hooks {
		m.hooks.WithLabelValues(r.plugins.of(h.Plugin), h.Effect).Inc()
	}
	if d.Shadow != nil {
		m.shadow.WithLabelValues(d.Judgment.Verdict.String(), d.Shadow.Verdict.String()).Inc()
	}
	if d.Answer.Waited > 0 {
		m.waited.Observe(d.Answer.Waited.Seconds())
	}
	return id, nil
}

// kindOfVia drops the id of the grant or approval.
func kindOfVia(via string) string {
	for i := range len(via) {
		if via[i] == ' ' {
			return via[:i]
		}
	}
	return via
}

func (r recorder) Conclude(ctx context.Context, id toolward.RecordID, o *toolward.OutcomeRecord) error {
	r.metrics.outcomes.WithLabelValues(string(o.Status)).Inc()
	return r.next.Conclude(ctx, id, o)
}

// Event counts a record of the audit log that is neither decision nor outcome, by its type and what it holds.
func (t *Telemetry) Event(kind string, data map[string]any) {
	m := t.metrics
	m.events.WithLabelValues(kind).Inc()
	text := func(key string) string { s, _ := data[key].(string); return s }
	switch kind {
	case "level":
		m.levels.WithLabelValues(text("to")).Inc()
	case "anomaly":
		m.anomalies.WithLabelValues(text("detector"), text("action")).Inc()
	case "approval":
		if text("event") == "approval.resolved" {
			m.approvals.WithLabelValues(text("decision")).Inc()
		}
	}
}

// Step follows a step of a call; it implements [toolward.Observer].
func (t *Telemetry) Step(ctx context.Context, name string, call *toolward.Call) (context.Context, func(error)) {
	var timed func(error)
	start := time.Now()
	switch name {
	case "call", "record":
		timed = func(error) { t.metrics.steps.WithLabelValues(name).Observe(time.Since(start).Seconds()) }
	case "run":
		timed = func(error) { t.metrics.runs.WithLabelValues(t.tool(call.Tool)).Observe(time.Since(start).Seconds()) }
	default:
		timed = uncounted
	}
	if t.tracer == nil {
		return ctx, timed
	}
	ctx, ended := t.span(ctx, name, call)
	return ctx, func(err error) { timed(err); ended(err) }
}

// uncounted is the end of a step without a series of its own: those take less time than measuring them would.
func uncounted(error) {}
