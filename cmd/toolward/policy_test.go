package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/gateway"
	"github.com/toolward/toolward/gateway/trial"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/store"
)

const candidateFile = `{"teg": {"preset": "workspace", "tools": {"read": "needs_approval"}, "rules": [
	{"name": "short", "tool": "exec", "when": "params.command.size() < 9", "then": "ask", "reason": "of the test"}]}}`

// people answer by the path or command of a call.
func people(_ context.Context, q *toolward.Question) toolward.Answer {
	switch text := string(q.Request.Params.Canonical()); {
	case strings.Contains(text, "unanswered"):
		return toolward.Answer{}
	case strings.Contains(text, "denied"):
		return toolward.Answer{Decision: toolward.DenyCall, By: "ada"}
	}
	return toolward.Answer{Decision: toolward.AllowOnce, By: "ada"}
}

// day is a gateway that does not serve, and the state that it leaves.
type day struct {
	*gateway.Gateway
	state, workspace string
}

// workday is what the agent did: files that people allowed, a command that they denied, and what nobody answered.
func workday(t *testing.T) *day {
	t.Helper()
	home, err := os.MkdirTemp("", "tw") // a short path, which every system can bind a socket to
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("HOME", home)
	d := &day{state: filepath.Join(home, ".toolward"), workspace: filepath.Join(home, "ws")}
	live.Unsandboxed(t, d.state)
	for _, dir := range []string{filepath.Join(d.workspace, "src"), filepath.Join(d.workspace, "docs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.write(t, "candidate.jsonc", candidateFile)
	d.write(t, config.FileName, `{"config": {"autoApply": true}, "teg": {"shadow": "candidate.jsonc"}}`)
	d.open(t)
	for i, call := range [][2]string{
		{"write", `{"path":"src/a.go","content":"1"}`},
		{"write", `{"path":"src/b.go","content":"1"}`},
		{"write", `{"path":"src/c.go","content":"1"}`},
		{"write", `{"path":"docs/x","content":"1"}`},
		{"write", `{"path":"docs/x","content":"2"}`},
		{"write", `{"path":"docs/x","content":"3"}`},
		{"write", `{"path":"docs/y","content":"1"}`},
		{"write", `{"path":"docs/z","content":"1"}`},
		{"write", `{"path":"docs/unanswered","content":"1"}`},
		{"exec", `{"command":"echo denied"}`},
		{"read", `{"path":"src/a.go"}`},
		{"frob", `{}`},
		{"read", `{}`},
	} {
		_, _ = d.Call(t.Context(), d.of(fmt.Sprint("c", i), call[0], call[1])) // what became of it is in the record
	}
	return d
}

func (d *day) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.state, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d *day) open(t *testing.T) {
	t.Helper()
	var err error
	if d.Gateway, err = gateway.Open(t.Context(), gateway.Options{Home: d.state, Approver: gateway.Answering(people)}); err != nil {
		t.Fatal(err)
	}
}

func (d *day) of(id, tool, args string) toolward.Call {
	return toolward.Call{
		ID: id, Tool: tool, Arguments: json.RawMessage(args), Session: "agent:coder:x", Surface: toolward.SurfaceMCP,
		WorkDir: d.workspace, Host: toolward.HostGateway, Caller: toolward.Caller{Agent: "coder", Context: "main", Workspace: d.workspace},
	}
}

// command runs the program on the home and reads its JSON.
func (d *day) command(t *testing.T, into any, args ...string) {
	t.Helper()
	var out, errs strings.Builder
	args = append([]string{"--home", d.state, "--json"}, args...)
	if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
	}
	if err := json.Unmarshal([]byte(out.String()), into); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out.String())
	}
}

func TestReplayOfAWorkday(t *testing.T) {
	l := workday(t)
	for _, running := range []bool{true, false} {
		if !running {
			l.Close()
		}
		var report trial.Replayed
		l.command(t, &report, "policy", "replay", "--since", "7d", "--with", filepath.Join(l.state, "candidate.jsonc"))
		want := audit.Tally{Calls: 13, Same: 2, Looser: 9, Stricter: 1, NotReplayed: 1}
		if report.Total != want || *report.ByTool["write"] != (audit.Tally{Calls: 9, Looser: 9}) || report.ByAgent["coder"].Calls != 13 {
			t.Errorf("running %v: %+v, by tool %+v", running, report.Total, report.ByTool["write"])
		}
		if len(report.Rules) != 1 || report.Rules[0].Name != "short" || !slices.Equal(report.Rules[0].Reads, []string{"params"}) {
			t.Errorf("rules that cannot be replayed: %+v", report.Rules)
		}
		stricter := report.Differences[len(report.Differences)-1]
		if stricter.Change != toolward.ChangeStricter || stricter.Tool != "read" || stricter.Before != "allow (read: workspace, instructions)" ||
			stricter.After != "ask (read: workspace, instructions)" && stricter.After != "ask (read: workspace, instructions), once only" || len(stricter.Because) == 0 {
			t.Errorf("%+v", stricter)
		}
		if d := report.Differences[8]; d.Answer != "" || d.Record == 0 || report.Differences[0].Answer != "allow-once" {
			t.Errorf("%+v", d)
		}
	}
}

// What the shadow said when a call was made is what a replay says later.
func TestShadowAndReplayAgree(t *testing.T) {
	l := workday(t)
	defer l.Close()
	db, err := store.OpenReader(t.Context(), l.state)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	records, err := store.NewAuditReader(db).Find(t.Context(), audit.Filter{Type: audit.TypeDecision, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	shadowed := map[int64]string{}
	for _, r := range records {
		var d struct {
			Shadow *struct{ Change, Verdict string }
		}
		if err := json.Unmarshal([]byte(r.JSON), &d); err != nil {
			t.Fatal(err)
		}
		if d.Shadow != nil && r.Tool != "exec" { // which the replay leaves out
			shadowed[r.Seq] = d.Shadow.Change + " " + d.Shadow.Verdict
		}
	}
	var report trial.Replayed
	l.command(t, &report, "policy", "replay", "--with", filepath.Join(l.state, "candidate.jsonc"))
	for _, d := range report.Differences {
		verdict, _, _ := strings.Cut(d.After, " ")
		if got := string(d.Change) + " " + verdict; shadowed[d.Record] != got {
			t.Errorf("record %d: replayed %q, recorded %q", d.Record, got, shadowed[d.Record])
		}
		delete(shadowed, d.Record)
	}
	if len(shadowed) > 0 {
		t.Errorf("only the shadow differs: %v", shadowed)
	}
}

func TestSuggestionsOfAWorkday(t *testing.T) {
	l := workday(t)
	defer func() { l.Close() }()
	var list []trial.Suggested
	l.command(t, &list, "policy", "suggest", "--since", "30d")
	if len(list) != 2 {
		t.Fatalf("%d suggestions: %+v", len(list), list)
	}
	// Somebody left docs/unanswered without an answer: the directory would be wider than what was allowed.
	for i, want := range []struct {
		when    string
		covered int
	}{{"/docs/x\"]", 3}, {`/src")`, 3}} {
		s := list[slices.IndexFunc(list, func(s trial.Suggested) bool { return strings.Contains(s.Rule.When, want.when) })]
		if s.Covers.Calls != want.covered || s.Covers.Allowed != want.covered || s.Covers.Wider(&s.Suggestion) {
			t.Errorf("suggestion %d covers %+v", i, s.Covers)
		}
	}
	l.Close()
	var rules []policy.Rule
	for _, s := range list {
		rules = append(rules, *s.Rule)
	}
	file, err := json.Marshal(map[string]any{"config": map[string]any{"autoApply": true}, "teg": map[string]any{"rules": rules}})
	if err != nil {
		t.Fatal(err)
	}
	l.write(t, config.FileName, string(file))
	l.open(t)
	for path, want := range map[string]toolward.Verdict{"src/new.go": toolward.Allow, "docs/x": toolward.Allow, "docs/y": toolward.Ask, "new": toolward.Ask} {
		call := l.of("new", "write", `{"path":"`+path+`","content":""}`)
		call.Session = "agent:coder:y"
		got := l.Explain(t.Context(), call, toolward.ExplainOptions{})
		if got.Verdict != want {
			t.Errorf("with the suggested rules %s is %s, want %s", path, got.Verdict, want)
		}
	}
}
