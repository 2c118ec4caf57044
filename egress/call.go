package egress

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
)

// flight is one call: the connections that a sandbox asks for to one host while nobody has decided about it yet. A program
// that opens twenty at once asks one question, and the answer is one for all of them.
type flight struct {
	proxies *Proxies
	way     *way
	to      target
	cancel  context.CancelFunc
	decided chan struct{}

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

// permit has the gateway decide about a connection. It joins others to the same host that wait for the same decision.
func (p *Proxies) permit(ctx context.Context, name string, w *way, to target) (netguard.Leave, error) {
	w.mu.Lock()
	f := w.flights[to]
	if f == nil {
		deciding, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight{proxies: p, way: w, to: to, cancel: cancel, decided: make(chan struct{}), began: time.Now()}
		w.flights[to] = f
		go f.decide(deciding, name)
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
	return &leave{f}, nil
}

// outcome is why a connection that has waited is not permitted; nil if it is.
func (f *flight) outcome(ctx context.Context) error {
	select {
	case <-f.decided:
	default:
		return ctx.Err()
	}
	if f.refused != nil {
		return &netguard.Error{Code: netguard.CodeNotPermitted, Host: f.to.host, Why: words(f.refused)}
	}
	return ctx.Err()
}

// decide asks the gateway, once for each agent.
func (f *flight) decide(ctx context.Context, name string) {
	defer f.cancel()
	f.passes, f.refused = f.proxies.admit(ctx, name, f.to)
	f.way.mu.Lock()
	if f.way.flights[f.to] == f {
		delete(f.way.flights, f.to) // who comes now is another call
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
	if last && f.way.flights[f.to] == f {
		delete(f.way.flights, f.to)
		f.cancel()
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

// leave is the permission of one connection of a flight.
type leave struct{ *flight }

// Spend counts what leaves for every agent that shares the sandbox, and looks whether the host is still listed.
func (l *leave) Spend(n int) error {
	settings := l.proxies.options.Settings()
	for i, pass := range l.passes {
		r := pass.Request()
		if slices.ContainsFunc(l.passes[:i], func(other *toolward.Pass) bool { return other.Request().Call.Caller.Agent == r.Call.Caller.Agent }) {
			continue // its agent has paid
		}
		reach := settings.For(r.Call.Caller.Agent).Reach()
		if r.Facts.Listed != "" && reach.Listed(l.to.host, l.to.port) == "" {
			return &netguard.Error{Code: netguard.CodeNotPermitted, Host: l.to.host, Why: "the operator does not list it any more"}
		}
		if most := reach.MaxSent(l.to.host, l.to.port); most > 0 && !l.proxies.spent.take(r.Call.Caller.Agent, l.to, int64(n), most) {
			return &netguard.Error{Code: netguard.CodeSentLimit, Host: l.to.host}
		}
	}
	return nil
}

// End adds what came of the connection to the call.
func (l *leave) End(c netguard.Connection) {
	l.mu.Lock()
	if c.Err == nil || c.Sent+c.Received > 0 {
		l.made++
	}
	l.sent += c.Sent
	l.got += c.Received
	if c.Err != nil && l.failure == nil {
		l.failure = c.Err
	}
	l.mu.Unlock()
	l.release()
}

var errNoGate = errors.New("the gateway does not decide about connections yet")

// admit has every agent that shares the sandbox admitted. One that is refused refuses all. Who comes while people think
// about the first is admitted, too: the answer is for the programs of all, and they were asked in the name of one.
func (p *Proxies) admit(ctx context.Context, name string, to target) (passes []*toolward.Pass, err error) {
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
		by, err := p.callers(ctx, name)
		if err != nil {
			p.log.Warn("a connection out of a sandbox was refused", "sandbox", name, "to", to.String(), "err", err)
			return passes, err
		}
		by = slices.DeleteFunc(by, func(one toolward.Call) bool { return admitted[one.Session] })
		if len(by) == 0 {
			return passes, nil
		}
		for _, one := range by {
			pass, err := p.admitOne(ctx, gate, one, to)
			if err != nil {
				return passes, err
			}
			admitted[one.Session], passes = true, append(passes, pass)
		}
	}
}

// admitOne has the connection admitted in the name of one session.
func (p *Proxies) admitOne(ctx context.Context, gate Gate, one toolward.Call, to target) (*toolward.Pass, error) {
	call, err := p.callOf(one, to)
	if err != nil {
		return nil, err
	}
	pass, err := gate.Admit(ctx, call)
	if err != nil {
		return nil, err
	}
	if err := pass.Start(); err != nil {
		return nil, err
	}
	if over := func(f toolward.Finding) bool { return f.Code == findLimit }; slices.ContainsFunc(pass.Request().Facts.Findings, over) {
		p.spent.renew(call.Caller.Agent, to) // nothing but a person lets such a call through
	}
	return pass, nil
}

// refused records that a program wanted to connect to what is never reached.
func (p *Proxies) refused(ctx context.Context, name, host string, port uint16, why *netguard.Error) {
	gate := p.options.Gate()
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
