package toolward

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Watcher notices what is odd about the calls of a session: loops, floods, probing. It can only make things stricter.
type Watcher interface {
	// Before observes a call whose facts are known and that is about to be judged, once for each call. With dry it
	// says what it would say, and remembers nothing.
	Before(ctx context.Context, r *Request, dry bool) Alarm
	// Refused observes a refusal. The request of a call that was refused early has no parameters, facts or level,
	// and no tool if none was found.
	Refused(ctx context.Context, r *Request, code Code)
	// After observes the end of a call that was allowed. The result is nil if the gateway did not see it.
	After(ctx context.Context, r *Request, outcome *OutcomeRecord, result *Result)
}

// Alarm is what a watcher says about one call. The zero value says nothing.
type Alarm struct {
	Code    Code     // CodeLoop or CodeAnomaly: the call is refused
	Ask     bool     // people must decide; no grant answers in their place
	Raised  bool     // the level of the session was raised; dry: it would be
	Level   Level    // with Raised: at least this
	Reasons []Reason // for people
}

// watch shows the call to the watcher, before anything is decided. A call that comes back for its answer was seen
// already; if that answer cannot let it through any more, see watchNew.
func (a *admission) watch(ctx context.Context) error {
	if a.gateway.watcher == nil || a.call.Approval != "" {
		return nil
	}
	a.alarm = a.gateway.watcher.Before(ctx, a.request, a.dry)
	if a.alarm.Code != "" {
		return &Refusal{Tool: a.call.Tool, Code: a.alarm.Code, Reasons: a.alarm.Reasons}
	}
	if !a.alarm.Raised {
		return nil
	}
	if err := a.level(ctx); err != nil {
		return err
	}
	// An explanation raises nothing, and must say what a call would meet.
	a.request.Level = Tenser(a.request.Level, a.alarm.Level)
	a.request.Inputs.Floor = Tenser(a.request.Inputs.Floor, a.alarm.Level)
	// What an allowlist covers depends on the level: what was found at the calmer one must not decide.
	return a.look(ctx)
}

// watchNew shows the watcher a call that came back with an approval which was used up already, so that another answer
// was needed: it is a new call. Otherwise a client could come back again and again, on one grant and unseen. The
// re-check, which follows, takes a raised level into account.
func (a *admission) watchNew(ctx context.Context) error {
	if a.gateway.watcher == nil {
		return nil
	}
	switch alarm := a.gateway.watcher.Before(ctx, a.request, false); {
	case alarm.Code != "":
		return &Refusal{Tool: a.call.Tool, Code: alarm.Code, Reasons: alarm.Reasons, Approval: a.answer.ApprovalID}
	case alarm.Ask && a.answer.Grant != "": // people must decide, and none has
		return &Refusal{Tool: a.call.Tool, Code: CodeTargetChanged, Reasons: alarm.Reasons, Approval: a.answer.ApprovalID}
	}
	return nil
}

// raiseForAlarm asks people where the watcher wants them. No grant answers: it was given when nothing was odd.
func (a *admission) raiseForAlarm() {
	if a.alarm.Ask {
		a.judged.needPerson(a.alarm.Reasons...)
	}
}

// watchRefused tells the watcher of a refusal. A call whose session is not its caller's is not told: it would count
// against somebody else.
func (a *admission) watchRefused(ctx context.Context, code Code) {
	w := a.gateway.watcher
	if w == nil || a.dry || a.call.Session.Agent() != a.call.Caller.Agent {
		return
	}
	defer a.gateway.contain("watcher")
	r := a.request
	if r == nil {
		r = &Request{Call: a.call}
	}
	w.Refused(ctx, r, code)
}

// watchEnd tells the watcher how an allowed call ended.
func (g *Gateway) watchEnd(ctx context.Context, r *Request, outcome *OutcomeRecord, result *Result) {
	if g.watcher == nil {
		return
	}
	defer g.contain("watcher")
	g.watcher.After(ctx, r, outcome, result)
}

// contain, deferred, keeps the panic of a part that comes after the decision from becoming the call's.
func (g *Gateway) contain(part string) {
	if v := recover(); v != nil {
		g.log.Error(part+" panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
}
