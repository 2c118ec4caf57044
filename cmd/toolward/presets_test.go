package main

import (
	"strings"
	"testing"

	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
)

// What is chosen counts for the agent alone, whatever stands in the file, and the rest of the file stays.
func TestPresetsAreWritten(t *testing.T) {
	both := presets{files: "workspace", commands: "developer"}
	for _, test := range []struct {
		name, source string
		chosen       presets
		said         int
	}{
		{"no file", "", both, 2},
		{"other agents", "{\n  // mine\n  \"agents\": { \"list\": [{ \"id\": \"reader\" }] },\n}\n", both, 2},
		{"the agent has an entry", `{"agents": {"list": [{"id": "reader"}, {"id": "Claude-Code", "workspace": "/w"}]}}`, both, 2},
		{"already so for all", `{"tools": {"exec": {"preset": "developer"}}, "teg": {"preset": "workspace"}}`, both, 0},
		{"back to strict", `{"tools": {"exec": {"preset": "developer"}}}`, presets{commands: "strict"}, 1},
		{"nothing chosen", `{}`, presets{}, 0},
	} {
		parsed, err := config.Parse("toolward.jsonc", []byte(test.source))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		before := parsed.File
		changed, said, err := test.chosen.write([]byte(test.source), &before, "claude-code")
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		loaded, err := config.Parse("f", changed, config.CheckPolicy(nil, policy.Surroundings{}))
		if err != nil {
			t.Fatalf("%s: %v\n%s", test.name, err, changed)
		}
		was, is := before.Commands(), loaded.File.Commands()
		if want := command.Preset(test.chosen.commands); want != "" && is.For("claude-code").Preset != want {
			t.Errorf("%s: the agent's preset is %q", test.name, is.For("claude-code").Preset)
		}
		if is.For("reader").Preset != was.For("reader").Preset || len(said) != test.said || test.said == 0 && string(changed) != test.source {
			t.Errorf("%s: said %q\n%s", test.name, said, changed)
		}
		if test.chosen.files != "" && loaded.File.TEG.Preset != policy.PresetWorkspace {
			t.Errorf("%s: teg.preset is %q", test.name, loaded.File.TEG.Preset)
		}
		if strings.Contains(test.source, "// mine") && !strings.Contains(string(changed), "// mine") {
			t.Errorf("%s: a comment is gone", test.name)
		}
	}
}

func TestPresetsAreAskedFor(t *testing.T) {
	for typed, want := range map[string]presets{
		"workspace\ndeveloper\n": {"workspace", "developer"},
		"\ndeveloper\n":          {"", "developer"},
		"strict\n":               {"strict", ""},
		"loose\nfull\n":          {},
		"":                       {},
	} {
		var shown strings.Builder
		inv := &invocation{stdin: strings.NewReader(typed), stdout: &shown, stderr: &shown}
		if got := askPresets(inv); got != want {
			t.Errorf("%q: %+v, want %+v", typed, got, want)
		}
		if !strings.Contains(shown.String(), "Commands of this agent") {
			t.Errorf("asked %q", shown.String())
		}
	}
}
