package profiles

import (
	"slices"
	"testing"
)

// TestProgramsOfManyLines has the cases that do not fit a line of testdata/effects.
func TestProgramsOfManyLines(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want []string
	}{
		{[]string{"sed", "s/a/b/\nw out"}, []string{"writes out (w)"}},
		{[]string{"sed", "1a\\\nw text\np"}, nil},
		{[]string{"sed", "1a\\\nw text\\\nw more\nw out"}, []string{"writes out (w)"}},
		{[]string{"sed", "1a\\  \nw out"}, []string{"evaluates 1a\\  \nw out"}},
		{[]string{"sed", "r in\nw out"}, []string{"reads in (r)", "writes out (w)"}},
		{[]string{"sed", "#w no\\\nw out"}, []string{"writes out (w)"}},
		{[]string{"sed", "s/a/b\\\nw text/\np"}, nil},
		{[]string{"sed", "s/a/b\nw out"}, []string{"evaluates s/a/b\nw out"}},
		{[]string{"sed", "-e", "a\\", "-e", "w text", "-e", "w out"}, []string{"writes out (w)"}},
		{[]string{"awk", "# \"\nBEGIN { system(\"id\") }"}, []string{"evaluates id (system)"}},
		{[]string{"awk", "BEGIN { x = 1 } # system(\"id\")"}, []string{"evaluates BEGIN { x = 1 } # system(\"id\")"}},
		{[]string{"awk", "BEGIN {\n  print \"x\" > \"out\"\n}"}, []string{"writes out (print)"}},
		{[]string{"jq", "# env\n.a"}, nil},
		{[]string{"jq", "# x \\\nenv"}, []string{"environment (env)", "evaluates # x \\\nenv"}},
		{[]string{"jq", "# \"\nenv"}, []string{"environment (env)"}},
		{[]string{"jq", ".a\n| $ENV"}, []string{"environment ($ENV)"}},
	} {
		if got := effectsOf(t, c.argv...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.argv, got, c.want)
		}
	}
}
