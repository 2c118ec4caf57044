package desk_test

import (
	"context"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/store"
)

// remembers opens the approver of a world in which an answer was kept, as grant g1.
func (w *world) remembers(t *testing.T) {
	t.Helper()
	approvals, now := store.NewApprovals(w.db), time.Now().UnixMilli()
	asked := &approval.Record{
		ID: "a1", Kind: approval.KindTool, Request: &approval.Details{Tool: "write", Agent: "coder"}, Binding: "b",
		State: approval.StatePending, CreatedMs: now, ExpiresMs: now + 60_000,
	}
	must(t, approvals.AddApproval(t.Context(), asked))
	must(t, approvals.ResolveApproval(t.Context(), asked.Key(), approval.Resolution{Decision: toolward.AllowAlways, By: "alice", AtMs: now}, &approval.Grant{
		ID: "g1", Tool: "write", Agent: "coder", Scope: approval.ScopeAgent, Contexts: []string{"main"}, Host: toolward.HostGateway,
		MaxLevel: toolward.Normal, Match: approval.Match{Kind: toolward.GrantPath, Prefix: "/ws", Ops: []toolward.Op{toolward.OpWrite}},
		CreatedMs: now, CreatedBy: "alice", ExpiresMs: now + 60_000,
	}))
	var err error
	w.approvals, err = approval.Open(t.Context(), approval.Options{Store: approvals, Redact: func(s string) string { return s }})
	must(t, err)
	t.Cleanup(w.approvals.Close)
	w.desk, err = desk.New(desk.Options{Audit: w, Approvals: w.approvals})
	must(t, err)
}

func TestGrantsAreRevoked(t *testing.T) {
	o := operation{"revoke", "revoked", func(t *testing.T, w *world) { w.remembers(t) }, func(ctx context.Context, w *world, v desk.Visitor) error {
		_, err := w.desk.RevokeGrant(ctx, v, "g1")
		return err
	}, func(w *world) bool { return len(w.approvals.Grants()) == 0 }}
	o.takesAway(t)
	w := o.world(t)
	if list, err := w.desk.Grants(w.person()); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := w.desk.Grants(desk.Visitor{}); desk.CodeOf(err) != desk.NotAllowed {
		t.Errorf("nobody sees them: %v", err)
	}
	if _, err := w.desk.RevokeGrant(t.Context(), w.person(), "no-such"); desk.CodeOf(err) != desk.Unknown || len(w.events) != 0 {
		t.Errorf("no such grant: %v, recorded %v", err, w.events)
	}
}
