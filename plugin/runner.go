package plugin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/redact"
)

// Runner calls the plug-ins of the configuration in force.
type Runner struct {
	registry *Registry
	log      *slog.Logger
	redact   *redact.Redactor
	environ  func(string) (string, bool)
	queue    queue
	programs programs

	configuring sync.Mutex
	current     atomic.Pointer[set]
}

var _ toolward.Hooks = (*Runner)(nil)

// Options of a Runner. All are optional.
type Options struct {
	Registry *Registry                        // plug-ins that are compiled in
	Redact   *redact.Redactor                 // hides secrets from plug-ins outside; without one by shape only
	Environ  func(name string) (string, bool) // environment that programs may get variables of; none without it
	Log      *slog.Logger
}

// New makes a Runner with the compiled-in plug-ins, as they registered. From now on they cannot register more.
func New(o Options) *Runner {
	r := &Runner{registry: o.Registry, log: o.Log, redact: o.Redact, environ: o.Environ}
	if r.registry == nil {
		r.registry = NewRegistry()
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.redact == nil {
		r.redact = redact.New()
	}
	if r.environ == nil {
		r.environ = func(string) (string, bool) { return "", false }
	}
	r.registry.freeze()
	r.current.Store(newSet(r.build(Config{})))
	return r
}

// Prepare checks a configuration. Nothing changes before commit, which puts it in force for calls that begin from then on;
// programs whose entry did not change keep running.
func (r *Runner) Prepare(c Config) (commit func(), err error) {
	if problems := c.Check(r.registry.IDs()); len(problems) > 0 {
		return nil, problems[0]
	}
	return func() {
		r.configuring.Lock()
		defer r.configuring.Unlock()
		r.current.Swap(newSet(r.build(c))).drop()
	}, nil
}

// acquire holds the set in force.
func (r *Runner) acquire() *set {
	for {
		if s := r.current.Load(); s.hold() {
			return s
		}
	}
}

// Stats counts what became of hooks that nobody waits for.
type Stats struct {
	Dropped uint64 // events that found the queue full
}

// Stats returns the counts since the start.
func (r *Runner) Stats() Stats { return Stats{r.queue.dropped.Load()} }

// Close lets events that are under way end, for a moment, and ends the programs. Calls after it are refused if a
// program guards them.
func (r *Runner) Close() {
	select {
	case <-r.queue.close():
	case <-time.After(time.Second):
	}
	r.programs.close()
}

// errWithheld is the error of Result for people; the cause is in the log.
var errWithheld = errors.New("a plug-in that checks results failed")

// slow is how long a handler of results may take before it is named in the log.
const slow = 50 * time.Millisecond

// Result lets the handlers replace a result, one after the other.
func (r *Runner) Result(ctx context.Context, request *toolward.Request, result toolward.Result) (toolward.Result, error) {
	s := r.acquire()
	defer s.drop()
	if len(s.result) == 0 {
		return result, nil
	}
	call, external := contextOf(request), result.External
	for i := range s.result {
		h := &s.result[i]
		if !h.tools.has(call.ToolName) {
			continue
		}
		start := time.Now()
		event := ToolResultEvent{call, copyResult(result)}
		replacement, err := guarded(ctx, &h.registration, func(context.Context) (Replacement, error) { return h.call(event) })
		if took := time.Since(start); took > slow {
			r.log.Warn("a plug-in delays results", "plugin", h.plugin, "hook", h.hook, "took", took)
		}
		switch {
		case err != nil:
			open := h.onError == Open && ctx.Err() == nil
			r.failed(&h.registration, err, "tool", call.ToolName, "withheld", !open)
			if !open {
				return toolward.Result{}, errWithheld
			}
		case replacement.result != nil:
			result = *replacement.result
			result.External = external
		}
	}
	return result, nil
}

// After tells the handlers what became of a call, side by side, and returns at once.
func (r *Runner) After(_ context.Context, request *toolward.Request, outcome *toolward.OutcomeRecord, result *toolward.Result) {
	s := r.acquire()
	defer s.drop()
	event := AfterToolCallEvent{Call: contextOf(request), Params: request.Params, Status: outcome.Status, Error: outcome.Error, Duration: outcome.Duration}
	if event.Error == "" && outcome.Status != toolward.StatusOK {
		event.Error = string(cmp.Or(outcome.Status, toolward.StatusUnknown))
	}
	for i := range s.after {
		h := &s.after[i]
		if !h.tools.has(event.Call.ToolName) || !s.hold() {
			continue
		}
		// The tool's result is the caller's from now on, so it is copied before this returns.
		own := event
		if result != nil {
			copied := copyResult(*result)
			own.Result = &copied
		}
		if !r.queue.put(func() { defer s.drop(); r.tell(h, own) }) {
			s.drop()
			if n := r.queue.dropped.Load(); n%1000 == 1 { // not one line for each
				r.log.Warn("events are dropped: too many wait for plug-ins", "plugin", h.plugin, "hook", h.hook, "dropped so far", n)
			}
		}
	}
}

func (r *Runner) tell(h *handler[AfterToolCallFunc], event AfterToolCallEvent) {
	_, err := guarded(context.Background(), &h.registration, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.call(ctx, event)
	})
	if err != nil {
		r.log.Debug("a plug-in failed on an event", "plugin", h.plugin, "hook", h.hook, "err", err)
	}
}

// failed logs the failure of a handler that calls depend on.
func (r *Runner) failed(h *registration, err error, attributes ...any) {
	attributes = append(attributes, "plugin", h.plugin, "hook", h.hook, "err", err)
	var crashed *crash
	if errors.As(err, &crashed) {
		attributes = append(attributes, "stack", string(crashed.stack))
	}
	r.log.Error("a plug-in failed", attributes...)
}
