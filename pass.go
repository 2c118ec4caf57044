package toolward

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
)

// Pass is single-use permission to run exactly one call. Only Gateway.Admit makes one.
type Pass struct {
	gateway   *Gateway
	request   *Request
	record    RecordID
	kept      string            // by what name the keeper has the workspace as it was before
	admission context.Context   // for its values only: observers see the run as part of the call
	bound     [sha256.Size]byte // over call, session, working directory, host and policy revision
	deadline  time.Time         // monotonic; a pass found later is worth nothing
	asks      bool              // the client must still ask its person
	listed    bool              // the allowlist for commands let it run
	state     atomic.Int32
	left      atomic.Pointer[<-chan struct{}] // what it started, of a call that the client runs
}

const (
	passIssued int32 = iota
	passRunning
	passClosed
)

// Errors of a pass.
var (
	ErrPassUsed    = errors.New("this pass was used already: every call needs its own")
	ErrPassLate    = errors.New("this pass is too old: repeat the call")
	ErrPassChanged = errors.New("the call or the policy changed after it was admitted: repeat the call")
)

// Request is the admitted call.
func (p *Pass) Request() *Request { return p.request }

// ClientAsks reports whether the client must ask the person in front of it before it runs the call
// (Call.ClientAsks).
func (p *Pass) ClientAsks() bool { return p.asks }

// Listed reports whether the allowlist for commands let the call run, so that nobody was asked about it.
func (p *Pass) Listed() bool { return p.listed }

// Record is the id of the decision record.
func (p *Pass) Record() RecordID { return p.record }

// stillBound computes anew what the pass is bound to, from the parameters themselves.
func (p *Pass) stillBound() bool {
	r := p.request
	digest := r.Params.Digest(r.Tool.Name, r.Call.Caller.Agent, r.Call.Session)
	return passBinding(r, digest, p.gateway.policy.Snapshot().Revision()) == p.bound
}

// Start redeems the pass: it succeeds once, in time, and only if nothing that the pass is bound to has changed.
// Run does it by itself; adapters whose client runs the tool call it just before they tell the client to go ahead.
// It stops the replay of a pass and every swap between decision and run.
func (p *Pass) Start() error {
	if !p.state.CompareAndSwap(passIssued, passRunning) {
		return ErrPassUsed
	}
	switch {
	case time.Now().After(p.deadline):
		return p.refuse(ErrPassLate)
	case !p.stillBound():
		return p.refuse(ErrPassChanged)
	}
	return nil
}

// Leaves says that what a call of the client's has started goes on until running is closed, although the client may report its
// outcome before: a command in the background.
func (p *Pass) Leaves(running <-chan struct{}) { p.left.Store(&running) }

func (p *Pass) refuse(err error) error {
	return errors.Join(err, p.Close(context.Background(), OutcomeRecord{Status: StatusUnused, Error: err.Error()}))
}

// Run redeems the pass and executes the call. The outcome is recorded and the session's exposure noted before the
// result is returned.
func (p *Pass) Run(ctx context.Context) (Result, error) {
	if p.request.Tool.Run == nil || p.request.Call.ByClient {
		err := fmt.Errorf("%s is run by the client, not by the gateway", p.request.Tool.Name)
		return Result{}, errors.Join(err, p.Close(ctx, OutcomeRecord{Status: StatusUnused, Error: err.Error()}))
	}
	if err := p.Start(); err != nil {
		return Result{}, &Refusal{Tool: p.request.Tool.Name, Code: CodeTargetChanged, Cause: err}
	}
	start := time.Now()
	var result Result
	err := p.gateway.observed(under{ctx, p.admission}, "run", &p.request.Call, func(ctx context.Context) (err error) {
		result, err = p.execute(ctx)
		return err
	})
	// What a failed call brought along marks the session too: the text of an error may be a stranger's.
	outcome := OutcomeRecord{Status: StatusOK, Duration: time.Since(start), External: result.External, ExitCode: result.ExitCode}
	switch {
	case err != nil && ctx.Err() != nil:
		outcome.Status, outcome.Error = StatusAborted, err.Error()
	case err != nil:
		outcome.Status, outcome.Error = StatusError, err.Error()
	default:
		outcome.ResultBytes, outcome.ResultDigest = result.Bytes(), result.digest()
		if result.IsError {
			outcome.Status, outcome.Error = StatusError, result.firstText(1024)
		}
	}
	// The outcome must be written even when the caller has gone.
	ctx = context.WithoutCancel(ctx)
	closeErr := p.finish(ctx, &outcome, &result)
	defer p.gateway.after(ctx, p.request, &outcome, &result)
	if closeErr != nil {
		// A session whose exposure could not be noted must not get the content: it would be judged as clean.
		if len(outcome.External) > 0 {
			err = nil // a stranger's words, too
		}
		err = p.gateway.cleanFailure(err)
		return Result{}, errors.Join(err, fmt.Errorf("the call ran, but its outcome could not be recorded: %w", closeErr))
	}
	if err != nil {
		return p.gateway.clean(result), p.gateway.cleanFailure(err)
	}
	return p.gateway.clean(p.reviewed(ctx, result)), nil
}

// reviewed lets plug-ins redact the result. If one fails the agent gets a notice in its place: a redactor that
// crashes must not let through what it would have hidden.
func (p *Pass) reviewed(ctx context.Context, result Result) (out Result) {
	if p.gateway.hooks == nil {
		return result
	}
	out = ErrorResult("The call ran, but its result is withheld: a check of it failed.")
	defer p.gateway.contain("result hook")
	reviewed, err := p.gateway.hooks.Result(ctx, p.request, result)
	if err != nil {
		p.gateway.log.Error("result withheld", "tool", p.request.Tool.Name, "err", err)
		return out
	}
	return reviewed
}

// execute calls the tool and turns a panic into an error.
func (p *Pass) execute(ctx context.Context) (result Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.gateway.log.Error("tool panicked", "tool", p.request.Tool.Name, "panic", v, "stack", string(debug.Stack()))
			result, err = Result{}, fmt.Errorf("%s failed by an internal error", p.request.Tool.Name)
		}
	}()
	return p.request.Tool.Run(ctx, p.request)
}

// Close records the outcome of a call that the client ran itself, or that was never started. It works once.
func (p *Pass) Close(ctx context.Context, outcome OutcomeRecord) error {
	err := p.finish(ctx, &outcome, nil)
	if !errors.Is(err, ErrPassUsed) {
		p.gateway.after(ctx, p.request, &outcome, nil)
	}
	return err
}

// finish closes the pass, notes what the session was exposed to and records the outcome.
func (p *Pass) finish(ctx context.Context, outcome *OutcomeRecord, result *Result) error {
	was := p.state.Swap(passClosed)
	if was == passClosed {
		return ErrPassUsed
	}
	p.endKept(ctx, was == passRunning, result)
	if outcome.Status != StatusUnused && outcome.Status != StatusDenied {
		outcome.External = union(outcome.External, p.request.Facts.External)
	}
	var exposed error
	if len(outcome.External) > 0 {
		if exposed = p.gateway.sessions.Expose(ctx, p.request.Call.Session, Exposure{External: outcome.External}); exposed != nil {
			outcome.Error = joinText(outcome.Error, "exposure not noted: "+exposed.Error())
		}
	}
	if outcome.Time.IsZero() {
		outcome.Time = time.Now()
	}
	err := p.gateway.auditor.Conclude(ctx, p.record, outcome)
	p.gateway.watchEnd(ctx, p.request, outcome, result)
	return errors.Join(exposed, err)
}

// Matches reports whether raw arguments are those of the pass. An adapter asks it when its client reports what it ran:
// a client that ran something else must be seen.
func (p *Pass) Matches(raw json.RawMessage) bool {
	params, err := decodeFor(p.gateway.policy.Snapshot(), p.request.Tool, raw)
	return err == nil && params.Digest(p.request.Tool.Name, p.request.Call.Caller.Agent, p.request.Call.Session) == p.request.Digest
}

// union appends what a list lacks.
func union(list, more []string) []string {
	for _, text := range more {
		if !slices.Contains(list, text) {
			list = append(slices.Clip(list), text)
		}
	}
	return list
}

func joinText(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

func (r Result) digest() string {
	h := sha256.New()
	for _, c := range r.Content {
		h.Write([]byte(c.Text))
		h.Write(c.Data)
	}
	h.Write(r.Structured)
	return hex.EncodeToString(h.Sum(nil))
}

func (r Result) firstText(limit int) string {
	for _, c := range r.Content {
		if c.Text != "" {
			return c.Text[:min(len(c.Text), limit)]
		}
	}
	return ""
}
