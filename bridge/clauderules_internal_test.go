package bridge

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward"
)

func TestOwnRules(t *testing.T) {
	home := t.TempDir()
	l := &factsFinder{managed: filepath.Join(home, "managed.json"), project: home, config: filepath.Join(home, "user")}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const deny, ask = "deny", "ask"
	effect := func(command string) string {
		facts := toolward.Facts{Command: command}
		l.lookAtOwnRules(&facts)
		if len(facts.Findings) == 0 {
			return ""
		}
		return map[toolward.Effect]string{toolward.EffectDeny: deny, toolward.EffectAsk: ask}[facts.Findings[0].Effect]
	}
	if got := effect("rm x"); got != "" {
		t.Errorf("without settings: %q", got)
	}
	write("user/settings.json", `{"permissions": {"deny": ["Bash(rm:*)", "Bash(curl *)", "Read(./x)", "Bash(make exactly)"], "ask": ["Bash(git push:*)"]}}`)
	write(".claude/settings.json", `{"permissions": {"deny": ["Bash(*--force*)"]}}`)
	for command, want := range map[string]string{
		"rm x": deny, "rm": deny, "ls && rm -rf x": deny, "(cd a; rm b)": deny,
		"A=1 rm x": deny, "curl http://x": deny, "make exactly": deny, "x --force y": deny,
		"ls\nrm x": deny, "git push origin": ask,
		"rmdir x": "", "make exactly not": "", "git pull": "", "echo curl": "", "curl": "",
	} {
		if got := effect(command); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	write(".claude/settings.local.json", `{"permissions": {"deny": ["Bash(dd:*)"], "Deny": []}, "Permissions": {"deny": []}}`)
	if got := effect("dd of=x"); got != deny {
		t.Errorf("a rule that a name in other letters stands beside: %q", got)
	}
	write(".claude/settings.local.json", "{ broken")
	if got := effect("ls"); got != ask {
		t.Errorf("with settings that cannot be read: %q", got)
	}
}
