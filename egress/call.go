package egress

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
)

// flight is one call: the connections that a sandbox asks for to one host while nobody has decided about it yet. A program
// that opens twenty at once asks one question, and the answer is one for all of them.
type flight struct {
	proxies *Proxies
	sandbox string
	way     *way
	to      target
	route   route
	wanted  []*Use // the commands that run in the sandbox: one of them wants it
	earlier bool   // or what another one has left running there
	id      string
	cancel  context.CancelFunc
	decided chan struct{}
	asked   atomic.Bool // people were

	// Valid once decided is closed.
	passes  []*toolward.Pass // of every agent that shares the sandbox
	refused error

	mu      sync.Mutex
	holders int // connections that wait or are open
	over    bool
	made    int
	sent    int64
	got     int64
	failure error
	began   time.Time
}

// wish is what connections that wait for the same decision have in common: the host, and which commands were at work. One
// that begins while people think about another must not connect by an answer about that one.
type wish struct {
	target
	begun uint64
}

// permit has the gateway decide about a connection. It joins others to the same host that wait for the same decision.
func (p *Proxies) permit(ctx context.Context, name string, w *way, to target) (leave netguard.Leave, err error) {
	now, begun := p.commands(name)
	defer func() {
		if err != nil && ctx.Err() == nil {
			p.tell(now, to, err)
		}
	}()
	way, err := p.route(ctx, name, to)
	if refused, ok := errors.AsType[*netguard.Error](err); ok {
		p.refused(ctx, name, to.host, to.port, refused)
	}
	if err != nil {
		return nil, err
	}
	if f, err := w.answered(ctx, now, to); f != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return &leaveOf{f}, nil
	}
	w.mu.Lock()
	f := w.flights[wish{to, begun}]
	if f == nil {
		deciding, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight{
			proxies: p, sandbox: name, way: w, to: to, route: way, wanted: now, earlier: begun > uint64(len(now)), id: rand.Text(), cancel: cancel,
			decided: make(chan struct{}), began: time.Now(),
		}
		w.flights[wish{to, begun}] = f
		go f.decide(deciding, wish{to, begun})
	}
	f.holders++ // guarded by the way until it was decided
	w.mu.Unlock()
	select {
	case <-f.decided:
	case <-ctx.Done():
	}
	if err := f.outcome(ctx); err != nil {
		f.release()
		return nil, err
	}
	return &leaveOf{f}, nil
}

// outcome is why a connection that has waited is not permitted; nil if it is.
func (f *flight) outcome(ctx context.Context) error {
	select {
	case <-f.decided:
	default:
		return ctx.Err()
	}
	if f.refused != nil {
		return f.notPermitted()
	}
	return ctx.Err()
}

// notPermitted is what the program is told of a flight that was refused.
func (f *flight) notPermitted() *netguard.Error {
	return &netguard.Error{Code: netguard.CodeNotPermitted, Host: f.to.host, Why: words(f.refused)}
}

// decide asks the gateway, once for each agent.
func (f *flight) decide(ctx context.Context, as wish) {
	defer f.cancel()
	f.proxies.ask(f, true)
	f.passes, f.refused = f.proxies.admit(ctx, f)
	lasts := f.lasts(ctx)
	f.way.mu.Lock()
	if f.way.flights[as] == f {
		delete(f.way.flights, as) // who comes now is another call
	}
	if lasts {
		f.keep()
	}
	idle := f.holders == 0
	close(f.decided) // before anybody else counts: the last holder or we conclude, and never neither
	f.way.mu.Unlock()
	if idle {
		f.conclude()
	}
}

// release is one holder less. The last one ends the call, or withdraws the question.
func (f *flight) release() {
	f.way.mu.Lock()
	f.holders--
	last := f.holders == 0
	if last {
		select {
		case <-f.decided:
		default:
			maps.DeleteFunc(f.way.flights, func(_ wish, other *flight) bool { return other == f })
			f.cancel()
		}
	}
	f.way.mu.Unlock()
	select {
	case <-f.decided:
		if last {
			f.conclude()
		}
	default: // decide sees that nobody is left
	}
}

// conclude records what came of the call.
func (f *flight) conclude() {
	f.mu.Lock()
	if f.over {
		f.mu.Unlock()
		return
	}
	f.over = true
	f.proxies.ask(f, false)
	outcome := toolward.OutcomeRecord{
		Status: toolward.StatusOK, Duration: time.Since(f.began), ResultBytes: int(f.got), SentBytes: f.sent,
	}
	switch {
	case f.failure != nil:
		outcome.Status, outcome.Error = toolward.StatusError, f.failure.Error()
	case f.made == 0:
		outcome.Status, outcome.Error = toolward.StatusAborted, "the program hung up before it was connected"
	}
	f.mu.Unlock()
	for _, pass := range f.passes {
		if err := pass.Close(context.Background(), outcome); err != nil {
			f.proxies.log.Error("the end of a connection could not be recorded", "host", f.to.host, "err", err)
		}
	}
}

// leaveOf is the permission of one connection of a flight.
type leaveOf struct{ *flight }

// Spend counts what leaves for every agent that shares the sandbox, and looks whether the host is still listed.
func (l *leaveOf) Spend(n int) error {
	settings := l.proxies.options.Settings()
	for i, pass := range l.passes {
		r := pass.Request()
		if slices.ContainsFunc(l.passes[:i], func(other *toolward.Pass) bool { return other.Request().Call.Caller.Agent == r.Call.Caller.Agent }) {
			continue // its agent has paid
		}
		reach := settings.For(r.Call.Caller.Agent).Reach()
		listed, most := l.proxies.listed(l.route, reach, r.Call.Caller.Workspace, l.to)
		if r.Facts.Listed != "" && listed == "" {
			return &netguard.Error{Code: netguard.CodeNotPermitted, Host: l.to.host, Why: "the operator does not list it any more"}
		}
		if most > 0 && !l.proxies.spent.take(r.Call.Caller.Agent, l.to, int64(n), most) {
			return &netguard.Error{Code: netguard.CodeSentLimit, Host: l.to.host}
		}
	}
	return nil
}

// Guard is what dials the connection, where the host was looked up before it was decided about.
func (l *leaveOf) Guard() *netguard.Guard { return l.route.guard }

// End adds what came of the connection to the call.
func (l *leaveOf) End(c netguard.Connection) {
	l.mu.Lock()
	if c.Err == nil || c.Sent+c.Received > 0 {
		l.made++
	}
	l.sent += c.Sent
	l.got += c.Received
	if c.Err != nil && l.failure == nil {
		l.failure = c.Err
	}
	if refused, ok := errors.AsType[*netguard.Error](c.Err); ok && refused.Code == netguard.CodeDNSAddress && l.asked.Load() {
		l.proxies.inner.add(l.to.host)
	}
	l.mu.Unlock()
	if c.Err != nil && c.Sent+c.Received == 0 {
		l.proxies.tell(l.wanted, l.to, c.Err)
	}
	l.release()
}

var errNoGate = errors.New("the gateway does not decide about connections yet")

// admit has every agent that shares the sandbox admitted. One that is refused refuses all. Who comes while people think
// about the first is admitted, too: the answer is for the programs of all, and they were asked in the name of one.
func (p *Proxies) admit(ctx context.Context, f *flight) (passes []*toolward.Pass, err error) {
	gate := p.options.Gate()
	if gate == nil {
		return nil, errNoGate
	}
	defer func() {
		if err != nil {
			unused := toolward.OutcomeRecord{Status: toolward.StatusUnused, Error: "another session that shares the sandbox was refused"}
			for _, pass := range passes {
				_ = pass.Close(context.WithoutCancel(ctx), unused)
			}
			passes = nil
		}
	}()
	for admitted := map[toolward.SessionKey]bool{}; ; {
		by, err := p.callers(ctx, f.sandbox)
		if err != nil {
			p.log.Warn("a connection out of a sandbox was refused", "sandbox", f.sandbox, "to", f.to.String(), "err", err)
			return passes, err
		}
		by = slices.DeleteFunc(by, func(one toolward.Call) bool { return admitted[one.Session] })
		if len(by) == 0 {
			return passes, nil
		}
		for _, one := range by {
			pass, err := p.admitOne(ctx, gate, one, f)
			if err != nil {
				return passes, err
			}
			admitted[one.Session], passes = true, append(passes, pass)
		}
	}
}

// admitOne has the connection admitted in the name of one session.
func (p *Proxies) admitOne(ctx context.Context, gate Gate, one toolward.Call, f *flight) (*toolward.Pass, error) {
	call, err := p.callOf(one, f.to)
	if err != nil {
		return nil, err
	}
	call.ID = f.id
	call.OnPending = func(toolward.Pending) { f.asked.Store(true) }
	pass, err := gate.Admit(ctx, call)
	if err != nil {
		return nil, err
	}
	if err := pass.Start(); err != nil {
		return nil, err
	}
	if over := func(f toolward.Finding) bool { return f.Code == findLimit }; slices.ContainsFunc(pass.Request().Facts.Findings, over) {
		p.spent.renew(call.Caller.Agent, f.to) // nothing but a person lets such a call through
	}
	return pass, nil
}

// refused records that a program wanted to connect to what is never reached.
func (p *Proxies) refused(ctx context.Context, name, host string, port uint16, why *netguard.Error) {
	gate := p.options.Gate()
	now, _ := p.commands(name)
	p.tell(now, target{host, port}, why)
	by, err := p.callers(ctx, name)
	if gate == nil || err != nil {
		p.log.Warn("a connection out of a sandbox was refused", "sandbox", name, "why", string(why.Code), "err", err)
		return
	}
	for _, one := range by {
		call, err := p.callOf(one, target{host, port})
		if err != nil {
			continue
		}
		_ = gate.Refuse(ctx, call, &toolward.Refusal{
			Tool: ToolName, Code: toolward.CodeValidation, Finding: "ssrf",
			Reasons: []toolward.Reason{{Layer: "validation", Rule: "ssrf", Matched: target{host, port}.String(), Text: "a sandbox reaches hosts of the public internet only: " + string(why.Code)}},
		})
	}
}

// words is what the user of a program is told that was refused.
func words(err error) string {
	if pending, ok := errors.AsType[*toolward.Pending](err); ok {
		return "a person decides about it, until " + pending.ExpiresAt.UTC().Format(time.RFC3339) + "; connect again later"
	}
	refusal, ok := errors.AsType[*toolward.Refusal](err)
	switch {
	case errors.Is(err, errManyUsers), errors.Is(err, errNobody):
		return err.Error()
	case !ok:
		return "the gateway could not decide about it"
	case refusal.Finding == findUnlisted:
		return "it is not among the hosts that are listed for this sandbox; ask the user to list it"
	case refusal.Code == toolward.CodeUnknownTool, refusal.Code == toolward.CodeBlocked:
		return "connections are not available here"
	}
	return cmp.Or(strings.TrimPrefix(refusal.Message(), "The call did not run: "), "it is not allowed")
}
