package trial

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/internal/shellfuzz"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/shell"
)

type object = map[string]any

// TestOneVerdict: whatever the command, the settings and the level, what "shell explain" says, what Explain says and what
// Admit does is one verdict.
func TestOneVerdict(t *testing.T) {
	const settings, commands = 100, 100 // of each
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	generator := shellfuzz.NewGenerator(seed, nil, func(text string) bool { _, err := shell.Analyze(text); return err == nil })
	seen := map[toolward.Verdict]int{}
	hardly := func() bool {
		return seen[toolward.Allow] < 100 || seen[toolward.Ask] < 100 || seen[toolward.Deny] < 100
	}
	for n := 0; n < settings || hardly() && n < 4*settings; n++ { // settings that allow much are rare
		w := newVerdictWorld(t, r)
		for range commands {
			level := []toolward.Level{toolward.Normal, toolward.Elevated, toolward.Lockdown}[r.IntN(3)]
			seen[w.agree(t, level, generator.Next())]++
		}
		w.close(t)
	}
	if hardly() {
		t.Errorf("the verdicts were hardly tried: %v", seen)
	}
}

// verdictWorld is an installation with random settings: as it is tried, and as it is in force.
type verdictWorld struct {
	settings       string
	workspace      string
	tried, inForce *Candidate
}

func newVerdictWorld(t *testing.T, r *rand.Rand) *verdictWorld {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &verdictWorld{workspace: filepath.Join(base, "ws")}
	home := filepath.Join(base, "home")
	for _, dir := range []string{w.workspace, home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string, content object) {
		text, err := json.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(home, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.settings += name + ": " + string(text) + "\n"
	}
	write(config.FileName, randomConfiguration(r))
	write("exec-approvals.json", randomAllowlist(r))
	for _, c := range []**Candidate{&w.tried, &w.inForce} {
		if *c, err = Open(home, ""); err != nil {
			t.Fatalf("%v\n%s", err, w.settings)
		}
	}
	return w
}

func (w *verdictWorld) close(t *testing.T) {
	for _, c := range []*Candidate{w.tried, w.inForce} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// agree fails the test if the three differ about a command.
func (w *verdictWorld) agree(t *testing.T, level toolward.Level, text string) toolward.Verdict {
	t.Helper()
	asked := Asked{Command: text, Agent: "coder", Workspace: w.workspace}
	said, err := w.tried.commandAt(t.Context(), level, asked)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	call, err := w.inForce.exec(asked)
	if err != nil {
		t.Fatal(err)
	}
	questions := 0
	h := gatetest.New(t, toolward.Deny)
	h.Approver.AskFunc = func(context.Context, *toolward.Question) (toolward.Answer, error) {
		questions++
		return toolward.Answer{}, nil // nobody answers
	}
	gate := h.With(t, func(c *toolward.Config) { c.Policy, c.Sessions = policy.NewLive(w.inForce.snapshot), levelOf(level) })
	explained := gate.Explain(t.Context(), call, toolward.ExplainOptions{}).Verdict
	pass, err := gate.Admit(t.Context(), call)
	admitted := toolward.Deny
	switch {
	case questions > 0:
		admitted = toolward.Ask
	case err == nil && pass != nil:
		admitted = toolward.Allow
	}
	if said.Verdict != explained || explained != admitted {
		t.Fatalf("%q at level %s: shell explain says %s, explain %s, admit %s (%v)\n%s", text, level, said.Verdict, explained, admitted, err, w.settings)
	}
	if j := said.Judged; j != nil && (j.Outcome != outcomes[admitted] || j.Requires != (admitted == toolward.Ask)) {
		t.Fatalf("%q at level %s: the outcome is %s, admit says %s\n%s", text, level, j.Outcome, admitted, w.settings)
	}
	return admitted
}

// put sets a key to one of the words; "" leaves it out.
func put(r *rand.Rand, o object, key string, words ...string) {
	if word := words[r.IntN(len(words))]; word != "" {
		o[key] = word
	}
}

func randomConfiguration(r *rand.Rand) object {
	exec := randomExec(r)
	if r.IntN(3) == 0 {
		exec["strictInlineEval"] = false
	}
	teg := object{}
	put(r, teg, "preset", "", "strict", "workspace")
	if r.IntN(4) == 0 {
		tools := object{}
		put(r, tools, "exec", "safe", "needs_approval", "blocked")
		teg["tools"] = tools
	}
	return object{
		"teg": teg, "tools": object{"exec": exec},
		"agents": object{"list": []object{{"id": "coder", "tools": object{"exec": randomExec(r)}}}},
	}
}

func randomExec(r *rand.Rand) object {
	exec := object{}
	put(r, exec, "security", "", "", "deny", "allowlist", "full")
	put(r, exec, "ask", "", "", "always", "on-miss", "off")
	put(r, exec, "preset", "", "strict", "developer")
	if r.IntN(2) == 0 {
		rule := object{"prefix": []string{[]string{"echo", "cat", "ls", "grep", "rm"}[r.IntN(5)]}}
		put(r, rule, "decision", "allow", "prompt", "forbidden")
		exec["rules"] = []object{rule}
	}
	return exec
}

func randomAllowlist(r *rand.Rand) object {
	defaults := object{}
	put(r, defaults, "security", "", "", "", "deny", "allowlist", "full")
	put(r, defaults, "ask", "", "", "always", "on-miss", "off")
	put(r, defaults, "askFallback", "", "allowlist")
	var entries []object
	for range r.IntN(4) {
		entry := object{}
		put(r, entry, "pattern", "*", "/usr/bin/*", "/usr/bin/cat", "/bin/echo", "/usr/bin/grep")
		entries = append(entries, entry)
	}
	return object{"version": 1, "defaults": defaults, "agents": object{"coder": object{"allowlist": entries}}}
}
