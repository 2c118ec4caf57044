package packs

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryPackIsNarrow(t *testing.T) {
	want := []string{"containers", "crates", "debian", "go", "maven", "npm", "pypi", "remotes", "rubygems"}
	if got := Names(); !slices.Equal(got, want) {
		t.Errorf("packs: %v, want %v", got, want)
	}
	for _, name := range Names() {
		if len(Hosts(name)) == 0 && name != Remotes {
			t.Errorf("%s is empty", name)
		}
		for _, p := range Hosts(name) {
			if p.Broad() {
				t.Errorf("%s: strangers have names below %s", name, p)
			}
			// Over plain HTTP anybody on the way changes what is installed; apt alone checks signatures.
			host, _, _ := strings.Cut(strings.TrimPrefix(p.String(), "*."), ":")
			if plain := p.Matches(host, 80) || p.Matches("x."+host, 80); plain && name != "debian" {
				t.Errorf("%s: %s is reached over plain HTTP", name, p)
			}
			for _, theirs := range []string{"storage.googleapis.com", "s3.amazonaws.com", "raw.githubusercontent.com", "gist.github.com", "objects.githubusercontent.com"} {
				if p.Covers(theirs) {
					t.Errorf("%s: %s lets %s pass, where strangers keep files", name, p, theirs)
				}
			}
		}
	}
}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		names []string
		host  string
		port  uint16
		want  string
	}{
		{[]string{"go", "npm"}, "registry.npmjs.org", 443, "npm"},
		{[]string{"go"}, "registry.npmjs.org", 443, ""},
		{[]string{"npm"}, "registry.npmjs.org", 80, ""},
		{[]string{"npm"}, "registry.npmjs.org", 4873, ""},
		{[]string{"npm"}, "evil.registry.npmjs.org", 443, ""},
		{[]string{"npm"}, "registry.npmjs.org.evil.example", 443, ""},
		{[]string{"debian"}, "deb.debian.org", 80, "debian"},
		{[]string{"nothing"}, "deb.debian.org", 80, ""},
		{nil, "pypi.org", 443, ""},
	} {
		if got := Of(tt.names, tt.host, tt.port); got != tt.want {
			t.Errorf("%v %s:%d: %q, want %q", tt.names, tt.host, tt.port, got, tt.want)
		}
	}
}
