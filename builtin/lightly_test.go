package builtin

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/sandbox/light"
)

// confiner notes what it was asked to confine, and starts nothing elsewhere.
type confiner struct {
	check  light.Check
	scenes []*light.Scene
	err    error
}

func (c *confiner) Check() light.Check { return c.check }

func (c *confiner) Confine(_ *job.Plan, scene *light.Scene) error {
	c.scenes = append(c.scenes, scene)
	return c.err
}

// What no person saw in this form is confined; what a person answered, or wrote down word by word, is not.
func TestWhatIsConfined(t *testing.T) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip(err)
	}
	everything, exactly := toolward.CommandEntry{Pattern: cat}, toolward.CommandEntry{Pattern: cat, Argv: []string{cat, "a.txt"}}
	for name, c := range map[string]struct {
		command  string
		seen     bool
		entries  []toolward.CommandEntry
		confined bool
	}{
		"preset":             {"cat a.txt", false, nil, true},
		"answered":           {"cat a.txt", true, nil, false},
		"entry for more":     {"cat a.txt", false, []toolward.CommandEntry{everything}, true},
		"entry word by word": {"cat a.txt", false, []toolward.CommandEntry{exactly}, false},
		"half word by word":  {"cat a.txt; ls", false, []toolward.CommandEntry{exactly}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			fake := &confiner{check: light.Check{Mode: light.Namespaces}}
			w.box.deps.Light = fake
			w.put("ws/a.txt", "x")
			if _, err := w.commands.Configure(command.Configuration{Gateway: command.Config{Preset: command.Developer}, Writes: true}); err != nil {
				t.Fatal(err)
			}
			if err := w.commands.Allow(t.Context(), w.agent, c.entries); err != nil {
				t.Fatal(err)
			}
			r := w.facts("exec", args{"command": c.command})
			r.Seen = c.seen
			w.finish(r)
			if got := len(fake.scenes) == 1; got != c.confined {
				t.Errorf("confined: %v, want %v", got, c.confined)
			}
		})
	}
}

// A confinement that cannot be made starts nothing.
func TestNothingStartsUnconfined(t *testing.T) {
	w := newWorld(t)
	w.box.deps.Light = &confiner{check: light.Check{Mode: light.Namespaces}, err: errors.New("no more namespaces")}
	w.finish(w.facts("exec", args{"command": "touch made"}))
	if _, err := os.Stat(w.workspace + "/made"); err == nil {
		t.Error("the command ran")
	}
}

// Where nothing can be confined, and where a program works only unconfined, people are asked and told why.
func TestWhatCannotBeConfinedAsks(t *testing.T) {
	for name, c := range map[string]struct {
		mode    light.Mode
		command string
		asks    bool
	}{
		"namespaces": {light.Namespaces, "cat a.txt", false}, "landlock": {light.Landlock, "cat a.txt", false},
		"nothing": {light.None, "cat a.txt", true}, "another user": {light.Namespaces, "env mount", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.box.deps.Light = &confiner{check: light.Check{Mode: c.mode, Found: "user namespaces are off", Fix: "switch them on"}}
			w.put("ws/a.txt", "x")
			facts := w.facts("exec", args{"command": c.command}).Facts
			asks := slices.ContainsFunc(facts.Findings, func(f toolward.Finding) bool {
				return f.Code == "command_unconfined" && f.Effect == toolward.EffectAsk && f.Detail != ""
			})
			if asks != c.asks {
				t.Errorf("asks: %v, want %v: %+v", asks, c.asks, facts.Findings)
			}
		})
	}
}
