package importer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/place"
)

// TestSettingsOfClientsAreGuarded: what a client obeys may not be ordinary to the gate, or an agent that may write the project writes its own
// permissions. The list is the importers' own: a file that one of them learns of fails here until the table of places knows it.
func TestSettingsOfClientsAreGuarded(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "src", "shop")
	if err := os.MkdirAll(filepath.Join(project, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	places, err := place.New(place.Layout{
		Workspace: project, Home: home, StateDir: filepath.Join(home, ".toolward"), ConfigFile: filepath.Join(home, ".toolward", "toolward.jsonc"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for product, read := range map[string]func(*reader, Where) error{OpenClaw: readOpenClaw, ClaudeCode: readClaudeCode, Codex: readCodex, Gemini: readGemini} {
		r := &reader{plan: &Plan{Product: product}, agent: product}
		for _, path := range []string{"", project} {
			if err := read(r, Where{Home: home, System: "/etc", Path: path}); err != nil {
				t.Fatal(err)
			}
		}
		looked := 0
		for _, file := range r.looked {
			if !strings.HasPrefix(file, home) || filepath.Dir(file) == project && filepath.Base(file)[0] != '.' {
				continue // of the machine, which its owner guards; or it would be obeyed if the directory were the product's own
			}
			looked++
			if zone := places.Classify(file); zone >= place.Outside {
				t.Errorf("%s obeys %s, and it is %s", product, strings.TrimPrefix(file, home), zone)
			}
		}
		if looked == 0 {
			t.Errorf("%s: no settings were looked for", product)
		}
	}
}

// TestInstructionsOfClientsAreGuarded: what clients read as their instructions in a project, by the documents of each, at its top and in
// any directory below.
func TestInstructionsOfClientsAreGuarded(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "src", "shop")
	places, err := place.New(place.Layout{
		Workspace: project, Home: home, StateDir: filepath.Join(home, ".toolward"), ConfigFile: filepath.Join(home, ".toolward", "toolward.jsonc"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for client, files := range map[string]string{
		ClaudeCode: "CLAUDE.md CLAUDE.local.md .claude/CLAUDE.md .claude/rules/x.md .claude/agents/x.md .claude/commands/x.md .claude/skills/x/SKILL.md",
		Codex:      "AGENTS.md AGENTS.override.md .codex/config.toml",
		Gemini:     "GEMINI.md .gemini/settings.json .gemini/commands/x.toml",
		OpenClaw:   "AGENTS.md SOUL.md TOOLS.md IDENTITY.md USER.md HEARTBEAT.md BOOTSTRAP.md",
		"others":   ".github/copilot-instructions.md .cursorrules .cursor/rules/x.mdc .windsurfrules .clinerules opencode.json .opencode/agent/x.md .qwen/settings.json QWEN.md",
	} {
		for file := range strings.FieldsSeq(files) {
			for _, dir := range []string{"", "web/deep"} {
				if zone := places.Classify(filepath.Join(project, dir, file)); zone >= place.Outside {
					t.Errorf("%s obeys %s, and it is %s", client, filepath.Join(dir, file), zone)
				}
			}
		}
	}
}
