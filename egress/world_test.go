package egress

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/sandbox/settings"
)

// world is a real gateway with a real policy, people who answer when a test says so, and one sandbox.
type world struct {
	*Proxies
	gateway  *toolward.Gateway
	audit    *gatetest.Auditor
	people   *people
	levels   *levels
	settings atomic.Pointer[settings.Settings]
	way      *way
	// workspace is that of those who use the sandbox.
	workspace string
}

const box = "toolward-sbx-coder"

func newWorld(t *testing.T, c settings.Config) *world {
	t.Helper()
	w := &world{people: &people{asked: make(chan *question, 100)}, levels: &levels{of: map[toolward.SessionKey]toolward.Level{}}}
	w.configure(t, c)
	var err error
	if w.Proxies, err = New(Options{
		Dir: t.TempDir() + "/egress", Gate: func() Gate { return w.gateway }, Levels: w.levels, Settings: w.settings.Load, Own: func(port uint16) bool { return port == 7411 },
	}); err != nil {
		t.Fatal(err)
	}
	w.build(t, policy.Config{})
	over := make(chan struct{})
	close(over)
	w.way = &way{end: func() {}, ended: over, flights: map[wish]*flight{}, answers: map[target]*answer{}}
	w.ways[box] = w.way // without a listener: what a test does with time must not depend on the system
	return w
}

// build makes the gateway by a policy.
func (w *world) build(t *testing.T, c policy.Config) {
	t.Helper()
	h := gatetest.New(t, toolward.Allow)
	w.audit = h.Auditor
	snapshot, _, err := policy.Compile(c, []*toolward.Tool{w.Tool()})
	if err != nil {
		t.Fatal(err)
	}
	w.gateway = h.With(t, func(c *toolward.Config) {
		c.Policy, c.Approver, c.Sessions = policy.NewLive(snapshot), w.people, w.levels
	})
}

func (w *world) configure(t *testing.T, c settings.Config) {
	t.Helper()
	compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c}}, settings.Surroundings{StateDir: "/nowhere"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w.settings.Store(compiled)
}

// enter has a session use the sandbox in its first life.
func (w *world) enter(t *testing.T, session toolward.SessionKey) *Use { return w.run(t, session, "") }

// run has a session run a command.
func (w *world) run(t *testing.T, session toolward.SessionKey, command string) *Use {
	t.Helper()
	use, err := w.Enter(box, &toolward.Call{Session: session, Run: "r", Caller: toolward.Caller{Agent: session.Agent(), Context: "main", Connection: "c", Workspace: w.workspace}}, command)
	if err != nil {
		t.Fatal(err)
	}
	use.Started(1)
	return use
}

func (w *world) connect(ctx context.Context, host string) (netguard.Leave, error) {
	return w.permit(ctx, box, w.way, target{host, 443})
}

// people answer what they are asked when a test does.
type people struct {
	asked chan *question
	held  sync.Map // ids of approvals that were not used
}

type question struct {
	*toolward.Question
	answer chan toolward.Answer
	ended  <-chan struct{}
}

func (p *people) Granted(context.Context, *toolward.Question) (string, bool, error) {
	return "", false, nil
}

func (p *people) Covered(context.Context, *toolward.Question) (string, bool, error) {
	return "", false, nil
}

func (p *people) Ask(ctx context.Context, q *toolward.Question) (toolward.Answer, error) {
	one := &question{q, make(chan toolward.Answer, 1), ctx.Done()}
	if q.OnPending != nil {
		q.OnPending(toolward.Pending{})
	}
	p.asked <- one
	select {
	case a := <-one.answer:
		p.held.Store(a.ApprovalID, true)
		return a, nil
	case <-ctx.Done():
		return toolward.Answer{}, nil
	}
}

func (p *people) Consume(_ context.Context, id, _ string) error {
	if _, ok := p.held.LoadAndDelete(id); !ok {
		return errors.New("used up")
	}
	return nil
}

func (q *question) allow() {
	q.answer <- toolward.Answer{ApprovalID: "a1", Decision: toolward.AllowOnce}
}

// none reports whether nobody is asked.
func (p *people) none(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case q := <-p.asked:
		t.Fatalf("people are asked: %s", q.Request.Params.Canonical())
	default:
	}
}

// levels are as a test sets them.
type levels struct {
	mu sync.Mutex
	of map[toolward.SessionKey]toolward.Level
}

func (l *levels) set(key toolward.SessionKey, level toolward.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[key] = level
}

func (l *levels) Level(_ context.Context, c *toolward.Call) (toolward.Level, toolward.LevelInputs, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if level, ok := l.of[c.Session]; ok {
		return level, toolward.LevelInputs{}, nil
	}
	return toolward.Normal, toolward.LevelInputs{}, nil
}

func (l *levels) Expose(context.Context, toolward.SessionKey, toolward.Exposure) error { return nil }

func hosts(list ...string) settings.Config {
	return settings.Config{Network: new("egress"), Egress: settings.EgressConfig{Hosts: list}}
}
