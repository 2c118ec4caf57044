package netguard

import (
	"strings"
	"testing"
)

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		host    string
		port    uint16
		want    bool
	}{
		{"api.github.com", "api.github.com", 443, true},
		{"api.github.com", "api.github.com", 80, true},
		{"api.github.com", "api.github.com", 8443, false},
		{"api.github.com", "github.com", 443, false},
		{"api.github.com", "x.api.github.com", 443, false},
		{"api.github.com", "api.github.com.evil.example", 443, false},
		{" API.GitHub.com. ", "api.github.com", 443, true},
		{"*.npmjs.org", "registry.npmjs.org", 443, true},
		{"*.npmjs.org", "a.b.npmjs.org", 443, true},
		{"*.npmjs.org", "npmjs.org", 443, false},
		{"*.npmjs.org", ".npmjs.org", 443, false},
		{"*.npmjs.org", "evilnpmjs.org", 443, false},
		{"example.org:8443", "example.org", 8443, true},
		{"example.org:8443", "example.org", 443, false},
		{"*.example.org:22022", "git.example.org", 22022, true},
		{"bücher.example", "xn--bcher-kva.example", 443, true},
		{"93.184.216.34:443", "93.184.216.34", 443, true},
		{"[2606:4700::1111]:443", "2606:4700::1111", 443, true},
	} {
		p, err := ParsePattern(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		if got := p.Matches(tt.host, tt.port); got != tt.want {
			t.Errorf("%s covers %s:%d: %t", tt.pattern, tt.host, tt.port, got)
		}
		if again, err := ParsePattern(p.String()); err != nil || again != p {
			t.Errorf("%s: its one form %s is another one: %v", tt.pattern, p, err)
		}
	}
	if (Pattern{}).Matches("", 443) {
		t.Error("no pattern covers something")
	}
}

func TestPatternsThatAreRefused(t *testing.T) {
	for pattern, why := range map[string]string{
		"*": "beginning", "": "no host name", "*.": "no host name", "*.com": "anybody", "*.co.uk": "anybody", "*.COM.": "anybody",
		"10.0.0.0/8": "range", "https://example.org": "URL", "example.org/path": "URL", "api.*.org": "beginning", "**.example.org": "beginning",
		"*.93.184.216.34": "below", "example.org:0": "port", "example.org:70000": "port", "example.org:": "port", "example.org:http": "port",
		"localhost": "never reached", "169.254.169.254": "never reached", "10.1.2.3": "never reached", "[::ffff:10.1.2.3]": "never reached",
		"2130706433": "never reached", "0x7f.1": "never reached", "metadata.google.internal": "never reached", "intranet": "never reached",
		"mail.example.org:25": "never reached", "a b.example.org": "no host name", "exa\x00mple.org": "no host name", "user@example.org": "no host name",
	} {
		if p, err := ParsePattern(pattern); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, %v; want an error with %q", pattern, p, err, why)
		}
	}
	for pattern, broad := range map[string]bool{"*.github.io": true, "*.github.com": false, "github.io": false, "user.github.io": false} {
		if p, err := ParsePattern(pattern); err != nil || p.Broad() != broad {
			t.Errorf("%s: broad %t, %v", pattern, p.Broad(), err)
		}
	}
}
