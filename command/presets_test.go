package command

import (
	"path"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
)

// The presets that commands of a review are tried under: what "install" proposes, the same with a workspace that may be written, and
// no preset but entries that people answer "always" with, for programs that read.
var presetsTried = map[string]Policy{
	"developer": onMiss(Developer),
	"workspace": {Preset: Developer, Writes: true},
	"strict":    {Preset: Strict, Entries: readers("grep find cat ls git cp tar diff rg xargs awk strings zip sort jq head wc ps docker npm ssh-keygen")},
}

func readers(programs string) (entries []allowlist.Listed) {
	for name := range strings.FieldsSeq(programs) {
		entries = append(entries, allowlist.Listed{Entry: allowlist.Entry{Pattern: "/usr/bin/" + name, Effects: []string{allowlist.EffectRead}}})
	}
	return entries
}

// asks tries commands under all presets: each must ask under each.
func (w *world) asks(t *testing.T, commands ...string) {
	t.Helper()
	w.install(commands...)
	for preset, policy := range presetsTried {
		for _, command := range commands {
			if a := w.evaluate(t, policy, command); verdict(a) != toolward.Ask {
				t.Errorf("%s: %s is allowed", preset, command)
			}
		}
	}
}

// runs tries commands under the presets of developers: none asks.
func (w *world) runs(t *testing.T, commands ...string) {
	t.Helper()
	w.install(commands...)
	for _, command := range commands {
		for _, preset := range []string{"developer", "workspace"} {
			if a := w.evaluate(t, presetsTried[preset], command); verdict(a) != toolward.Allow {
				t.Errorf("%s: %s asks: %v %v %s", preset, command, codes(a), a.Findings, a.Reason)
			}
		}
	}
}

// install puts a program behind every word that could be the name of one.
func (w *world) install(commands ...string) {
	for _, command := range commands {
		for word := range strings.FieldsSeq(command) {
			if p := "/usr/bin/" + path.Base(word); strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && w.files[p] == "" {
				w.files[p] = "x"
			}
		}
	}
}
