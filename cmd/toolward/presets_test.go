package main

import (
	"strings"
	"testing"

	"github.com/toolward/toolward/config"
)

func TestPresetsAreAskedFor(t *testing.T) {
	for typed, want := range map[string]config.Presets{
		"workspace\ndeveloper\n": {Files: "workspace", Commands: "developer"},
		"\n\n":                   {Files: "workspace", Commands: "developer"},
		"keep\ndeveloper\n":      {Files: "", Commands: "developer"},
		"strict\n":               {Files: "strict", Commands: ""},
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
