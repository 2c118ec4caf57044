package telemetry

import (
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics is every series that /metrics shows; docs/metrics.md is their reference.
type metrics struct {
	registry *prometheus.Registry

	calls     *prometheus.CounterVec   // decisions
	outcomes  *prometheus.CounterVec   // ends of calls
	findings  *prometheus.CounterVec   // what validation saw
	hooks     *prometheus.CounterVec   // what plug-ins did
	shadow    *prometheus.CounterVec   // decisions on which the shadow policy differs
	events    *prometheus.CounterVec   // other records: approvals, levels, anomalies, …
	anomalies *prometheus.CounterVec   // detectors that fired
	levels    *prometheus.CounterVec   // changes of sessions' levels
	approvals *prometheus.CounterVec   // answers of people
	waited    prometheus.Histogram     // how long people took
	steps     *prometheus.HistogramVec // how long the gateway took
	runs      *prometheus.HistogramVec // how long tools took
	unsaved   prometheus.Counter       // decisions that could not be recorded
}

// Buckets in seconds: of the gateway's own work, from 1 µs to 1 s; of tools, from 1 ms to 10 minutes; of people, from
// 1 s to 1 hour.
var (
	stepBuckets  = []float64{1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 0.1, 1}
	runBuckets   = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600}
	humanBuckets = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 3600}
)

func newMetrics(version string, pending func() int) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "toolward", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "toolward", Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),

		calls:     counter("calls_total", "Decided calls.", "agent", "surface", "tool", "verdict", "code", "via", "level"),
		outcomes:  counter("outcomes_total", "Ends of decided calls.", "status"),
		findings:  counter("findings_total", "What validation saw in arguments.", "finding", "effect"),
		hooks:     counter("plugin_runs_total", "What plug-ins did around calls.", "plugin", "effect"),
		shadow:    counter("shadow_differences_total", "Calls on which the shadow policy differs from the policy in force.", "verdict", "shadow"),
		events:    counter("records_total", "Records besides decisions and outcomes.", "type"),
		anomalies: counter("anomalies_total", "Detectors that fired.", "detector", "action"),
		levels:    counter("level_changes_total", "Changes of the level of sessions.", "to"),
		approvals: counter("approvals_total", "Questions that ended.", "decision"),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "toolward", Name: "approval_wait_seconds", Help: "How long calls waited for people.", Buckets: humanBuckets,
		}),
		steps: histogram("step_seconds", "How long the gateway took: the whole admission of a call, and its record.", stepBuckets, "step"),
		runs:  histogram("run_seconds", "How long tools ran.", runBuckets, "tool"),
		unsaved: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "toolward", Name: "unrecorded_total", Help: "Decisions that could not be recorded; such calls are refused.",
		}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "toolward", Name: "build_info", Help: "1, with the version as a label."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "toolward", Name: "approvals_pending", Help: "Questions that wait for people."},
		func() float64 { return float64(pending()) })
	m.registry.MustRegister(
		m.calls, m.outcomes, m.findings, m.hooks, m.shadow, m.events, m.anomalies, m.levels, m.approvals, m.waited,
		m.steps, m.runs, m.unsaved, build, waiting,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler answers with all series in the formats that Prometheus understands. Who may ask is not its business.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.metrics.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

// Other is the label value for whatever is beyond a bound.
const Other = "(other)"

// names bounds the values of one label: the first ones keep their names, all others are [Other].
type names struct {
	most int

	mu    sync.RWMutex
	known map[string]struct{}
}

func newNames(most int) *names { return &names{most: most, known: map[string]struct{}{}} }

func (n *names) of(name string) string {
	n.mu.RLock()
	_, known := n.known[name]
	full := len(n.known) >= n.most
	n.mu.RUnlock()
	switch {
	case known:
		return name
	case full || len(name) > 128:
		return Other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= n.most {
		return Other
	}
	n.known[name] = struct{}{}
	return name
}
