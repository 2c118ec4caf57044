package egress

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
)

// answer is what a person has said about a host, for as long as the commands run that it was about. A program that connects
// a hundred times asks once, and a host that was refused is refused at once. It counts only while no other command has begun
// in the sandbox: nobody can tell from outside whose connection it is, and a yes for one must not carry another.
type answer struct {
	uses    []*Use  // that still run
	flight  *flight // of a yes, which it holds
	refused error   // of a no
}

// lasts reports whether what was decided is the answer for the rest of the commands. A yes is one only as far as it was for
// once: what a list or a grant lets through is looked up each time, so that it counts at once when that is taken away.
func (f *flight) lasts(ctx context.Context) bool {
	switch {
	case ctx.Err() != nil: // nobody waited any longer
		return false
	case f.refused == nil:
		return f.asked.Load() && f.holds(ctx)
	}
	refusal, ok := errors.AsType[*toolward.Refusal](f.refused)
	return ok && !slices.Contains([]toolward.Code{toolward.CodeTargetChanged, toolward.CodeInternal, toolward.CodeAuditUnavailable}, refusal.Code)
}

// keep keeps the answer for the commands that it was given for. The caller holds the mutex of the way.
func (f *flight) keep() {
	a := &answer{uses: slices.DeleteFunc(slices.Clone(f.wanted), func(u *Use) bool { return u.left.Load() })}
	switch {
	case len(a.uses) == 0:
		return
	case f.refused != nil:
		a.refused = f.notPermitted()
	default:
		a.flight = f
		f.holders++
	}
	if before := f.way.answers[f.to]; before != nil && before.flight != nil {
		go before.flight.release() // it takes the mutex
	}
	f.way.answers[f.to] = a
}

// answered joins the flight that a person has allowed for the commands that run now, or is the error that they were refused
// with; neither if the connection is to be decided about.
func (w *way) answered(ctx context.Context, now []*Use, to target) (*flight, error) {
	w.mu.Lock()
	a := w.answers[to]
	if a == nil || len(now) == 0 || slices.ContainsFunc(now, func(u *Use) bool { return !slices.Contains(a.uses, u) }) {
		w.mu.Unlock()
		return nil, nil
	}
	if a.refused != nil {
		w.mu.Unlock()
		return nil, a.refused
	}
	f := a.flight
	f.holders++ // so that it does not end meanwhile
	w.mu.Unlock()
	if !f.holds(ctx) {
		f.release()
		return nil, nil
	}
	return f, nil
}

// holds reports whether what a person has allowed would be asked about as it was then. A session that has become tenser, one
// that has come into the sandbox, a policy that refuses, or a bound that is reached is another question.
func (f *flight) holds(ctx context.Context) bool {
	gate := f.proxies.options.Gate()
	by, err := f.proxies.callers(ctx, f.sandbox)
	if err != nil || gate == nil {
		return false
	}
	for _, one := range by {
		i := slices.IndexFunc(f.passes, func(p *toolward.Pass) bool { return p.Request().Call.Session == one.Session })
		call, err := f.proxies.callOf(one, f.to)
		if i < 0 || err != nil {
			return false
		}
		call.ID = f.id
		trace := gate.Explain(ctx, call, toolward.ExplainOptions{Hooks: true})
		found := func(finding toolward.Finding) bool { return finding.Effect != toolward.EffectNote }
		if trace.Verdict != toolward.Ask || trace.Level != f.passes[i].Request().Level || slices.ContainsFunc(trace.Findings, found) {
			return false
		}
	}
	return true
}

// over takes commands that have ended out of the answers that were given for them; all of them, if the sandbox has.
func (w *way) over(ended func(*Use) bool) {
	w.mu.Lock()
	var done []*flight
	for to, a := range w.answers {
		if a.uses = slices.DeleteFunc(a.uses, ended); len(a.uses) > 0 {
			continue
		}
		delete(w.answers, to)
		if a.flight != nil {
			done = append(done, a.flight)
		}
	}
	w.mu.Unlock()
	for _, f := range done {
		f.release()
	}
}

// commands are those that run in a sandbox now, and how many have begun.
func (p *Proxies) commands(name string) (now []*Use, begun uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all := p.uses[name]; all != nil {
		return slices.Clone(all.commands), all.begun
	}
	return nil, 0
}

// ask notes for which flight calls of its id are made.
func (p *Proxies) ask(f *flight, begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.asking, f.id); begins {
		p.asking[f.id] = f
	}
}

// asked is the flight that a call is of; nil for one that nobody makes, as an explanation is about.
func (p *Proxies) asked(id string, to target) *flight {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.asking[id]; f != nil && f.to == to {
		return f
	}
	return nil
}

// maxUnreached bounds what a command is told of the hosts that it did not get.
const maxUnreached = 4

// tell keeps for the commands that run now that one of them did not get a host.
func (p *Proxies) tell(now []*Use, to target, why error) {
	refused, ok := errors.AsType[*netguard.Error](why)
	if !ok {
		return
	}
	text := to.String() + ": " + refused.Reason()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range now {
		same := func(other string) bool { return strings.HasPrefix(other, to.String()+": ") }
		if len(u.unreached) < maxUnreached && !slices.ContainsFunc(u.unreached, same) {
			u.unreached = append(u.unreached, text)
		}
	}
}

// Unreached are hosts that something in the sandbox asked for while the call used it, and was refused, each with the reason.
func (u *Use) Unreached() []string {
	u.proxies.mu.Lock()
	defer u.proxies.mu.Unlock()
	return slices.Clone(u.unreached)
}

// wantedBy says which commands want a host, as they were judged.
func (f *flight) wantedBy() string {
	const most = 3
	var texts []string
	for _, u := range f.wanted[:min(len(f.wanted), most)] {
		texts = append(texts, u.command)
	}
	text := strings.Join(texts, "  or  ")
	if len(f.wanted) > most {
		text += "  or another command that runs there"
	}
	return text
}
