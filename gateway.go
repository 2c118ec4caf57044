package toolward

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Gateway is the program-level gate between a tool call and the tool.
type Gateway struct {
	policy   Policy
	approver Approver
	auditor  Auditor
	sessions Sessions
	hooks    Hooks
	watcher  Watcher
	shadow   Policy
	observer Observer
	keeper   Keeper
	hider    Hider
	log      *slog.Logger
	passLife time.Duration

	observeOnly bool
}

// Config names the gateway's collaborators. None of the first four has a default: a gateway without policy, or
// whose decisions nobody records, must not exist.
type Config struct {
	Policy   Policy
	Approver Approver
	Auditor  Auditor
	Sessions Sessions
	Hooks    Hooks         // optional: without plug-ins nothing is refused or rewritten by them
	Watcher  Watcher       // optional: without one nothing is odd
	Shadow   Policy        // optional: evaluated beside Policy; the difference is recorded and changes nothing. May have no snapshot
	Observer Observer      // optional
	Keeper   Keeper        // optional: without one no call can be taken back, and none asks for that reason
	Hider    Hider         // optional: without one results go to agents with the secrets that are in them
	Log      *slog.Logger  // optional
	PassLife time.Duration // how long a pass may be redeemed; default 30 s

	// ObserveOnly lets calls run where people would be asked, and records that. Refusals stay refusals. It is for
	// adopting a policy, not for relying on one.
	ObserveOnly bool
}

// New makes a gateway, or fails when a collaborator is missing.
func New(c Config) (*Gateway, error) {
	var missing error
	for _, part := range []struct {
		name   string
		absent bool
	}{
		{"policy", c.Policy == nil},
		{"approver", c.Approver == nil},
		{"auditor", c.Auditor == nil},
		{"sessions", c.Sessions == nil},
	} {
		if part.absent {
			missing = errors.Join(missing, errors.New("gateway needs "+part.name))
		}
	}
	if missing != nil {
		return nil, missing
	}
	g := &Gateway{
		policy: c.Policy, approver: c.Approver, auditor: c.Auditor, sessions: c.Sessions,
		hooks: c.Hooks, watcher: c.Watcher, shadow: c.Shadow, observer: c.Observer, keeper: c.Keeper, hider: c.Hider, observeOnly: c.ObserveOnly,
		log: c.Log, passLife: c.PassLife,
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if g.passLife <= 0 {
		g.passLife = 30 * time.Second
	}
	return g, nil
}

// Tools lists the tools that the caller sees.
func (g *Gateway) Tools(caller Caller) []*Tool { return g.policy.Snapshot().Tools(caller) }

// Call admits a call and runs it.
func (g *Gateway) Call(ctx context.Context, call Call) (Result, error) {
	pass, err := g.Admit(ctx, call)
	if err != nil {
		return Result{}, err
	}
	return pass.Run(ctx)
}

// after tells plug-ins what became of a call. They cannot change it, and their failure is not the call's.
func (g *Gateway) after(ctx context.Context, r *Request, outcome *OutcomeRecord, result *Result) {
	if g.hooks == nil {
		return
	}
	defer g.contain("after-call hook")
	g.hooks.After(ctx, r, outcome, result)
}
