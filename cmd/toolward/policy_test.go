package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
)

// answers are people who answer by the path or command of a call.
type answers struct {
	nobody
	say   func(*toolward.Question) toolward.Decision
	asked int
}

func (a *answers) Ask(_ context.Context, q *toolward.Question) (toolward.Answer, error) {
	a.asked++
	return toolward.Answer{ApprovalID: fmt.Sprint(a.asked), Decision: a.say(q), By: "ada"}, nil
}

func (a *answers) Consume(context.Context, string, string) error { return nil }

// lab is a daemon that does not serve, whose questions answers decide.
type lab struct {
	*daemon
	home, workspace string
	gateway         *toolward.Gateway
	log             *bytes.Buffer
}

func newLab(t *testing.T, files map[string]string, say func(*toolward.Question) toolward.Decision) *lab {
	t.Helper()
	l := &lab{home: shortHome(t), log: &bytes.Buffer{}}
	l.workspace = filepath.Join(l.home, "ws")
	options := optionsFor(l.home, "127.0.0.1:0")
	for _, dir := range []string{l.workspace, filepath.Join(l.workspace, "src"), filepath.Join(l.workspace, "docs"), options.home} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(options.home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options.log = slog.New(slog.NewTextHandler(l.log, nil))
	var err error
	if l.daemon, err = newDaemon(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	l.gateway, err = toolward.New(toolward.Config{
		Policy: l.policy, Approver: &answers{say: say}, Auditor: l.audit, Sessions: l.sessions, Shadow: l.shadow,
		ObserveOnly: l.observes(), Log: l.daemon.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) call(t *testing.T, tool, args string) error {
	t.Helper()
	_, err := l.gateway.Call(t.Context(), toolward.Call{
		ID: "c", Tool: tool, Arguments: json.RawMessage(args), Session: "agent:coder:x", Surface: toolward.SurfaceMCP,
		WorkDir: l.workspace, Host: toolward.HostGateway, Caller: toolward.Caller{Agent: "coder", Context: "main", Workspace: l.workspace},
	})
	return err
}

// command runs the program on the lab's home and reads its JSON.
func (l *lab) command(t *testing.T, into any, args ...string) {
	t.Helper()
	var out, errs strings.Builder
	args = append([]string{"--home", filepath.Join(l.home, ".toolward"), "--json"}, args...)
	if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
	}
	if err := json.Unmarshal([]byte(out.String()), into); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out.String())
	}
}

const candidateFile = `{"teg": {"preset": "workspace", "tools": {"read": "needs_approval"}, "rules": [
	{"name": "short", "tool": "exec", "when": "params.command.size() < 9", "then": "ask", "reason": "of the test"}]}}`

// workday is what the agent did: files that people allowed, a command that they denied, and what nobody answered.
func workday(t *testing.T) *lab {
	l := newLab(t, map[string]string{"candidate.jsonc": candidateFile, config.FileName: `{"teg": {"shadow": "candidate.jsonc"}}`},
		func(q *toolward.Question) toolward.Decision {
			switch text := string(q.Request.Params.Canonical()); {
			case strings.Contains(text, "unanswered"):
				return toolward.NoDecision
			case strings.Contains(text, "denied"):
				return toolward.DenyCall
			}
			return toolward.AllowOnce
		})
	for _, call := range [][2]string{
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
		_ = l.call(t, call[0], call[1]) // what became of it is in the record
	}
	return l
}

func TestReplayOfAWorkday(t *testing.T) {
	l := workday(t)
	for _, running := range []bool{true, false} {
		if !running {
			l.close()
		}
		var report replayReport
		l.command(t, &report, "policy", "replay", "--since", "7d", "--with", filepath.Join(l.daemon.home, "candidate.jsonc"))
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
	defer l.close()
	records, err := l.audit.Query(t.Context(), audit.Filter{Type: audit.TypeDecision})
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
	var report replayReport
	l.command(t, &report, "policy", "replay", "--with", filepath.Join(l.daemon.home, "candidate.jsonc"))
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
	defer l.close()
	var list []suggested
	l.command(t, &list, "policy", "suggest", "--since", "30d")
	if len(list) != 2 {
		t.Fatalf("%d suggestions: %+v", len(list), list)
	}
	// Somebody left docs/unanswered without an answer: the directory would be wider than what was allowed.
	for i, want := range []struct {
		when    string
		covered int
	}{{"/docs/x\"]", 3}, {`/src")`, 3}} {
		s := list[slices.IndexFunc(list, func(s suggested) bool { return strings.Contains(s.Rule.When, want.when) })]
		if s.Covers.Calls != want.covered || s.Covers.Allowed != want.covered || s.Covers.wider(&s.Suggestion) {
			t.Errorf("suggestion %d covers %+v", i, s.Covers)
		}
	}
	c := l.config.Current().File.Policy()
	for _, s := range list {
		c.TEG.Rules = append(c.TEG.Rules, *s.Rule)
	}
	snapshot, _, err := policy.Compile(c, l.tools)
	if err != nil {
		t.Fatal(err)
	}
	l.policy.Swap(snapshot)
	for path, want := range map[string]toolward.Verdict{"src/new.go": toolward.Allow, "docs/x": toolward.Allow, "docs/y": toolward.Ask, "new": toolward.Ask} {
		got := l.gateway.Explain(t.Context(), toolward.Call{
			Tool: "write", Arguments: json.RawMessage(`{"path":"` + path + `","content":""}`), Session: "agent:coder:y", WorkDir: l.workspace,
			Host: toolward.HostGateway, Caller: toolward.Caller{Agent: "coder", Context: "main", Workspace: l.workspace},
		}, toolward.ExplainOptions{})
		if got.Verdict != want {
			t.Errorf("with the suggested rules %s is %s, want %s", path, got.Verdict, want)
		}
	}
}

func TestShadowFollowsItsFile(t *testing.T) {
	l := newLab(t, map[string]string{"candidate.jsonc": `{}`, config.FileName: `{"teg": {"shadow": "candidate.jsonc"}}`}, nil)
	defer l.close()
	file := filepath.Join(l.daemon.home, "candidate.jsonc")
	first := l.shadow.Snapshot().Revision()
	for text, changes := range map[string]bool{`{"teg": {"preset": "nosuch"}}`: false, `{"teg":`: false, `{"teg": {"preset": "workspace"}}`: true} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l.shadow.reload()
		if got := l.shadow.Snapshot().Revision(); (got != first) != changes {
			t.Errorf("%s: revision %s, before %s", text, got, first)
		}
		if err := os.WriteFile(file, []byte(`{}`), 0o600); err != nil {
			t.Fatal(err)
		}
		l.shadow.reload()
	}
	if !strings.Contains(l.log.String(), "candidate.jsonc:1:20: teg.preset") {
		t.Errorf("the log does not say where the mistake is:\n%s", l.log)
	}
	l.shadow.use("absent.jsonc")
	if l.shadow.Snapshot() != nil {
		t.Error("the earlier shadow stands for a file that does not exist")
	}
	l.shadow.use("")
	if l.shadow.Snapshot() != nil {
		t.Error("there is a shadow without a file")
	}
}

// A shadow whose file changes while the gateway runs, and one that another file takes the place of.
func TestShadowIsWatched(t *testing.T) {
	l := newLab(t, map[string]string{"one.jsonc": `{}`, "two.jsonc": `{}`, config.FileName: `{"teg": {"shadow": "one.jsonc"}}`}, nil)
	defer l.close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.shadow.follow(ctx) }()
	defer func() { stop(); <-done }()
	for _, name := range []string{"one.jsonc", "two.jsonc"} {
		l.shadow.use(name)
		before := l.shadow.Snapshot().Revision()
		deadline := time.After(time.Minute)
		for i := 0; l.shadow.Snapshot().Revision() == before; i++ {
			// The watch may not stand yet: change the file until it is seen.
			text := fmt.Sprintf(`{"teg": {"preset": "workspace"}} // %d`, i)
			if err := os.WriteFile(filepath.Join(l.daemon.home, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			select {
			case <-deadline:
				t.Fatalf("a change of %s is never seen", name)
			case <-time.After(150 * time.Millisecond):
			}
		}
	}
}

// Shadow mode counts as it was at start: a changed file neither gives protection nor takes it away before a restart.
func TestShadowModeIsOfTheStart(t *testing.T) {
	for _, c := range []struct {
		start, later string
		runs         bool
	}{{"shadow", "enforce", true}, {"enforce", "shadow", false}} {
		l := newLab(t, map[string]string{config.FileName: `{"teg": {"mode": "` + c.start + `"}, "config": {"autoApply": true}}`},
			func(*toolward.Question) toolward.Decision { return toolward.DenyCall })
		if err := os.WriteFile(l.configPath(), []byte(`{"teg": {"mode": "`+c.later+`"}, "config": {"autoApply": true}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		l.config.Reload()
		if got := l.config.Current().File.TEG.Mode; got != c.later {
			t.Fatalf("not applied: %s", got)
		}
		if err := l.call(t, "write", `{"path":"a","content":"1"}`); (err == nil) != c.runs {
			t.Errorf("started with %s: %v", c.start, err)
		}
		if err := l.call(t, "read", `{"path":"`+l.daemon.home+`/state.db"}`); err == nil {
			t.Errorf("started with %s: what is blocked ran", c.start)
		}
		if warned := strings.Contains(l.log.String(), "teg.shadow_mode"); warned != c.runs {
			t.Errorf("started with %s: warned %v", c.start, warned)
		}
		l.close()
	}
}
