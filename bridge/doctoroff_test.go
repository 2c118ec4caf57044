package bridge_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/bridge"
)

// What has the client start without the hooks of a person's settings is a hole, wherever it comes from, and none under managed ones.
func TestDoctorSeesHooksThatAreSwitchedOff(t *testing.T) {
	for _, test := range []struct {
		name       string
		variable   string // of the environment, with its value
		file, text string // below the home directory
		off        bool
		has        string
	}{
		{name: "nothing"},
		{name: "a variable", variable: "CLAUDE_CODE_SIMPLE=1", off: true, has: "CLAUDE_CODE_SIMPLE"},
		{name: "another", variable: "CLAUDE_CODE_SAFE_MODE=true", off: true},
		{name: "a variable that says no", variable: "CLAUDE_CODE_SIMPLE=0"},
		{name: "exported at each start", file: ".bashrc", text: "export A=1\nexport CLAUDE_CODE_SIMPLE=1\n", off: true, has: ".bashrc"},
		{name: "fish", file: ".config/fish/conf.d/a.fish", text: "set -gx CLAUDE_CODE_SAFE_MODE 1\n", off: true, has: "a.fish"},
		{name: "a comment", file: ".bashrc", text: "  # export CLAUDE_CODE_SIMPLE=1\n"},
		{name: "switched on again", file: ".zshenv", text: "export CLAUDE_CODE_SIMPLE=0\n"},
		{name: "an abbreviation", file: ".bash_aliases", text: "alias claude='claude --bare'\n", off: true, has: "--bare"},
		{name: "a function", file: ".zshrc", text: "c() { claude --model x --setting-sources project \"$@\"; }\n", off: true},
		{name: "other flags", file: ".zshrc", text: "alias c='claude --model x'; alias b='ls --bare'\n"},
		{name: "settings elsewhere", file: ".profile", text: "export CLAUDE_CONFIG_DIR=$HOME/elsewhere\n", off: true, has: "CLAUDE_CONFIG_DIR"},
		{name: "settings where they are", file: ".profile", text: "export CLAUDE_CONFIG_DIR=~/.claude\n"},
	} {
		for _, managed := range []bool{false, true} {
			r := newRig(t, 0)
			setup := r.setup()
			if managed {
				setup.Scope = bridge.ScopeManaged
			}
			plan, err := bridge.PlanInstall(setup)
			apply(t, plan, err)
			if test.file != "" {
				at := filepath.Join(r.home, test.file)
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, at, test.text, 0o600)
			}
			setup.Getenv = func(name string) string {
				is, value, _ := strings.Cut(test.variable, "=")
				if is == name {
					return value
				}
				return ""
			}
			checks := bridge.Doctor(t.Context(), setup)
			at := slices.IndexFunc(checks, func(c bridge.Check) bool { return c.Name == "shadow" && c.State == bridge.Failed })
			if off := at >= 0; off != (test.off && !managed) || off && !strings.Contains(checks[at].Text, test.has) {
				t.Errorf("%s, managed %v: %+v", test.name, managed, checks)
			}
		}
	}
}
