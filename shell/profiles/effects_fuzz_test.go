package profiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/shell"
)

// FuzzEffects gives programs any arguments: nothing may panic, and no effect may be without its object.
func FuzzEffects(f *testing.F) {
	files, _ := filepath.Glob("testdata/effects/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			command, _, found := strings.Cut(line, "=>")
			if c, err := shell.Analyze(strings.TrimSpace(command)); found && err == nil {
				f.Add(strings.Join(c.Segments[0].Argv(), "\x00"))
			}
		}
	}
	f.Fuzz(func(t *testing.T, joined string) {
		if len(joined) > 64<<10 {
			return
		}
		argv := strings.Split(joined, "\x00")
		effects, _ := Effects(argv[0], argv[1:])
		for _, e := range effects {
			if e.Kind == "" || e.Kind == shell.Runs && len(e.Argv) == 0 {
				t.Errorf("%q: %+v", argv, e)
			}
		}
	})
}

// TestHostileArgumentsAreReadFast has arguments of 64 KiB that are made to take long.
func TestHostileArgumentsAreReadFast(t *testing.T) {
	const size = 64 << 10
	repeated := func(s string) string { return strings.Repeat(s, size/len(s)) }
	words := func(s string) []string { return strings.Fields(repeated(s + " ")) }
	for name, argv := range map[string][]string{
		"sed brackets":          {"sed", repeated("/[")},
		"sed brackets in one":   {"sed", "s/" + repeated("[[:")},
		"sed files":             {"sed", repeated("w\n")},
		"sed names":             {"sed", repeated("wa\n")},
		"sed blocks":            {"sed", repeated("{")},
		"awk parentheses":       {"awk", "BEGIN{x=" + repeated("(")},
		"awk just not too long": {"awk", "BEGIN{x=" + strings.Repeat("(", maxAwkProgram-10)},
		"awk signs":             {"awk", "BEGIN{x=" + strings.Repeat("!", maxAwkProgram-10)},
		"awk brackets":          {"awk", strings.Repeat("[[", maxAwkProgram/2)},
		"awk regexes":           {"awk", strings.Repeat("/x/ ", maxAwkProgram/4)},
		"jq strings":            {"jq", repeated(`"\(`)},
		"jq keys":               {"jq", "{" + repeated("a , ")},
		"jq comments":           {"jq", repeated("#\n")},
		"yq":                    {"yq", repeated("env")},
		"long option":           {"rg", "--" + repeated("a")},
		"cluster":               {"cp", "-" + repeated("r")},
		"many options":          append([]string{"find"}, words("-delete")...),
		"many roots":            append(append([]string{"find"}, words("a")...), words("-delete")...),
		"many directories":      append([]string{"tar", "-c"}, words("-Ca b")...),
		"deep directories":      append([]string{"patch"}, words("-dabc")...),
		"many links":            append([]string{"grep"}, words("-R a")...),
		"many files":            append([]string{"cp"}, words("a")...),
		"many commands":         append([]string{"find", "."}, words("-exec a ;")...),
		"commands without end":  append([]string{"find", "."}, words("-exec a")...),
		"ps":                    append([]string{"ps"}, words("e")...),
		"test":                  append([]string{"test"}, words("-nt")...),
	} {
		start := time.Now()
		Effects(argv[0], argv[1:])
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s took %v", name, took)
		} else {
			t.Logf("%s: %v", name, took)
		}
	}
}
