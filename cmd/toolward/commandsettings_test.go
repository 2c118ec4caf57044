package main

import (
	"os"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
)

func (l *lab) explained(t *testing.T, command string) toolward.Verdict {
	t.Helper()
	return l.gateway.Explain(t.Context(), toolward.Call{
		Tool: "exec", Arguments: []byte(`{"command":"` + command + `"}`), Session: "agent:coder:x", Surface: toolward.SurfaceMCP,
		WorkDir: l.workspace, Host: toolward.HostGateway, Caller: toolward.Caller{Agent: "coder", Context: "main", Workspace: l.workspace},
	}, toolward.ExplainOptions{}).Verdict
}

// A changed section counts for the next command, a wrong one changes nothing, and what is ignored is said once.
func TestCommandSettingsCountAtOnce(t *testing.T) {
	l := newLab(t, map[string]string{config.FileName: `{"config": {"autoApply": true}}`}, nil)
	defer l.close()
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
