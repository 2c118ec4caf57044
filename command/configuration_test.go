package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCheckReportsEverySection(t *testing.T) {
	config := Configuration{
		Gateway:         Config{Preset: "lax"},
		Agents:          map[string]Config{"coder": {Host: "moon"}},
		AgentElevated:   map[string]*ElevatedConfig{"coder": {AllowFrom: map[string][]string{"x": {""}}}, "other": nil},
		ElevatedDefault: "sometimes",
	}
	_, err := config.Check()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`tools.exec.preset: "lax"`, `agent coder: tools.exec.host: "moon"`, `agent coder: tools.elevated.allowFrom.x[0]: it is empty`,
		`agents.defaults.elevatedDefault: invalid level "sometimes"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

func TestWarningsSayWhoseTheyAre(t *testing.T) {
	loose := filepath.Join(t.TempDir(), "loose")
	if err := os.Mkdir(loose, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(loose, 0o777); err != nil { // not stopped by the umask
		t.Fatal(err)
	}
	config := Configuration{
		Gateway: Config{SafeBins: []string{"wc", "python3", "mystery"}, SafeBinProfiles: map[string]SafeBin{"sort": {}}},
		Agents:  map[string]Config{"coder": {SafeBinTrustedDirs: []string{loose}}, "same": {}},
	}
	warnings, err := config.Check()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	want := []string{
		"tools.exec.safeBins: python3 runs code that it is given: ignored without a profile in safeBinProfiles",
		"tools.exec.safeBins: there is no profile for mystery: ignored; write one in safeBinProfiles",
		"tools.exec.safeBinProfiles.sort: safeBins does not name it: the profile has no effect",
		"agent coder: tools.exec.safeBinTrustedDirs[0]: others can write to " + loose + ": what they put there would be trusted",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAlternativesAreAWordOrAList(t *testing.T) {
	var rule Rule
	const text = `{"prefix":["git",["push","pull"]],"decision":"prompt"}`
	if err := json.Unmarshal([]byte(text), &rule); err != nil {
		t.Fatal(err)
	}
	if len(rule.Prefix) != 2 || !slices.Equal(rule.Prefix[0], []string{"git"}) || !slices.Equal(rule.Prefix[1], []string{"push", "pull"}) {
		t.Errorf("read %q", rule.Prefix)
	}
	if back, err := json.Marshal(rule); err != nil || string(back) != text {
		t.Errorf("written %s, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"prefix":[3]}`), &rule); err == nil {
		t.Error("a number was taken for a word")
	}
}

func TestStricter(t *testing.T) {
	rule := func(decision Decision) []Rule {
		return []Rule{{Prefix: []Alternatives{{"git"}}, Decision: decision}}
	}
	loose := false
	for _, test := range []struct {
		name       string
		then, now  Config
		want, back bool // back: the other way round
	}{
		{"nothing", Config{}, Config{}, false, false},
		{"preset", Config{Preset: Developer}, Config{Preset: Strict}, true, false},
		{"host", Config{Host: HostGateway}, Config{Host: HostSandbox}, true, true},
		{"forbidden", Config{}, Config{Rules: rule(Forbidden)}, true, false},
		{"prompt", Config{}, Config{Rules: rule(Prompt)}, true, false},
		{"allow", Config{Rules: rule(Allow)}, Config{}, true, false},
		{"allow becomes prompt", Config{Rules: rule(Allow)}, Config{Rules: rule(Prompt)}, true, false},
		{"inline code", Config{StrictInlineEval: &loose}, Config{}, true, false},
		{"safe bins", Config{}, Config{SafeBins: []string{"wc"}}, true, false},
		{"safe bins as by default", Config{}, Config{SafeBins: DefaultSafeBins}, false, false},
		{"profile of a safe bin", Config{}, Config{SafeBinProfiles: map[string]SafeBin{"wc": {}}}, true, true},
		{"trusted directories", Config{SafeBinTrustedDirs: []string{"/opt"}}, Config{}, true, false},
	} {
		then, now := Configuration{Agents: map[string]Config{"a": test.then}}, Configuration{Agents: map[string]Config{"a": test.now}}
		if got := now.Stricter(&then, "A"); got != test.want {
			t.Errorf("%s: stricter %v", test.name, got)
		}
		if got := then.Stricter(&now, "A"); got != test.back {
			t.Errorf("%s, back: stricter %v", test.name, got)
		}
	}
	writes := Configuration{Writes: true}
	if plain := (Configuration{}); !plain.Stricter(&writes, "a") || writes.Stricter(&plain, "a") {
		t.Error("writing in the workspace is not compared")
	}
}
