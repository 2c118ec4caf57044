package config

import (
	"strings"
	"testing"

	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/sandbox/settings"
)

// What is chosen counts for the agent alone, whatever stands in the file, and the rest of the file stays.
func TestPresetsAreWritten(t *testing.T) {
	both := Presets{Files: "workspace", Commands: "developer"}
	for _, test := range []struct {
		name, source string
		chosen       Presets
		said         int
	}{
		{"no file", "", both, 4},
		{"other agents", "{\n  // mine\n  \"agents\": { \"list\": [{ \"id\": \"reader\" }] },\n}\n", both, 4},
		{"the agent has an entry", `{"agents": {"list": [{"id": "reader"}, {"id": "Claude-Code", "workspace": "/w"}]}}`, both, 4},
		{"already so for all", `{"tools": {"exec": {"preset": "developer"}}, "teg": {"preset": "workspace"}}`, both, 2},
		{"already so, and somebody has struck out packs", `{"agents": {"list": [{"id": "claude-code", "tools": {"exec": {"preset": "developer"}}, "sandbox": {"egress": {"packs": []}}}]}, "teg": {"preset": "workspace"}}`, both, 0},
		{"no network for anybody", `{"agents": {"defaults": {"sandbox": {"network": "none"}}}}`, both, 2},
		{"back to strict", `{"tools": {"exec": {"preset": "developer"}}}`, Presets{Commands: "strict"}, 1},
		{"nothing chosen", `{}`, Presets{}, 0},
	} {
		parsed, err := Parse("toolward.jsonc", []byte(test.source))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		before := parsed.File
		changed, said, err := test.chosen.Write([]byte(test.source), &before, "claude-code")
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		loaded, err := Parse("f", changed, CheckPolicy(nil, policy.Surroundings{}))
		if err != nil {
			t.Fatalf("%s: %v\n%s", test.name, err, changed)
		}
		was, is := before.Commands(), loaded.File.Commands()
		if want := command.Preset(test.chosen.Commands); want != "" && is.For("claude-code").Preset != want {
			t.Errorf("%s: the agent's preset is %q", test.name, is.For("claude-code").Preset)
		}
		if is.For("reader").Preset != was.For("reader").Preset || len(said) != test.said || test.said == 0 && string(changed) != test.source {
			t.Errorf("%s: said %q\n%s", test.name, said, changed)
		}
		compiled, problems := settings.Compile(loaded.File.Sandbox(), settings.Surroundings{StateDir: "/nowhere"})
		reach, anyone := compiled.For("claude-code").Reach(), compiled.For("reader").Reach()
		if fetches := test.said > 2 || test.name == "already so for all"; len(problems) > 0 || (reach.Listed("proxy.golang.org", 443) != "") != fetches || anyone.Listed("proxy.golang.org", 443) != "" {
			t.Errorf("%s: %v\n%s", test.name, problems, changed)
		}
		if test.chosen.Files != "" && loaded.File.TEG.Preset != policy.PresetWorkspace {
			t.Errorf("%s: teg.preset is %q", test.name, loaded.File.TEG.Preset)
		}
		if strings.Contains(test.source, "// mine") && !strings.Contains(string(changed), "// mine") {
			t.Errorf("%s: a comment is gone", test.name)
		}
	}
}
