package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a registration.
const (
	MaxTimeout    = 600 * time.Second
	beforeTimeout = 15 * time.Second
	resultTimeout = 15 * time.Second
	afterTimeout  = 30 * time.Second
	maxHung       = 64 // runs of one handler that have been given up and have not ended
)

// The functions that handle hooks. Their types make an answer that a hook may not give impossible.
type (
	// BeforeToolCallFunc looks at a call. An error refuses it.
	BeforeToolCallFunc func(context.Context, BeforeToolCallEvent) (BeforeToolCallResult, error)
	// AfterToolCallFunc hears what became of a call. An error is only logged.
	AfterToolCallFunc func(context.Context, AfterToolCallEvent) error
	// ToolResultPersistFunc looks at a result and must answer at once. An error withholds the result.
	ToolResultPersistFunc func(ToolResultEvent) (Replacement, error)
)

// OnFailure says what an error or a time-out of a handler means.
type OnFailure string

// The values of OnFailure.
const (
	Closed OnFailure = "closed" // the call is refused, the result withheld
	Open   OnFailure = "open"   // the handler counts as if it had said nothing
)

// registration is one handler's place in a hook.
type registration struct {
	plugin   string
	hook     Name
	priority int
	timeout  time.Duration
	onError  OnFailure
	tools    toolList
	hung     *atomic.Int32 // runs that were given up; shared by all copies of a registration
}

// handler is a registration with what it calls.
type handler[F any] struct {
	registration
	call F
}

// handlers are those of all hooks. A new hook gets a list here, an On method and the rule by which its answers merge.
type handlers struct {
	before []handler[BeforeToolCallFunc]
	after  []handler[AfterToolCallFunc]
	result []handler[ToolResultPersistFunc]
}

// Registry takes the registrations of the plug-ins that are compiled in. It is filled at start; [New] freezes it.
type Registry struct {
	mu     sync.Mutex
	frozen bool
	ids    []string
	all    handlers
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{} }

// Plugin is one compiled-in plug-in, which registers its handlers.
type Plugin struct {
	registry *Registry
	id       string
}

var errFrozen = errors.New("the registry is frozen: plug-ins register at start")

// Plugin announces a plug-in. The id stands in configuration and records.
func (r *Registry) Plugin(id string) (*Plugin, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.frozen:
		return nil, errFrozen
	case !validID(id):
		return nil, fmt.Errorf("plug-in id %q: %s", id, idRule)
	case slices.Contains(r.ids, id):
		return nil, fmt.Errorf("plug-in id %q is taken", id)
	}
	r.ids = append(r.ids, id)
	return &Plugin{r, id}, nil
}

const idRule = "use up to 64 lower-case letters, digits, - and _, and begin with a letter or digit"

func validID(id string) bool {
	return id != "" && len(id) <= 64 && id[0] != '-' && id[0] != '_' &&
		strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// Option changes a registration.
type Option func(*registration) error

// Priority orders handlers: higher first, 0 by default, and as registered among equals.
func Priority(n int) Option {
	return func(r *registration) error { r.priority = n; return nil }
}

// Timeout is how long one call of the handler may take, at most [MaxTimeout].
func Timeout(d time.Duration) Option {
	return func(r *registration) error {
		if d <= 0 || d > MaxTimeout {
			return fmt.Errorf("a time-out of %v is out of range: up to %v", d, MaxTimeout)
		}
		r.timeout = d
		return nil
	}
}

// OnError says what a failure of the handler means. A plug-in cannot have its own guard of calls fail open; only the
// operator can, in the configuration.
func OnError(f OnFailure) Option {
	return func(r *registration) error {
		switch {
		case f != Open && f != Closed:
			return fmt.Errorf("on error %q: use %q or %q", f, Closed, Open)
		case f == Open && r.hook == BeforeToolCall:
			return errors.New("only the operator can let before_tool_call fail open: plugins.entries.<id>.onError")
		}
		r.onError = f
		return nil
	}
}

// Tools limits the handler to tools by name; * stands for any characters.
func Tools(names ...string) Option {
	return func(r *registration) (err error) {
		r.tools, err = newToolList(names)
		return err
	}
}

// OnBeforeToolCall registers a handler that can refuse or rewrite calls.
func (p *Plugin) OnBeforeToolCall(f BeforeToolCallFunc, options ...Option) error {
	return register(p, &p.registry.all.before, BeforeToolCall, beforeTimeout, f, f == nil, options)
}

// OnAfterToolCall registers a handler that hears what became of calls. Nothing waits for it.
func (p *Plugin) OnAfterToolCall(f AfterToolCallFunc, options ...Option) error {
	return register(p, &p.registry.all.after, AfterToolCall, afterTimeout, f, f == nil, options)
}

// OnToolResultPersist registers a handler that can replace results, for instance to redact them.
func (p *Plugin) OnToolResultPersist(f ToolResultPersistFunc, options ...Option) error {
	return register(p, &p.registry.all.result, ToolResultPersist, resultTimeout, f, f == nil, options)
}

func register[F any](p *Plugin, list *[]handler[F], hook Name, timeout time.Duration, f F, missing bool, options []Option) error {
	h := handler[F]{newRegistration(p.id, hook, timeout), f}
	if missing {
		return fmt.Errorf("plug-in %s: %s without a function", p.id, hook)
	}
	for _, option := range options {
		if err := option(&h.registration); err != nil {
			return fmt.Errorf("plug-in %s: %s: %w", p.id, hook, err)
		}
	}
	p.registry.mu.Lock()
	defer p.registry.mu.Unlock()
	if p.registry.frozen {
		return fmt.Errorf("plug-in %s: %w", p.id, errFrozen)
	}
	*list = append(*list, h)
	return nil
}

func newRegistration(id string, hook Name, timeout time.Duration) registration {
	return registration{plugin: id, hook: hook, timeout: timeout, onError: Closed, hung: &atomic.Int32{}}
}

// freeze ends registration.
func (r *Registry) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = true
}

// IDs are the ids of the plug-ins that are compiled in.
func (r *Registry) IDs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids)
}

// chosen copies the handlers that keep wants, as it changes them.
func chosen[F any](list []handler[F], keep func(*registration) bool) (out []handler[F]) {
	for _, h := range list {
		if keep(&h.registration) {
			out = append(out, h)
		}
	}
	return out
}

// ordered brings handlers into the order in which they are called.
func ordered[F any](list []handler[F]) {
	slices.SortStableFunc(list, func(a, b handler[F]) int { return cmp.Compare(b.priority, a.priority) })
}
