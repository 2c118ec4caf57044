package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/store"
)

func openHome(t *testing.T, home string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), home, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func pendingRecord(id string, createdMs int64) *approval.Record {
	return &approval.Record{
		ID: id, Kind: approval.KindTool, CreatedMs: createdMs, ExpiresMs: createdMs + 120_000, State: approval.StatePending,
		Binding: "binding-" + id, Connection: "c", Device: "d", Client: "client 1.0", Detached: true,
		Allowed: []toolward.Decision{toolward.AllowOnce, toolward.AllowAlways, toolward.DenyCall},
		Request: &approval.Details{
			Tool: "write", Title: "write: <a&b>", Level: toolward.Normal, Class: toolward.NeedsApproval, Severity: toolward.Info,
			Session: "agent:coder:main", Run: "run-1", Digest: "digest-" + id, Preview: []byte(`{"text":"<a&b>"}`),
		},
	}
}

func TestApprovalRows(t *testing.T) {
	ctx := t.Context()
	s := store.NewApprovals(openHome(t, t.TempDir()))
	now := time.Now().UnixMilli()
	r := pendingRecord("a", now)
	if err := s.AddApproval(ctx, r); err != nil {
		t.Fatal(err)
	}
	if err := s.AddApproval(ctx, r); err == nil {
		t.Error("the same record was added twice")
	}
	got, err := s.Approval(ctx, "a")
	if diff := cmp.Diff(r, got); diff != "" || err != nil {
		t.Fatalf("%v\n%s", err, diff)
	}
	if first, err := s.ConsumeApproval(ctx, r.Key(), now); first || err != nil {
		t.Errorf("a pending approval was used: %v %v", first, err)
	}
	grant := &approval.Grant{
		ID: "g", Tool: "write", Agent: "coder", Scope: approval.ScopeAgent, Contexts: []string{"main"}, MaxLevel: toolward.Normal,
		Match: approval.Match{Kind: toolward.GrantPath, Prefix: "/ws", Ops: []toolward.Op{toolward.OpWrite}}, CreatedMs: now, ExpiresMs: now + 1000,
	}
	end := approval.Resolution{Decision: toolward.AllowAlways, By: "owner", AtMs: now + 1}
	if err := s.ResolveApproval(ctx, r.Key(), end, grant); err != nil {
		t.Fatal(err)
	}
	second := approval.Resolution{Decision: toolward.DenyCall, By: "other", AtMs: now + 2}
	other := *grant
	other.ID = "g2"
	if err := s.ResolveApproval(ctx, r.Key(), second, &other); !errors.Is(err, store.ErrNotPending) {
		t.Errorf("a second answer: %v", err)
	}
	if err := s.ExpireApprovals(ctx, []approval.Expiry{{Key: r.Key(), By: "x", AtMs: now + 3}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.ApprovalByKey(ctx, r.Key()); got.Decision != toolward.AllowAlways || got.ResolvedBy != "owner" || got.Grant != "g" {
		t.Errorf("an answer changed: %+v", got)
	}
	for i, want := range []bool{true, false} {
		if first, err := s.ConsumeApproval(ctx, r.Key(), now+4); first != want || err != nil {
			t.Errorf("use %d: %v %v", i+1, first, err)
		}
	}
	grants, err := s.Grants(ctx, now)
	if diff := cmp.Diff([]*approval.Grant{grant}, grants); diff != "" || err != nil {
		t.Errorf("%v: the grant of the refused answer must not be there\n%s", err, diff)
	}
	if err := s.CountGrantUses(ctx, []approval.GrantUse{{ID: "g", Uses: 2, LastMs: now + 5}, {ID: "g", Uses: 1, LastMs: now + 4}}); err != nil {
		t.Fatal(err)
	}
	if grants, _ := s.Grants(ctx, now); grants[0].Uses != 3 || grants[0].LastUsedMs != now+5 {
		t.Errorf("%+v", grants[0])
	}
	if grants, _ := s.Grants(ctx, grant.ExpiresMs); len(grants) != 0 {
		t.Error("in force at its deadline")
	}
	if ok, err := s.SpendGrant(ctx, "g", now); ok || err != nil {
		t.Errorf("a use of a grant without a number of them: %v %v", ok, err)
	}
	if err := s.RevokeGrants(ctx, []string{"g"}, "owner", now); err != nil {
		t.Fatal(err)
	}
	if grants, _ := s.Grants(ctx, now); len(grants) != 0 {
		t.Error("in force after it was revoked")
	}
}

func TestApprovalQueries(t *testing.T) {
	ctx := t.Context()
	s := store.NewApprovals(openHome(t, t.TempDir()))
	now := time.Now().UnixMilli()
	for i, decision := range []toolward.Decision{toolward.NoDecision, toolward.DenyCall, toolward.AllowOnce, toolward.AllowOnce} {
		r := pendingRecord(fmt.Sprint(i), now+int64(i))
		if err := s.AddApproval(ctx, r); err != nil {
			t.Fatal(err)
		}
		if decision != toolward.NoDecision {
			if err := s.ResolveApproval(ctx, r.Key(), approval.Resolution{Decision: decision, By: "owner", AtMs: now + int64(i)}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.ConsumeApproval(ctx, approval.Key{ID: "3", CreatedMs: now + 3}, now); err != nil {
		t.Fatal(err)
	}
	ids := func(list []*approval.Record, err error) (out []string) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			out = append(out, r.ID+" "+string(r.State))
		}
		return out
	}
	if got := ids(s.PendingApprovals(ctx)); !cmp.Equal(got, []string{"0 pending"}) {
		t.Errorf("pending %v", got)
	}
	if got := ids(s.RecentApprovals(ctx, 2)); !cmp.Equal(got, []string{"3 consumed", "2 resolved"}) {
		t.Errorf("recent %v", got)
	}
	if denied, err := s.Denials(ctx, now, 10); err != nil || !cmp.Equal(denied, []approval.Denial{{Session: "agent:coder:main", Run: "run-1", Digest: "digest-1"}}) {
		t.Errorf("denied %v %v", denied, err)
	}
	if err := s.VoidAnswers(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.PruneApprovals(ctx, now+2); err != nil {
		t.Fatal(err)
	}
	if got := ids(s.RecentApprovals(ctx, 9)); !cmp.Equal(got, []string{"3 consumed", "2 void"}) {
		t.Errorf("after voiding and pruning %v", got)
	}
	if got := ids(s.PendingApprovals(ctx)); len(got) != 1 {
		t.Errorf("a pending approval was pruned: %v", got)
	}
	if r, err := s.Approval(ctx, "nothing"); r != nil || err != nil {
		t.Errorf("%v %v", r, err)
	}
}

// signedIn is a person for these tests.
type signedIn struct{}

func (signedIn) MayAnswer() error { return nil }
func (signedIn) MayGrant() error  { return nil }
func (signedIn) Name() string     { return "owner" }
func (signedIn) SignIn() string   { return "s" }
func (signedIn) Means() string    { return "" }

// TestApprovalsSurviveARestart runs the real manager on the real database.
func TestApprovalsSurviveARestart(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) { surviveRestart(t, home) })
}

func surviveRestart(t *testing.T, home string) {
	start := func() (*store.DB, *approval.Manager) {
		db := openHome(t, home)
		m, err := approval.Open(t.Context(), approval.Options{
			Store: store.NewApprovals(db), Redact: func(s string) string { return s },
			Settings: approval.Settings{Absent: approval.AbsentWait},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		return db, m
	}
	question := func(id string) *toolward.Question {
		return &toolward.Question{
			Binding: "b",
			Request: &toolward.Request{
				Tool: &toolward.Tool{Name: "exec"}, Level: toolward.Normal, Digest: "d",
				Call: toolward.Call{
					Tool: "exec", Session: "agent:coder:main", Caller: toolward.Caller{Agent: "coder", Context: "main"},
					Detach: id == "", Approval: id,
				},
				Facts: toolward.Facts{Command: "make"},
			},
			Judgment: toolward.Judgment{
				AllowAlways: true, GrantOK: true,
				Class: toolward.Classification{Class: toolward.NeedsApproval, Severity: toolward.Info, Grant: toolward.GrantExec},
			},
		}
	}
	db, m := start()
	_, err := m.Ask(t.Context(), question(""))
	var pending *toolward.Pending
	if !errors.As(err, &pending) {
		t.Fatal(err)
	}
	m.Close()
	_ = db.Close()

	db, m = start()
	answers := make(chan toolward.Answer, 1)
	go func() {
		a, err := m.Ask(context.WithoutCancel(t.Context()), question(pending.ID))
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	list, err := m.Pending(t.Context(), signedIn{})
	if err != nil || len(list) != 1 || list[0].ID != pending.ID || list[0].ExpiresMs != pending.ExpiresAt.UnixMilli() {
		t.Fatalf("after the restart: %+v %v", list, err)
	}
	time.Sleep(time.Second) // of the bubble: people need half a second to read
	if _, err := m.Resolve(t.Context(), approval.Response{ID: pending.ID, Decision: "allow-always", By: signedIn{}, Typed: true}); err != nil {
		t.Fatal(err)
	}
	if a := <-answers; a.Decision != toolward.AllowAlways || m.Consume(t.Context(), a.ApprovalID, "b") != nil {
		t.Fatalf("%+v", a)
	}
	m.Close()
	_ = db.Close()

	_, m = start()
	if err := m.Consume(t.Context(), pending.ID, "b"); !errors.Is(err, approval.ErrNotUsable) {
		t.Errorf("used twice: %v", err)
	}
	if _, ok, err := m.Granted(t.Context(), question("")); !ok || err != nil {
		t.Errorf("the grant is gone: %v", err)
	}
}

func TestDeviceRows(t *testing.T) {
	ctx := t.Context()
	home := t.TempDir()
	db := openHome(t, home)
	s := store.NewDevices(db)
	if _, found, err := s.Verifier(ctx); found || err != nil {
		t.Fatalf("%v %v", found, err)
	}
	now := time.UnixMilli(time.Now().UnixMilli())
	v := identity.Verifier{Person: "owner", Salt: []byte("0123456789abcdef"), Memory: 19456, Passes: 2, Lanes: 1, Check: []byte("check"), Changed: now}
	if err := s.SaveVerifier(ctx, v, true); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveVerifier(ctx, v, true); !errors.Is(err, store.ErrPersonExists) {
		t.Errorf("second setup: %v", err)
	}
	v.Check = []byte("other")
	if err := s.SaveVerifier(ctx, v, false); err != nil {
		t.Fatal(err)
	}
	if got, found, err := s.Verifier(ctx); !cmp.Equal(got, v) || !found || err != nil {
		t.Errorf("%+v %v %v", got, found, err)
	}
	token := identity.TokenRecord{
		Token: identity.Token{ID: "t1", Prefix: "tw_ABCDE", Name: "laptop", Agent: "coder", Workspace: "/ws", Owner: true, Created: now, CreatedBy: "owner", Expires: now.Add(time.Hour)},
		Hash:  [32]byte{1, 2, 3},
	}
	if err := s.AddAgentToken(ctx, token); err != nil {
		t.Fatal(err)
	}
	if err := s.AddAgentToken(ctx, token); err == nil {
		t.Error("the same token was added twice")
	}
	if err := s.TouchAgentToken(ctx, "t1", now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		if revoked, err := s.RevokeAgentToken(ctx, "t1", now.Add(2*time.Minute)); revoked != want || err != nil {
			t.Errorf("revocation %d: %v %v", i+1, revoked, err)
		}
	}
	token.LastUsed, token.Revoked = now.Add(time.Minute), now.Add(2*time.Minute)
	if got, err := s.AgentTokens(ctx); !cmp.Equal(got, []identity.TokenRecord{token}) || err != nil {
		t.Errorf("%+v %v", got, err)
	}
}

// TestGrantsWithANumberOfUses checks that the last use is the last, also for who reads the grants afterwards.
func TestGrantsWithANumberOfUses(t *testing.T) {
	ctx, s, now := t.Context(), store.NewApprovals(openHome(t, t.TempDir())), time.Now().UnixMilli()
	r := pendingRecord("uses", now)
	if err := s.AddApproval(ctx, r); err != nil {
		t.Fatal(err)
	}
	g := &approval.Grant{ID: "g2", Agent: "coder", Tool: "exec", CreatedMs: now, ExpiresMs: now + 1000, MaxUses: 2}
	if err := s.ResolveApproval(ctx, r.Key(), approval.Resolution{Decision: toolward.AllowAlways, By: "owner", AtMs: now}, g); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false} {
		if grants, err := s.Grants(ctx, now); err != nil || (len(grants) == 1) != want || want && (grants[0].MaxUses != 2 || grants[0].Uses != int64(i)) {
			t.Errorf("before use %d: %+v %v", i+1, grants, err)
		}
		if ok, err := s.SpendGrant(ctx, "g2", now); ok != want || err != nil {
			t.Errorf("use %d: %v %v", i+1, ok, err)
		}
	}
}
