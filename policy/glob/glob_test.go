package glob

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "abc", true},
		{"**", "abc", true},
		{"a*", "a", true},
		{"a*c", "abc", true},
		{"a*c", "ac", true},
		{"a*c", "abcb", false},
		{"a*b*c", "axbxbxc", true},
		{"*a", "ba", true},
		{"*a", "ab", false},
		{"a?", "ab", false},
		{"a?", "a?", true},
		{"[a]", "a", false},
		{"a[b]", "a[b]", true},
		{"a*c", "a/b/c", true},
		{"a*", "Abc", false},
		{"*", "ä", true},
		{"*aaa*aaab", strings.Repeat("a", 500), false},
	} {
		if got := Match(c.pattern, c.text); got != c.want {
			t.Errorf("Match(%q, %q) = %t", c.pattern, c.text, got)
		}
	}
}

// FuzzMatch compares with a slow matcher that is obviously right.
func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{{"a*c", "abc"}, {"*", ""}, {"**a*b", "aab"}, {"", "x"}, {"a.b", "axb"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 24 {
			return
		}
		if got, want := Match(pattern, text), slowMatch(pattern, text); got != want {
			t.Errorf("Match(%q, %q) = %t", pattern, text, got)
		}
	})
}

func slowMatch(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return slowMatch(pattern[1:], text) || text != "" && slowMatch(pattern, text[1:])
	default:
		return text != "" && pattern[0] == text[0] && slowMatch(pattern[1:], text[1:])
	}
}
