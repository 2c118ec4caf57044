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
