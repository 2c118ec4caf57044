package profiles

import (
	"path"
	"strings"
	"testing"

	"github.com/toolward/toolward/shell"
)

// commandEffects gives the effects of one command line, and its words.
func commandEffects(t *testing.T, line string) []shell.Effect {
	t.Helper()
	c, err := shell.Analyze(line)
	if err != nil || len(c.Segments) != 1 {
		t.Fatalf("%s: %v", line, err)
	}
	argv := c.Segments[0].Argv()
	effects, known := Effects(argv[0], argv[1:])
	if !known {
		t.Fatalf("%s: there is no profile", line)
	}
	return effects
}

func commandLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// asks reports whether an effect is one that no preset lets pass: what is not understood, what lasts, what is shown of
// the environment, and what lies outside the directory.
func asks(e shell.Effect) bool {
	switch e.Kind {
	case shell.Reads, shell.Writes, shell.Enters:
		place := path.Join("/ws/project", e.Dir, e.Path)
		if path.IsAbs(e.Path) {
			place = path.Clean(e.Path)
		}
		return place != "/ws/project" && !strings.HasPrefix(place, "/ws/project/")
	case shell.Project:
		return false
	case shell.Network:
		return e.Host != ""
	}
	return true
}

// testHarmless wants commands that only read, write in place, run the project's code and talk to its hosts.
func testHarmless(t *testing.T, lines string) {
	t.Helper()
	for _, line := range commandLines(lines) {
		for _, e := range commandEffects(t, line) {
			if asks(e) {
				t.Errorf("%s: %s", line, e)
			}
		}
	}
}

// testAsking wants commands of which at least one effect asks.
func testAsking(t *testing.T, lines string) {
	t.Helper()
next:
	for _, line := range commandLines(lines) {
		effects := commandEffects(t, line)
		for _, e := range effects {
			if asks(e) {
				continue next
			}
		}
		t.Errorf("%s: nothing asks: %v", line, effects)
	}
}

// testExact wants exactly these effects: "command → effect; effect".
func testExact(t *testing.T, lines string) {
	t.Helper()
	for _, line := range commandLines(lines) {
		line, want, _ := strings.Cut(line, " → ")
		var texts []string
		for _, e := range commandEffects(t, line) {
			texts = append(texts, e.String())
		}
		if got := strings.Join(texts, "; "); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
