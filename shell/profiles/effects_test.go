package profiles

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/shell"
)

// TestEffectsOfCommands reads testdata/effects/*.txt: a command line, "=>", and its effects. A directory in braces is
// the one that a path is below; "?" stands before what is only written if it lies in a directory.
func TestEffectsOfCommands(t *testing.T) {
	files, err := filepath.Glob("testdata/effects/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			command, want, found := strings.Cut(strings.TrimSpace(line), "=>")
			if !found {
				continue
			}
			if got := toldEffects(t, strings.TrimSpace(command)); got != strings.TrimSpace(want) {
				t.Errorf("%s:%d: %s\n got: %s\nwant: %s", file, n, command, got, strings.TrimSpace(want))
			}
		}
	}
}

// toldEffects writes down what the only program of a command line does.
func toldEffects(t *testing.T, command string) string {
	t.Helper()
	c, err := shell.Analyze(command)
	if err != nil || len(c.Segments) != 1 {
		t.Fatalf("%s: one command expected: %v", command, err)
	}
	var argv []string
	for _, w := range c.Segments[0].Words {
		argv = append(argv, w.Text)
	}
	effects, known := Effects(argv[0], argv[1:])
	if !known {
		return "no profile"
	}
	var told []string
	for _, e := range effects {
		text := e.String()
		if e.Dir != "" {
			text = "{" + e.Dir + "} " + text
		}
		if e.IfIn {
			text = "? " + text
		}
		if e.Kind == shell.Runs && e.Open {
			text += " …"
		}
		told = append(told, text)
	}
	if told == nil {
		return "nothing"
	}
	return strings.Join(told, ", ")
}

// What is beyond the bound must not be taken for harmless.
func TestEffectsAreBounded(t *testing.T) {
	argv := []string{"-cp", strings.Repeat("a:", 5000) + "b", "Main"}
	effects, _ := Effects("java", argv)
	if len(effects) > mostEffects+1 || !slices.ContainsFunc(effects, func(e shell.Effect) bool { return e.Kind == shell.Unknown }) {
		t.Errorf("%d effects, the last is %v", len(effects), effects[len(effects)-1])
	}
}
