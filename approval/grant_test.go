package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolward/toolward"
)

// always answers the one pending question with "always" and the given proposal.
func always(t *testing.T, m *Manager, q *toolward.Question, proposal int) (*Grant, Proposal) {
	t.Helper()
	result := ask(t.Context(), m, q)
	synctest.Wait()
	r := only(t, m)
	stamp := m.MarkShown(r, alice)
	time.Sleep(time.Second)
	_, err := m.Resolve(t.Context(), Response{ID: r.ID, Decision: "allow-always", Proposal: proposal, By: alice, Shown: stamp})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-result; got.answer.Decision != toolward.AllowAlways {
		t.Fatalf("%+v", got)
	}
	return m.Grants()[0], r.Request.Proposals[proposal]
}

func TestWhatAlwaysSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		g, p := always(t, m, question(nil), 0)
		want := `write may write "/ws/src" and everything below it, except instructions, protected and secret files, on gateway, in this session only, for 24 hours, only for calls of the owner, only while the session is normal`
		if p.Text != want || g.Text != p.Text {
			t.Errorf("sentence\n%s\nwant\n%s", p.Text, want)
		}
		wantGrant := &Grant{
			ID: g.ID, Tool: "write", Agent: "coder", Scope: ScopeSession, Session: "agent:coder:main", Contexts: []string{"main"},
			OwnerOnly: true, Host: "gateway", MaxLevel: toolward.Normal, Workspace: "/ws", Text: want,
			Match:     Match{Kind: toolward.GrantPath, Prefix: "/ws/src", Ops: []toolward.Op{toolward.OpWrite}},
			CreatedBy: "alice", CreatedMs: g.CreatedMs, ExpiresMs: g.CreatedMs + (24 * time.Hour).Milliseconds(),
		}
		if diff := cmp.Diff(wantGrant, g); diff != "" {
			t.Error(diff)
		}
	})
}

func TestProposals(t *testing.T) {
	exec := func(r *toolward.Request, j *toolward.Judgment) {
		r.Tool = &toolward.Tool{Name: "exec"}
		r.Facts = toolward.Facts{Command: "go test ./...", Bound: []string{"env:abc"}}
		j.Class.Grant = toolward.GrantExec
	}
	tests := map[string]struct {
		edit func(*toolward.Request, *toolward.Judgment)
		want []string // kind, scope and what it is bound to
	}{
		"write": {nil, []string{"path session /ws/src", "path agent /ws/src", "path session /ws/src/a.go", "path agent /ws/src/a.go"}},
		"file in the workspace itself": {func(r *toolward.Request, _ *toolward.Judgment) { r.Facts.Targets[0].Real = "/ws/a.go" }, []string{
			"path session /ws", "path agent /ws", "path session /ws/a.go", "path agent /ws/a.go",
		}},
		"two files": {func(r *toolward.Request, _ *toolward.Judgment) {
			r.Facts.Targets = append(r.Facts.Targets, toolward.Target{Real: "/ws/src/lib/b.go", Op: toolward.OpDelete, Zone: "workspace"})
		}, []string{"path session /ws/src", "path agent /ws/src"}},
		"one of two is protected": {func(r *toolward.Request, _ *toolward.Judgment) {
			r.Facts.Targets = append(r.Facts.Targets, toolward.Target{Real: "/ws/.git/config", Op: toolward.OpWrite, Zone: "protected"})
		}, nil},
		"outside": {func(r *toolward.Request, _ *toolward.Judgment) {
			r.Facts.Targets[0].Real, r.Facts.Targets[0].Zone = "/etc/hosts", "outside"
		}, nil},
		"no targets":    {func(r *toolward.Request, _ *toolward.Judgment) { r.Facts.Targets = nil }, nil},
		"command":       {exec, []string{"exact session", "exact agent"}},
		"lockdown":      {func(r *toolward.Request, _ *toolward.Judgment) { r.Level = toolward.Lockdown }, nil},
		"critical":      {func(_ *toolward.Request, j *toolward.Judgment) { j.Class.Severity = toolward.Critical }, nil},
		"not offered":   {func(_ *toolward.Request, j *toolward.Judgment) { j.AllowAlways = false }, nil},
		"no grant kind": {func(_ *toolward.Request, j *toolward.Judgment) { j.Class.Grant = toolward.GrantNone }, nil},
		"cut preview, exact": {func(r *toolward.Request, j *toolward.Judgment) {
			long := strings.Repeat("x", maxPreview+1)
			raw, _ := json.Marshal(map[string]any{"text": long})
			r.Params = toolward.NewParams(raw, map[string]any{"text": long})
			j.Class.Grant = toolward.GrantExact
		}, nil},
		"host": {func(r *toolward.Request, j *toolward.Judgment) {
			r.Facts = toolward.Facts{Hosts: []string{"https://docs.example.org:443", "https://docs.example.org:443"}}
			j.Class.Grant = toolward.GrantHost
		}, []string{"host session docs.example.org", "host agent docs.example.org"}},
		"two hosts": {func(r *toolward.Request, j *toolward.Judgment) {
			r.Facts = toolward.Facts{Hosts: []string{"https://a:443", "https://b:443"}}
			j.Class.Grant = toolward.GrantHost
		}, nil},
		"process": {func(r *toolward.Request, j *toolward.Judgment) {
			r.Facts = toolward.Facts{TargetID: "p1"}
			j.Class.Grant = toolward.GrantProcess
		}, []string{"process session p1"}},
		"recipient": {func(r *toolward.Request, j *toolward.Judgment) {
			r.Facts = toolward.Facts{Recipients: []string{"telegram:default:42"}}
			j.Class.Grant = toolward.GrantRecipient
		}, []string{"recipient session 42", "recipient agent 42"}},
	}
	settings, _ := Settings{}.withDefaults()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := open(t, newMemory(), nil)
			q := question(tt.edit)
			_, shortened := m.preview(q.Request.Params)
			var got []string
			for _, p := range m.propose(q, shortened, settings) {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s%s%s%s", p.Match.Kind, p.Scope, p.Match.Prefix, p.Match.Host, p.Match.To, p.Match.ID)))
				a := attemptOf(q.Request, time.Now())
				a.bindExact(q.Request)
				g := grantFrom(detailsFor(t, m, q), p, "alice", time.Now())
				if why := g.Refuses(a); why != "" {
					t.Errorf("%s %s does not cover the call it was made for: %s", p.Match.Kind, p.Scope, why)
				}
				if err := g.check(time.Now().UnixMilli()); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			r, err := m.recordOf(q, time.Now())
			if err != nil || r.Offers(toolward.AllowAlways) != (len(tt.want) > 0) {
				t.Errorf("offers %v, %v", r.Allowed, err)
			}
		})
	}
}

func detailsFor(t *testing.T, m *Manager, q *toolward.Question) *Details {
	t.Helper()
	r, err := m.recordOf(q, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return r.Request
}

// Who wants a host stands in the title, after the whole of the host.
func TestTitleOfAConnection(t *testing.T) {
	m := open(t, newMemory(), nil)
	for command, want := range map[string]string{
		"npm install\nrm -rf x": "egress: registry.corp.example:4873, for npm install", "": "egress: registry.corp.example:4873",
	} {
		r, err := m.recordOf(question(func(r *toolward.Request, _ *toolward.Judgment) {
			r.Tool = &toolward.Tool{Name: "egress"}
			r.Facts = toolward.Facts{Hosts: []string{"tcp://registry.corp.example:4873"}, For: command}
		}), time.Now())
		if err != nil || r.Request.Title != want {
			t.Errorf("%q: %q, %v", command, r.Request.Title, err)
		}
	}
}

func TestTooWide(t *testing.T) {
	t.Setenv("HOME", "/home/dev")
	for prefix, want := range map[string]bool{
		"/": true, "": true, "relative": true, "/home": true, "/home/dev": true, "/home/dev/code": true,
		"/home/dev/code/ws": false, "/home/dev/code/ws/src": false, "/home/dev/code/ws/..": true,
	} {
		if got := tooWide(prefix, "/home/dev/code/ws"); got != want {
			t.Errorf("tooWide(%q) = %v", prefix, got)
		}
	}
	if !tooWide("/home/dev", "/home/dev") {
		t.Error("a workspace that is the home directory can be granted whole")
	}
}

func TestExactGrantOfACommandIsBound(t *testing.T) {
	edit := func(change func(*toolward.Request)) *toolward.Question {
		return question(func(r *toolward.Request, j *toolward.Judgment) {
			r.Tool = &toolward.Tool{Name: "exec"}
			r.Params = toolward.NewParams([]byte(`{"command":"make"}`), map[string]any{"command": "make"})
			r.Facts = toolward.Facts{Command: "make", Bound: []string{"env:abc"}}
			j.Class.Grant = toolward.GrantExec
			if change != nil {
				change(r)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		always(t, m, edit(nil), 1) // in all sessions
		tests := map[string]struct {
			change  func(*toolward.Request)
			covered bool
		}{
			"the same":            {nil, true},
			"another session":     {func(r *toolward.Request) { r.Call.Session = "agent:coder:other" }, true},
			"another directory":   {func(r *toolward.Request) { r.Call.WorkDir = "/ws/sub" }, false},
			"another environment": {func(r *toolward.Request) { r.Facts.Bound = []string{"env:xyz"} }, false},
			"another host":        {func(r *toolward.Request) { r.Call.Host = "sandbox" }, false},
			"another agent":       {func(r *toolward.Request) { r.Call.Caller.Agent = "other" }, false},
			"not the owner":       {func(r *toolward.Request) { r.Call.Caller.Owner = false }, false},
			"another context":     {func(r *toolward.Request) { r.Call.Caller.Context = "group" }, false},
			"elevated":            {func(r *toolward.Request) { r.Level = toolward.Elevated }, false},
			"lockdown":            {func(r *toolward.Request) { r.Level = toolward.Lockdown }, false},
			"another workspace":   {func(r *toolward.Request) { r.Call.Caller.Workspace = "/other" }, false},
			"one byte more": {func(r *toolward.Request) {
				r.Params = toolward.NewParams([]byte(`{"command":"make "}`), map[string]any{"command": "make "})
			}, false},
		}
		for name, tt := range tests {
			if _, ok, err := m.Covered(t.Context(), edit(tt.change)); ok != tt.covered || err != nil {
				t.Errorf("%s: covered = %v, %v", name, ok, err)
			}
		}
	})
}

func TestGrantLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		q := question(nil)
		g, _ := always(t, m, q, 0)
		for range 3 {
			if id, ok, _ := m.Granted(t.Context(), q); !ok || id != g.ID {
				t.Fatal("not granted")
			}
		}
		if m.Grants()[0].Uses != 3 {
			t.Errorf("uses = %d", m.Grants()[0].Uses)
		}
		m.Close()
		if store.uses[g.ID] != 3 {
			t.Errorf("stored uses = %d", store.uses[g.ID])
		}
		m = open(t, store, nil)
		if _, ok, _ := m.Granted(t.Context(), q); !ok {
			t.Error("gone after a restart")
		}
		time.Sleep(time.Until(time.UnixMilli(g.ExpiresMs)) - time.Millisecond)
		if _, ok, _ := m.Granted(t.Context(), q); !ok {
			t.Error("gone before its time")
		}
		time.Sleep(time.Millisecond)
		if _, ok, _ := m.Granted(t.Context(), q); ok || len(m.Grants()) != 0 {
			t.Error("in force at its deadline")
		}
	})
}

func TestRevoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		m := open(t, store, nil)
		attach(t, m, alice)
		q := question(nil)
		g, _ := always(t, m, q, 0)
		if _, err := m.Revoke(t.Context(), nil, g.ID); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("anybody: %v", err)
		}
		if _, err := m.Revoke(t.Context(), alice, g.ID[:7]); err == nil {
			t.Error("short prefix")
		}
		if _, err := m.Revoke(t.Context(), alice, g.ID[:8]); err != nil {
			t.Fatal(err)
		}
		if _, ok, _ := m.Granted(t.Context(), q); ok {
			t.Error("still granted")
		}
		if store.grants[g.ID].RevokedBy != "alice" {
			t.Errorf("%+v", store.grants[g.ID])
		}
		always(t, m, q, 0)
		n, err := m.DropGrants(t.Context(), "session was reset", func(g *Grant) bool { return g.Session == "agent:coder:main" })
		if n != 1 || err != nil || len(m.Grants()) != 0 {
			t.Errorf("dropped %d, %v", n, err)
		}
	})
}

func TestGrantLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), func(o *Options) { o.Settings.MaxGrants = 1 })
		attach(t, m, alice)
		always(t, m, question(nil), 0)
		ctx, cancel := t.Context(), func() {}
		defer cancel()
		result := ask(ctx, m, question(func(r *toolward.Request, _ *toolward.Judgment) { r.Facts.Targets[0].Real = "/ws/x/b.go" }))
		synctest.Wait()
		if _, err := answer(m, alice, only(t, m).ID, "allow-always"); err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%v", err)
		}
		if _, err := answer(m, alice, only(t, m).ID, "allow-once"); err != nil {
			t.Error(err)
		}
		<-result
	})
}

// TestGrantIndexFindsWhatASearchFinds is a law: the index finds a grant exactly when a search of all of them would.
func TestGrantIndexFindsWhatASearchFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segment := rapid.SampledFrom([]string{"a", "b", "ab"})
		file := rapid.Custom(func(t *rapid.T) string {
			return "/ws/" + strings.Join(rapid.SliceOfN(segment, 1, 4).Draw(t, "path"), "/")
		})
		b := newBook()
		var all []*Grant
		for i := range rapid.IntRange(0, 12).Draw(t, "grants") {
			g := &Grant{
				ID: fmt.Sprint(i), Tool: rapid.SampledFrom([]string{"write", "edit"}).Draw(t, "tool"), Agent: "coder",
				Scope: ScopeAgent, Contexts: []string{"main"}, Host: "gateway", MaxLevel: toolward.Normal, ExpiresMs: 1 << 60,
				Match: Match{Kind: toolward.GrantPath, Prefix: file.Draw(t, "prefix"), Ops: []toolward.Op{toolward.OpWrite}},
			}
			all = append(all, g)
			b.add(g)
		}
		for _, g := range all {
			if rapid.Bool().Draw(t, "remove") {
				b.remove(g.ID)
				all = slices.DeleteFunc(slices.Clone(all), func(o *Grant) bool { return o == g })
			}
		}
		q := question(func(r *toolward.Request, _ *toolward.Judgment) {
			r.Facts.Targets = nil
			for range rapid.IntRange(1, 3).Draw(t, "targets") {
				r.Facts.Targets = append(r.Facts.Targets, toolward.Target{Real: file.Draw(t, "target"), Op: toolward.OpWrite, Zone: "workspace"})
			}
		})
		a := attemptOf(q.Request, time.Now())
		found := b.find(q.Request, toolward.GrantPath, time.Now())
		want := slices.ContainsFunc(all, func(g *Grant) bool { return g.Refuses(a) == "" })
		if (found != nil) != want {
			t.Fatalf("index found %+v, search found %v", found, want)
		}
		for id := range b.byID {
			b.remove(id)
		}
		if len(b.index)+len(b.exact)+len(b.byID) != 0 {
			t.Fatalf("removing everything leaves %d, %d, %d", len(b.index), len(b.exact), len(b.byID))
		}
	})
}

func TestOddTargetsAreNeverCovered(t *testing.T) {
	m := &Match{Kind: toolward.GrantPath, Prefix: "/ws/src", Ops: []toolward.Op{toolward.OpWrite}}
	for name, target := range map[string]toolward.Target{
		"sibling":      {Real: "/ws/src2/a", Op: toolward.OpWrite, Zone: "workspace"},
		"dot dot":      {Real: "/ws/src/../../etc/passwd", Op: toolward.OpWrite, Zone: "workspace"},
		"relative":     {Real: "ws/src/a", Op: toolward.OpWrite, Zone: "workspace"},
		"empty":        {Real: "", Op: toolward.OpWrite, Zone: "workspace"},
		"parent":       {Real: "/ws", Op: toolward.OpWrite, Zone: "workspace"},
		"delete":       {Real: "/ws/src/a", Op: toolward.OpDelete, Zone: "workspace"},
		"move":         {Real: "/ws/src/a", Op: toolward.OpMove, Zone: "workspace"},
		"instructions": {Real: "/ws/src/AGENTS.md", Op: toolward.OpWrite, Zone: "instructions"},
		"no place":     {Real: "/ws/src/a", Op: toolward.OpWrite},
		"link led out": {Real: "/ws/src/a", Op: toolward.OpWrite, Zone: "workspace", Left: true},
	} {
		if m.covers(&Attempt{Targets: []toolward.Target{{Real: "/ws/src/ok", Op: toolward.OpWrite, Zone: "workspace"}, target}}) {
			t.Errorf("%s is covered", name)
		}
	}
	for _, m := range []*Match{
		{},
		{Kind: "anything"},
		{Kind: toolward.GrantExact},
		{Kind: toolward.GrantPath},
		{Kind: toolward.GrantPath, Prefix: "/"},
		{Kind: toolward.GrantHost},
		{Kind: toolward.GrantRecipient},
		{Kind: toolward.GrantSession},
	} {
		a := &Attempt{
			Targets:   []toolward.Target{{Real: "/ws/a", Op: toolward.OpWrite, Zone: "workspace"}},
			Addresses: []Address{{}}, Recipients: []Recipient{{}},
		}
		if m.covers(a) {
			t.Errorf("%+v covers something", m)
		}
	}
}
