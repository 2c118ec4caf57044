package approval

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

// TestGrantVectors runs the decision vectors of grants.
func TestGrantVectors(t *testing.T) {
	gatetest.Run(t, "policy.json", "grant", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Grant Grant
			Call  struct {
				Tool, Action, AgentID, Context, TargetID, Digest string
				SessionKey                                       toolward.SessionKey
				SenderIsOwner                                    bool
				Host                                             toolward.Host
				Level                                            toolward.Level
				NowMs                                            int64
				Targets                                          []struct {
					Path, Place string
					Op          toolward.Op
				}
				URL       *Address
				Recipient *Recipient
			}
		}
		gatetest.Decode(t, input, &in)
		c := in.Call
		a := &Attempt{
			Tool: c.Tool, Action: c.Action, Agent: c.AgentID, Session: c.SessionKey, Context: c.Context, Owner: c.SenderIsOwner,
			Host: c.Host, Level: c.Level, NowMs: c.NowMs, TargetID: c.TargetID, Digest: c.Digest,
		}
		for _, target := range c.Targets {
			a.Targets = append(a.Targets, toolward.Target{Path: target.Path, Real: target.Path, Op: target.Op, Zone: toolward.Zone(target.Place)})
		}
		if c.URL != nil {
			a.Addresses = []Address{*c.URL}
		}
		if c.Recipient != nil {
			a.Recipients = []Recipient{*c.Recipient}
		}
		reason := in.Grant.Refuses(a)
		if reason == "" {
			return map[string]any{"match": true}
		}
		return map[string]any{"match": false, "reason": reason}
	})
}

// socketOf is an approval socket for tests.
type socketOf struct {
	reachable bool
	decision  string
}

func (s socketOf) Reachable(context.Context) bool { return s.reachable }
func (s socketOf) Prompt(context.Context, *Record) (string, string, error) {
	return s.decision, "desk", nil
}

// TestWhatTheSocketMayAnswer checks that a program without a person's sign-in decides one ordinary call and no more.
func TestWhatTheSocketMayAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		edit     func(*toolward.Request, *toolward.Judgment)
		off      bool
		says     string
		asked    bool
		decision toolward.Decision
	}{
		"allow":              {says: "allow-once", asked: true, decision: toolward.AllowOnce},
		"always":             {says: "allow-always", asked: true, decision: toolward.AllowOnce},
		"deny":               {says: "deny", asked: true, decision: toolward.DenyCall},
		"an unknown word":    {says: "yes", asked: true, decision: toolward.NoDecision},
		"not switched on":    {says: "allow-once", off: true},
		"a critical call":    {says: "allow-once", edit: func(_ *toolward.Request, j *toolward.Judgment) { j.Class.Severity = toolward.Critical }},
		"a call in lockdown": {says: "allow-once", edit: func(r *toolward.Request, _ *toolward.Judgment) { r.Level = toolward.Lockdown }},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := open(t, newMemory(), func(o *Options) { o.Socket, o.Settings.Socket = socketOf{true, tt.says}, !tt.off })
			r := <-ask(t.Context(), m, question(tt.edit))
			var refusal *toolward.Refusal
			if asked := r.err == nil; asked != tt.asked || !asked && (!errors.As(r.err, &refusal) || refusal.Code != toolward.CodeNoApprovalChannel) {
				t.Errorf("%s: %+v", name, r)
			}
			if r.answer.Decision != tt.decision || len(m.Grants()) != 0 {
				t.Errorf("%s: %v, grants %v", name, r.answer.Decision, m.Grants())
			}
		})
	}
}

type chatOf bool

func (c chatOf) Offer(context.Context, *Record) bool { return bool(c) }

// TestApprovalFlowVectors runs the vectors of who is asked and what the answer means.
func TestApprovalFlowVectors(t *testing.T) {
	gatetest.Run(t, "policy.json", "approvalFlow", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Approvers int
			Forwarded bool
			Socket    string
			Decision  string
		}
		gatetest.Decode(t, input, &in)
		out := map[string]any{}
		synctest.Test(t, func(t *testing.T) {
			m := open(t, newMemory(), func(o *Options) {
				if in.Forwarded {
					o.Channels = []Channel{chatOf(true)}
				}
				if in.Socket == "ok" || in.Socket == "unreachable" {
					o.Socket, o.Settings.Socket = socketOf{in.Socket == "ok", in.Decision}, true
				}
			})
			for range in.Approvers {
				attach(t, m, &person{name: newID()})
			}
			result := ask(t.Context(), m, question(nil))
			synctest.Wait()
			if list, _ := m.Pending(t.Context(), alice); len(list) == 1 && in.Decision != "" && (in.Approvers > 0 || in.Forwarded) {
				_, _ = answer(m, alice, list[0].ID, in.Decision) // an unknown word is refused here
			}
			r := <-result
			out["path"] = "none"
			if r.answer.Path != "" {
				out["path"] = r.answer.Path
			}
			out["outcome"] = "deny"
			var refusal *toolward.Refusal
			switch {
			case errors.As(r.err, &refusal):
				out["code"] = refusal.Code
			case r.answer.Decision.Allows():
				out["outcome"] = "allow"
			case r.answer.Decision == toolward.DenyCall: // what Gateway.Admit makes of an answer
				out["code"] = toolward.CodeDeniedByUser
			default:
				out["code"] = toolward.CodeApprovalTimeout
			}
		})
		return out
	})
}

// TestManagerVectors runs the vectors of the state machine on a virtual clock.
func TestManagerVectors(t *testing.T) {
	gatetest.Run(t, "exec.json", "manager", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Ops []struct {
				At           int64
				Op, ID       string
				TimeoutMs    int64
				Decision, By string
			}
		}
		gatetest.Decode(t, input, &in)
		var results []any
		synctest.Test(t, func(t *testing.T) {
			m := open(t, newMemory(), nil)
			start := time.Now()
			for _, op := range in.Ops {
				time.Sleep(time.Until(start.Add(time.Duration(op.At) * time.Millisecond)))
				results = append(results, vectorOp(t, m, op.Op, op.ID, op.Decision, time.Duration(op.TimeoutMs)*time.Millisecond))
			}
		})
		return map[string]any{"results": results}
	})
}

func vectorOp(t *testing.T, m *Manager, op, id, word string, timeout time.Duration) any {
	switch op {
	case "register":
		r := Record{
			ID: id, Kind: KindExec, Binding: "b", Request: &Details{Tool: "exec", Session: "agent:main:main"},
			Allowed: []toolward.Decision{toolward.AllowOnce, toolward.AllowAlways, toolward.DenyCall},
		}
		r.Request.Agent, r.Request.Context, r.Request.Level = "main", "main", toolward.Normal
		r.Request.Proposals = []Proposal{{Scope: ScopeSession, Match: Match{Kind: toolward.GrantExact, Digest: "d", Bound: "b"}, LifeMs: 1000, Text: "exactly this"}}
		switch joined, err := m.Register(t.Context(), r, timeout); {
		case errors.Is(err, ErrResolved):
			return "error:already-resolved"
		case err != nil:
			return "error:" + err.Error()
		case joined:
			return "same-waiter"
		}
		return "registered"
	case "resolve":
		// The vectors answer at once; the half second that people are given is tested elsewhere.
		decision, err := toolward.ParseDecision(word)
		if err != nil {
			return false
		}
		m.mu.Lock()
		m.sweep(time.Now())
		e, err := m.find(id)
		m.mu.Unlock()
		if err != nil {
			return false
		}
		_, err = m.write(t.Context(), e, answerOf{decision: decision, by: "alice"})
		return err == nil
	case "expire":
		return m.Expire(id, ByNoApprover)
	case "consume":
		return m.Consume(t.Context(), id, "b") == nil
	case "await":
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // only look
		m.mu.Lock()
		m.sweep(time.Now())
		e := m.entries[id]
		isPending := e != nil && e.phase == pending
		m.mu.Unlock()
		if isPending {
			return "pending"
		}
		switch d, err := m.Wait(ctx, id); {
		case errors.Is(err, ErrUnknown):
			return "not-found"
		case err != nil:
			t.Fatalf("await %s: %v", id, err)
		case d == toolward.NoDecision:
			return nil
		default:
			return d.String()
		}
	}
	t.Fatalf("unknown op %q", op)
	return nil
}
