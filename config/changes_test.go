package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	for _, tc := range []struct {
		name, from, to string
		want           []string
	}{
		{"nothing", `{}`, `{"teg": {"preset": "strict"}} // only spelled out`, nil},
		{"a value", `{}`, `{"teg": {"preset": "workspace"}}`, []string{"teg.preset: strict → workspace"}},
		{"a list", `{"tools": {"deny": ["exec"]}}`, `{"tools": {"deny": ["exec", "write"]}}`, []string{"tools.deny: [exec] → [exec write]"}},
		{"removed", `{"teg": {"tools": {"read": "blocked"}}}`, `{}`, []string{"teg.tools.read: blocked → not set"}},
		{"at start", `{}`, `{"server": {"listen": "127.0.0.1:9"}, "limits": {"tools": {"readLines": 5}, "pending": 9}}`, []string{
			"limits.pending: 500 → 9", "limits.tools.readLines: 2000 → 5 (from the next start)",
			"server.listen: 127.0.0.1:7411 → 127.0.0.1:9 (from the next start)",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from, err := Parse("f", []byte(tc.from))
			if err != nil {
				t.Fatal(err)
			}
			to, err := Parse("f", []byte(tc.to))
			if err != nil {
				t.Fatal(err)
			}
			changes, err := Changes(from, to)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				got = append(got, c.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAppliedSaysWhatNeedsARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	var last Event
	live, err := Open(t.Context(), path, Options{Memory: &memory{}, Apply: func(*Loaded) error { return nil }, Notify: func(e Event) { last = e }})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"bridge": {"attended": "client"}, "teg": {"preset": "workspace"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	live.Reload()
	if err := live.ApplyPending(live.Pending().Hash); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bridge.attended"}, last.Restart); diff != "" || last.Applied == nil {
		t.Error(diff)
	}
}

// The page tells people which settings need a new start.
func TestPageNamesSettingsOfTheStart(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(page), "## From the next start")
	for _, key := range atStart {
		if !found || !strings.Contains(list, "`"+strings.TrimSuffix(key, ".")) {
			t.Errorf("docs/configuration.md does not say that %s counts from the next start", key)
		}
	}
}
