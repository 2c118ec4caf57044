package policy

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzURLFindings: a URL without a refusing finding is a web address with a host and without credentials, for Go's
// own reader at least.
func FuzzURLFindings(f *testing.F) {
	for _, seed := range []string{
		"https://example.org/a?b=c#d", "http://[::1]:80/", "https://user:pw@example.org/", "file:///etc/passwd", "http://", "//x",
		"http://a\\@b/", "https://example.org/%zz", "https://example.org/?" + strings.Repeat("aB3", 40), "javascript:alert(1)", "http://\u202e/", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, code := range URLFindings(text) {
			if code != findURLExfil {
				return
			}
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
			t.Errorf("%q passes", text)
		}
	})
}

// FuzzMatchGlob compares with a slow matcher that is obviously right.
func FuzzMatchGlob(f *testing.F) {
	for _, seed := range [][2]string{{"a*c", "abc"}, {"*", ""}, {"**a*b", "aab"}, {"", "x"}, {"a.b", "axb"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 24 {
			return
		}
		if got, want := matchGlob(pattern, text), slowMatch(pattern, text); got != want {
			t.Errorf("matchGlob(%q, %q) = %t", pattern, text, got)
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
