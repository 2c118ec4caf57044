package profiles

import (
	"slices"
	"testing"
)

// effectsOf gives the effects of a command line as people read them.
func effectsOf(t *testing.T, argv ...string) []string {
	t.Helper()
	effects, known := Effects(argv[0], argv[1:])
	if !known {
		return []string{"no profile"}
	}
	var texts []string
	for _, e := range effects {
		texts = append(texts, e.String())
	}
	return texts
}

func TestEffects(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want []string
	}{
		{[]string{"cat", "-n", "a", "-", "--", "-b"}, []string{"reads a", "reads -b"}},
		{[]string{"cat", "--show-al", "a"}, []string{"unknown (--show-al)", "reads a"}},
		{[]string{"head", "-20", "f"}, []string{"reads f"}},
		{[]string{"head", "-qn5", "f"}, []string{"reads f"}},
		{[]string{"head", "-qx5", "f"}, []string{"unknown (-qx5)", "reads f"}},
		{[]string{"grep", "-rn", "x", "src"}, []string{"reads src"}},
		{[]string{"grep", "-fpats", "src"}, []string{"reads pats (-f)", "reads src"}},
		{[]string{"grep", "--file=pats", "a", "b"}, []string{"reads pats (--file)", "reads a", "reads b"}},
		{[]string{"grep", "--color=never", "x"}, nil},
		{[]string{"grep", "--count=3", "x"}, []string{"unknown (--count=3)"}},
		{[]string{"sort", "-uo", "out", "in"}, []string{"writes out (-o)", "reads in"}},
		{[]string{"sort", "--compress-program=id"}, []string{"unknown (--compress-program id)"}},
		{[]string{"find", ".", "-name", "*.go", "-not", "-path", "./x"}, []string{"reads ."}},
		{[]string{"find", "-L", "a", "b", "-type", "f", "-delete"}, []string{"reads a and where links below lead", "reads b and where links below lead", "writes a (-delete)", "writes b (-delete)"}},
		{[]string{"find", "-exec", "rm", "{}", ";", "-print"}, []string{"reads .", "runs rm {} (-exec)"}},
		{[]string{"find", ".", "-exec", "grep", "-l", "x", "{}", "+"}, []string{"reads .", "runs grep -l x {} (-exec)"}},
		{[]string{"find", ".", "-exec", "{}", ";"}, []string{"reads .", "unknown (-exec)", "runs {} (-exec)"}},
		{[]string{"find", ".", "-exec", "rm"}, []string{"reads .", "unknown (-exec)"}},
		{[]string{"find", ".", "-fprintf", "out", "%p"}, []string{"reads .", "writes out (-fprintf)"}},
		{[]string{"find", ".", "-newermt", "2020-01-01", "-newer", "x"}, []string{"reads .", "reads x (-newer)"}},
		{[]string{"find", ".", "-files0-from", "x"}, []string{"reads .", "unknown (-files0-from)", "unknown (x)"}},
		{[]string{"nothing", "x"}, []string{"no profile"}},
	} {
		if got := effectsOf(t, c.argv...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.argv, got, c.want)
		}
	}
}
