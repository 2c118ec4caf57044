package live_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/internal/live/scriptedmodel"
)

// TestClaudeCodeUnseenOnTheMachine: what the real client's commands run on the machine without a person is kept from keys, from
// Toolward's own files and from other processes, and otherwise works as in the client's own shell.
func TestClaudeCodeUnseenOnTheMachine(t *testing.T) {
	t.Parallel()
	client := live.Need(t, claudeCode)
	live.Need(t, live.Program("make"))
	m := newDesk(t, codingAgent)
	m.project()
	m.write("Makefile", "steal:\n\t@cat $(HOME)/.ssh/id_rsa; ls "+m.State+"; ls -d /proc/[0-9]*/fd | wc -l; echo x >>$(HOME)/.claude/settings.json\n"+
		"where:\n\t@pwd; cat; echo said >&2; exit 7\n")
	m.install()
	settings, err := os.ReadFile(filepath.Join(m.Home, ".claude", "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	p := m.watches()
	p.allows("'/**/make'")
	model := m.claude(client, []scriptedmodel.Reply{
		{Calls: []scriptedmodel.ToolUse{bash("toolu_steal", "make -s steal")}},
		{Calls: []scriptedmodel.ToolUse{bash("toolu_move", "cd sub && ls")}},
		{Calls: []scriptedmodel.ToolUse{bash("toolu_moved", "pwd")}},
		{Calls: []scriptedmodel.ToolUse{bash("toolu_list", "cd .. && git status --short | wc -l && ls *.go")}},
		{Calls: []scriptedmodel.ToolUse{bash("toolu_status", "make -s where")}},
	})
	said := func(id string) string { r, _ := model.Result(id); return r.Text }
	if got := said("toolu_steal"); strings.Contains(got, "PRIVATE") || strings.Contains(got, "toolward.jsonc") || strings.Contains(got, "exec-approvals") {
		t.Errorf("unseen, it reached %q", got)
	}
	if now, err := os.ReadFile(filepath.Join(m.Home, ".claude", "settings.json")); err != nil || string(now) != string(settings) {
		t.Errorf("unseen, it wrote the client's settings: %v", err)
	}
	if got := said("toolu_moved"); strings.TrimSpace(got) != filepath.Join(m.Workspace, "sub") {
		t.Errorf("the client's shell is in %q", got)
	}
	if got := said("toolu_status"); !strings.Contains(got, m.Workspace+"\nsaid") || !strings.Contains(got, "Exit code 2") {
		t.Errorf("streams, status: %q", got)
	}
	if got := said("toolu_list"); !strings.Contains(got, "x.go") {
		t.Errorf("%q", got)
	}
	for id, r := range m.decisions(p.Terminal) {
		if r.Via != "exec-allowlist" {
			t.Errorf("%s was let through by %q", id, r.Via)
		}
	}
}
