package gateway

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
)

func (l *lab) explained(t *testing.T, command string) toolward.Verdict {
	t.Helper()
	return l.Explain(t.Context(), toolward.Call{
		Tool: "exec", Arguments: []byte(`{"command":"` + command + `"}`), Session: "agent:coder:x", Surface: toolward.SurfaceMCP,
		WorkDir: l.workspace, Host: toolward.HostGateway, Caller: toolward.Caller{Agent: "coder", Context: "main", Workspace: l.workspace},
	}, toolward.ExplainOptions{}).Verdict
}

// unconfined is a configuration of tests whose verdicts must not depend on what this machine can confine.
const unconfined = `{"config": {"autoApply": true}, "tools": {"exec": {"lightConfinement": false}}}`

// A changed section counts for the next command, a wrong one changes nothing, and what is ignored is said once.
func TestCommandSettingsCountAtOnce(t *testing.T) {
	l := newLab(t, map[string]string{config.FileName: unconfined}, nil)
	defer l.Close()
	for _, step := range []struct {
		source string
		ls     toolward.Verdict
	}{
		{`{"config": {"autoApply": true}}`, toolward.Ask},
		{`{"config": {"autoApply": true}, "tools": {"exec": {"preset": "developer", "safeBins": ["mystery"]}}}`, toolward.Allow},
		{`{"config": {"autoApply": true}, "tools": {"exec": {"preset": "developer", "safeBins": ["mystery"], "rules": [{"prefix": ["ls"], "decision": "prompt"}]}}}`, toolward.Ask},
		{`{"config": {"autoApply": true}, "tools": {"exec": {"preset": "developer", "rules": [{"prefix": ["ls"], "decision": "allow", "match": ["cat x"]}]}}}`, toolward.Ask},
		{`{"config": {"autoApply": true}, "agents": {"list": [{"id": "CODER", "tools": {"exec": {"preset": "developer"}}}]}}`, toolward.Allow},
		{`{"config": {"autoApply": true}, "tools": {"exec": {"preset": "developer", "rules": [{"prefix": ["ls"], "decision": "forbidden"}]}}}`, toolward.Deny},
	} {
		if err := os.WriteFile(l.configPath(), []byte(step.source), 0o600); err != nil {
			t.Fatal(err)
		}
		l.config.Reload()
		if got := l.explained(t, "ls"); got != step.ls {
			t.Errorf("ls: %s, want %s, with %s", got, step.ls, step.source)
		}
	}
	if n := strings.Count(l.log.String(), "there is no profile for mystery"); n != 1 {
		t.Errorf("what is ignored is said %d times:\n%s", n, l.log)
	}
}

// commandExample is one line below an example of docs/commands.md: an agent, a command, and what becomes of it.
var commandExample = regexp.MustCompile("(?m)^- `(\\S+)` `(.*)` (runs|asks|is refused)$")

// TestCommandsPageIsTrue runs the examples of docs/commands.md.
func TestCommandsPageIsTrue(t *testing.T) {
	text, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]toolward.Verdict{"runs": toolward.Allow, "asks": toolward.Ask, "is refused": toolward.Deny}
	checked := 0
	for _, example := range strings.Split(string(text), "```jsonc\n")[1:] {
		source, below, _ := strings.Cut(example, "```")
		// What is true of the page must not depend on what this machine can confine.
		source = strings.Replace(source, "\"exec\": {\n", "\"exec\": {\n\"lightConfinement\": false,\n", 1)
		l := newLab(t, map[string]string{config.FileName: source}, nil)
		for name, content := range map[string]string{"notes.txt": "TODO\n"} {
			if err := os.WriteFile(filepath.Join(l.workspace, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range commandExample.FindAllStringSubmatch(below, -1) {
			checked++
			arguments, err := json.Marshal(map[string]string{"command": m[2]})
			if err != nil {
				t.Fatal(err)
			}
			trace := l.Explain(t.Context(), toolward.Call{
				Tool: "exec", Arguments: arguments, Session: toolward.SessionKey("agent:" + m[1] + ":x"), Surface: toolward.SurfaceMCP,
				WorkDir: l.workspace, Host: toolward.HostGateway, Caller: toolward.Caller{Agent: m[1], Context: "main", Workspace: l.workspace},
			}, toolward.ExplainOptions{})
			if trace.Verdict != words[m[3]] {
				t.Errorf("%s: %s: %+v", m[0], trace.Verdict, trace)
			}
		}
		l.Close()
	}
	if checked < 16 {
		t.Errorf("the page has %d commands", checked)
	}
}
