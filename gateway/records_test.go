package gateway

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/authority/signed"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/store"
)

// What people grant, and what a stricter configuration takes back, is in the record by name.
func TestTheRecordFollowsGrants(t *testing.T) {
	options := optionsFor(shortHome(t), "127.0.0.1:0")
	d := reopened(t, nil, options)
	if err := d.people.SetUp(t.Context(), "test", d.people.SetupCode(), "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	d.Close()
	rememberGrant(t, options.Home)
	d = reopened(t, nil, options)
	d.recordApproval(approval.Event{Type: approval.EventResolved, Approval: approval.Record{ID: "a2", Grant: "g2", ResolvedBy: "alice"}})
	if err := os.WriteFile(d.configPath(), []byte(`{"teg": {"tools": {"write": "needs_approval"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d.config.Reload()
	if err := d.applied(t, d.config.Pending().Hash); err != nil {
		t.Fatal(err)
	}
	if n := len(d.approver.Grants()); n != 0 {
		t.Errorf("%d grants are left", n)
	}
	d.events.close()
	defer func() { d.events = nil; d.Close() }()
	records, err := d.audit.Query(t.Context(), audit.Filter{Type: audit.TypeGrant})
	if err != nil || len(records) != 2 || !strings.Contains(records[1].JSON, `"event":"made","grant":"g2"`) ||
		!strings.Contains(records[0].JSON, `"event":"taken back","grant":"g1"`) {
		t.Errorf("%+v, %v", records, err)
	}
}

// applied lets a person who signs in apply a change that they have looked at for long enough.
func (g *Gateway) applied(t *testing.T, revision string) error {
	t.Helper()
	if g.people.NeedsSetup() {
		if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil {
			t.Fatal(err)
		}
	}
	by, err := g.people.SignInForeground(t.Context(), "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	person := desk.Visitor{By: by}
	for {
		if _, _, err := g.desk.PendingChange(person); err != nil {
			t.Fatal(err)
		}
		if err := g.desk.ApplyChange(t.Context(), person, revision); desk.CodeOf(err) != desk.TooSoon {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// rememberGrant leaves a grant in the state of a home, as an earlier gateway would.
func rememberGrant(t *testing.T, state string) {
	t.Helper()
	db, err := store.Open(t.Context(), state, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys := authority.Open(state, nil)
	approvals, now := signed.NewAnswers(store.NewApprovals(db), keys), time.Now().UnixMilli()
	if _, err := approvals.Grants(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := keys.Unlock("correct horse battery"); err != nil {
		t.Fatal(err)
	}
	asked := &approval.Record{
		ID: "a1", Kind: approval.KindTool, Request: &approval.Details{Tool: "write", Agent: "coder"}, Binding: "b",
		State: approval.StatePending, CreatedMs: now, ExpiresMs: now + 60_000,
	}
	if err := approvals.AddApproval(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	grant := &approval.Grant{
		ID: "g1", Tool: "write", Agent: "coder", Scope: approval.ScopeAgent, Contexts: []string{"main"}, Host: toolward.HostGateway,
		MaxLevel: toolward.Normal, Match: approval.Match{Kind: toolward.GrantPath, Prefix: "/ws", Ops: []toolward.Op{toolward.OpWrite}},
		CreatedMs: now, CreatedBy: "alice", ExpiresMs: now + 60_000,
	}
	end := approval.Resolution{Decision: toolward.AllowAlways, By: "alice", AtMs: now}
	if err := errors.Join(approvals.ResolveApproval(t.Context(), asked.Key(), end, grant), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// The record says which configuration counted when, who put it in force, and what was tried in vain.
func TestTheRecordFollowsTheConfiguration(t *testing.T) {
	d, err := Open(t.Context(), optionsFor(shortHome(t), "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	change := func(text string) (revision string) {
		if err := os.WriteFile(d.configPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d.config.Reload()
		if pending := d.config.Pending(); pending != nil {
			return pending.Hash
		}
		return ""
	}
	if err := d.applied(t, change(`{"tools": {"deny": ["exec"]}, "config": {"autoApply": true}}`)); err != nil {
		t.Fatal(err)
	}
	if waiting := change(`{"tools": {"deny": ["exec"]}}`); waiting != "" {
		t.Fatal("autoApply does not apply")
	}
	behind := change(strings.Repeat("// nothing to see here\n", 5000) + `{"tools": {"deny": []}}`)
	if err := d.applied(t, behind); !errors.Is(err, config.ErrTooLong) {
		t.Errorf("a change that could not be shown: %v", err)
	}
	d.events.close()
	defer func() { d.events = nil; d.Close() }()

	records, err := d.audit.Query(t.Context(), audit.Filter{Type: audit.TypeConfig})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, r := range slices.Backward(records) {
		var record struct {
			Data struct{ Event, By string }
		}
		if err := json.Unmarshal([]byte(r.JSON), &record); err != nil {
			t.Fatal(err)
		}
		said = append(said, strings.TrimSpace(record.Data.Event+" "+record.Data.By))
	}
	// What people do is written at once, the rest behind it: the order between the two is not fixed.
	slices.Sort(said)
	want := []string{"approved owner (daemon terminal)", "approved owner (daemon terminal)", "authority key made", "authority signed", "authority signed", "authority signed", "in force", "in force", "in force at start", "proposed", "proposed", "refused"}
	if !slices.Equal(said, want) {
		t.Errorf("the record says %q, want %q", said, want)
	}
}
