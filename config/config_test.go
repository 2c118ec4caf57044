package config

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"

	"github.com/toolward/toolward/policy"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Every wrong file gives exactly the message of its golden file: place, value and remedy.
func TestWrongFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.jsonc")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse("toolward.jsonc", source, CheckPolicy(nil, policy.Surroundings{}), CheckPlugins([]string{"ours"}))
			if err == nil {
				t.Fatal("accepted")
			}
			got := err.Error() + "\n"
			golden := strings.TrimSuffix(path, ".jsonc") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestNoFileGivesDefaults(t *testing.T) {
	loaded, err := Load(filepath.Join(t.TempDir(), FileName), CheckPolicy(nil, policy.Surroundings{}))
	if err != nil {
		t.Fatal(err)
	}
	f := loaded.File
	if f.Server.Listen != "127.0.0.1:7411" || f.TEG.Preset != "strict" || f.Config.AutoApply || f.Limits.Pending != 500 {
		t.Errorf("defaults: %+v", f)
	}
}

func TestEmptyAndCommentOnlyFiles(t *testing.T) {
	if _, err := Parse("f", []byte("{}")); err != nil {
		t.Error(err)
	}
	if _, err := Parse("f", []byte("// nothing\n")); err == nil {
		t.Error("a file without a value was accepted")
	}
}

func TestShowNamesTheSource(t *testing.T) {
	loaded, err := Parse("f", []byte(`{"tools": {"deny": ["exec"]}, "agents": {"list": [{"id": "coder"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	leaves, err := loaded.Show()
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, l := range leaves {
		sources[l.Key] = l.Source
	}
	for key, want := range map[string]string{"tools.deny": "file", "agents.list[0].id": "file", "teg.preset": "default", "limits.pending": "default"} {
		if sources[key] != want {
			t.Errorf("%s comes from %q, want %q", key, sources[key], want)
		}
	}
}

func TestSetKeepsComments(t *testing.T) {
	source := "{\n  // why we deny\n  \"tools\": {\"deny\": [\"exec\"]}, // here\n}\n"
	out, err := Set([]byte(source), "teg.preset", "workspace")
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []string{"// why we deny", "// here", `"exec"`, `"preset": "workspace"`} {
		if !strings.Contains(string(out), keep) {
			t.Errorf("%q is gone:\n%s", keep, out)
		}
	}
	loaded, err := Parse("f", out)
	if err != nil || loaded.File.TEG.Preset != "workspace" {
		t.Errorf("preset %q, error %v", loaded.File.TEG.Preset, err)
	}
	if out, err = Set(nil, "limits.tools.readLines", 10); err != nil {
		t.Fatal(err)
	}
	if loaded, err = Parse("f", out); err != nil || loaded.File.Limits.Tools.ReadLines != 10 {
		t.Errorf("from an empty file: %s %v", out, err)
	}
}

// The schema for editors accepts what the program accepts, and refuses unknown keys as the program does.
func TestSchemaAgrees(t *testing.T) {
	raw, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("config.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"tools": {"deny": ["exec"]}, "teg": {"preset": "workspace", "audit": {"retainDays": 5}}}`:                                                                  true,
		`{"agents": {"list": [{"id": "a", "workspace": "/w"}]}}`:                                                                                                     true,
		`{"limits": {"pending": 5, "tools": {"readLines": 4}}}`:                                                                                                      true,
		`{"agents": {"defaults": {"sandbox": {"mode": "all", "limits": {"memory": 5}, "docker": {"memory": "2g", "ulimits": {"core": 0, "nofile": {"soft": 1}}}}}}}`: true,
		`{"agents": {"defaults": {"sandbox": {"docker": {"privileged": true}}}}}`:                                                                                    false,
		`{"agents": {"defaults": {"sandbox": {"docker": {"memory": true}}}}}`:                                                                                        false,
		`{"agents": {"defaults": {"sandbox": {"docker": {"ulimits": {"core": []}}}}}}`:                                                                               false,
		`{"agents": {"list": [{"id": "a", "sandbox": {"allowAgentLoosening": true}}]}}`:                                                                              false,
		`{"firewall": true}`:             false,
		`{"tools": {"denny": []}}`:       false,
		`{"tools": {"deny": "exec"}}`:    false,
		`{"config": {"autoApply": "x"}}`: false,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		_, parseErr := Parse("f", []byte(text), CheckSandbox(settings.Surroundings{}))
		if got := schema.Validate(value) == nil; got != want || (parseErr == nil) != want {
			t.Errorf("%s: schema %v, program %v, want %v", text, got, parseErr, want)
		}
	}
}

func TestLiveKeepsTheOldOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var events []Event
	applied := 0
	live, err := Open(t.Context(), path, Options{
		Memory: &memory{},
		Apply:  func(*Loaded) error { applied++; return nil },
		Notify: func(e Event) { events = append(events, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	write(`{"tools": {"deny": ["exec"]}, "config": {"autoApply": true}}`)
	live.Reload()
	if live.Pending() == nil || len(live.Current().File.Tools.Deny) != 0 || applied != 1 {
		t.Fatalf("a changed file took effect by itself: a file cannot permit itself (%d applied)", applied)
	}
	shown := live.Pending().Hash
	write(`{"tools": {"deny": []}}`)
	live.Reload()
	if err := live.ApplyPending(shown); !errors.Is(err, ErrNotPending) {
		t.Errorf("the file that was shown is gone, but applying it says %v", err)
	}
	write(`{"tools": {"deny": [exec]}}`)
	live.Reload()
	if live.Pending() != nil || events[len(events)-1].Err == nil {
		t.Error("a wrong file waits for approval")
	}
	write(`{"tools": {"deny": ["exec"]}}`)
	live.Reload()
	if err := live.ApplyPending(live.Pending().Hash); err != nil || live.Current().File.Tools.Deny[0] != "exec" {
		t.Errorf("apply: %v", err)
	}
}

// What does not fit the screen cannot have been read: a setting must not be applied behind a long comment.
func TestAChangeThatCannotBeShownIsNotApplied(t *testing.T) {
	for name, comment := range map[string]string{
		"many bytes": "// " + strings.Repeat("x", maxDifference) + "\n",
		"many lines": strings.Repeat("//\n", maxShownLines+1),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			live, err := Open(t.Context(), path, Options{Memory: &memory{}, Apply: func(*Loaded) error { return nil }})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(comment+`{"teg": {"preset": "workspace"}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			live.Reload()
			if err := live.ApplyPending(live.Pending().Hash); !errors.Is(err, ErrTooLong) || live.Current().File.TEG.Preset != "strict" {
				t.Errorf("%v, preset %s", err, live.Current().File.TEG.Preset)
			}
		})
	}
}

func TestWatchSeesReplacedFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	seen := make(chan Event, 10)
	live, err := Open(t.Context(), path, Options{Memory: &memory{}, Apply: func(*Loaded) error { return nil }, Notify: func(e Event) { seen <- e }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- live.Watch(ctx) }()
	deadline := time.After(time.Minute)
	for i := 0; ; i++ { // the watch may not stand yet: change until it is seen
		next := filepath.Join(dir, "new")
		if err := os.WriteFile(next, []byte(`{"tools": {"deny": ["exec"]}} // `+strings.Repeat("x", i)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-seen:
			if e.Pending == nil {
				t.Errorf("event %+v", e)
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			return
		case <-time.After(300 * time.Millisecond):
		case <-deadline:
			t.Fatal("the change was never seen")
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"tools":{"deny":["exec"]}}`, `{"agents":{"list":[{"id":"a"}]}}`, "{/*", `{"a":[[[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		loaded, err := Parse("f", source)
		if (loaded == nil) == (err == nil) {
			t.Fatal("neither a configuration nor an error")
		}
		if err == nil && len(source) > 0 {
			if _, err := hujson.Parse(source); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// memory remembers what was in force, in place of the store.
type memory struct {
	source []byte
	known  bool
}

func (m *memory) LastApplied(context.Context) ([]byte, bool, error) { return m.source, m.known, nil }

func (m *memory) RememberApplied(_ context.Context, source []byte) error {
	m.source, m.known = source, true
	return nil
}

// A change made while nothing runs waits like any other: else stopping the daemon would be a way to apply it.
func TestAChangeMadeWhileStoppedWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := &memory{}
	start := func() *Live {
		live, err := Open(t.Context(), path, Options{Memory: store, Apply: func(*Loaded) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		return live
	}
	write(`{"tools": {"deny": ["exec"]}}`)
	if live := start(); live.Pending() != nil || len(live.Current().File.Tools.Deny) != 1 {
		t.Fatal("the file of the first start does not count")
	}
	write(`{"config": {"autoApply": true}}`)
	live := start()
	if live.Pending() == nil || len(live.Current().File.Tools.Deny) != 1 {
		t.Fatal("a file that was changed while nothing ran took effect")
	}
	if err := live.ApplyPending(live.Pending().Hash); err != nil {
		t.Fatal(err)
	}
	if live := start(); live.Pending() != nil || !live.Current().File.Config.AutoApply {
		t.Error("what a person applied is forgotten")
	}
	write(`{"tools": {"deny": ["read"]}, "config": {"autoApply": true}}`)
	if live := start(); live.Pending() != nil || live.Current().File.Tools.Deny[0] != "read" {
		t.Error("autoApply that a person applied does not count at start")
	}
}

// TestNothingKnownOfWhatWasInForce: what was remembered no longer parses, because another version finds fault with it or somebody
// exchanged it. The file at hand then waits as any other change.
func TestNothingKnownOfWhatWasInForce(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(path, []byte(`{"config": {"autoApply": true}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{`{"no": 1}`, `{"config": {"autoApply": "yes"}}`, `{`} {
		force, pending, err := InForce(t.Context(), path, &memory{[]byte(source), true})
		if err != nil || pending == nil || force.File.Config.AutoApply {
			t.Errorf("%s: in force %+v, waiting %v, %v", source, force, pending, err)
		}
	}
}
