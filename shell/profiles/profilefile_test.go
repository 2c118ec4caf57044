package profiles

import (
	"slices"
	"strings"
	"testing"
)

// effectsBy gives the effects of a command line by a profile that is written for the test.
func effectsBy(t *testing.T, profile, line string) (texts []string) {
	t.Helper()
	parsed, err := parseProfiles("test.txt", profile)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range parsed[0].Effects(strings.Fields(line)) {
		texts = append(texts, e.String())
	}
	return texts
}

func TestScriptsAndTheirArguments(t *testing.T) {
	const profile = `program run
flags -v
value -o : writes
ends -- -args --args -z : environment
operands script args*`
	for line, want := range map[string][]string{
		"":                  nil,
		"-v app -o x -q":    {"project", "enters app"},
		"-o x app":          {"writes x (-o)", "project", "enters app"},
		"-v --args -q -o x": {"environment (--args)"},
		"--args=3":          {"unknown (--args=3)"},
		"-vz app":           {"environment (-z)"},
		"-zv":               {"environment (-z)", "unknown (-zv)"},
		"-q app":            {"unknown (-q)", "project", "enters app"},
	} {
		if got := effectsBy(t, profile, line); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestOptionsThatAreBeginningsOfWords(t *testing.T) {
	const profile = `program cc
style single
flags -v
flags -W*
flags -Wl,* : unknown
value -o* -o : writes
operands reads*`
	for line, want := range map[string][]string{
		"-Wall -W -v f":  {"reads f"},
		"-Wl,-x":         {"unknown (-Wl,*)"},
		"-oa":            {"writes a (-o*)"},
		"-o a":           {"writes a (-o)"},
		"-V":             {"unknown (-V)"},
		"-v=1 -Wa=b -o=": {"unknown (-v=1)", "writes (-o)"},
	} {
		if got := effectsBy(t, profile, line); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestAnyOtherSubcommand(t *testing.T) {
	const profile = `program yarn
flags -v
command add
does network
command mod tidy
command test
does project
operands args*
command *
does project
operands text args*`
	for line, want := range map[string][]string{
		"add":         {"network"},
		"-v build -x": {"project"},
		"test -x":     {"project"},
		"mod":         {"unknown (mod)", "unknown (mod)"},
		"mod tidy":    nil,
		"-q":          {"unknown (-q)"},
	} {
		if got := effectsBy(t, profile, line); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
