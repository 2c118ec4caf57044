package settings

import (
	"slices"
	"testing"

	"github.com/toolward/toolward/netguard/registries"
)

func TestWhatIsReachedIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		egress EgressConfig
		want   []string // keys of problems
	}{
		"sound": {EgressConfig{
			Packs: []string{"go", "remotes"}, Internal: []string{"git.corp:443", "host.toolward.internal:5432"}, HostPorts: []int64{5432, 6379},
		}, nil},
		"odd packs":    {EgressConfig{Packs: []string{"go", "Go", "all", ""}}, []string{"egress.packs[1]", "egress.packs[2]", "egress.packs[3]"}},
		"odd machines": {EgressConfig{Internal: []string{"*.corp:443", "git.corp", "localhost:80", "169.254.169.254:80"}}, []string{"egress.internal[0]", "egress.internal[1]", "egress.internal[2]", "egress.internal[3]"}},
		"odd ports": {
			EgressConfig{HostPorts: []int64{80, 3128, 1080, 70000, 5432, 5432, 6000, -1}},
			[]string{"egress.hostPorts[0]", "egress.hostPorts[1]", "egress.hostPorts[2]", "egress.hostPorts[3]", "egress.hostPorts[5]", "egress.hostPorts[6]", "egress.hostPorts[7]"},
		},
	} {
		_, problems := Compile(Configuration{Defaults: Defaults{Config: Config{Egress: tt.egress}}}, Surroundings{StateDir: "/nowhere"})
		var got []string
		for _, p := range problems {
			got = append(got, p.Key[len("agents.defaults.sandbox."):])
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A registry of this machine is one of its pack, by exactly its host and port.
func TestRegistriesOfThisMachine(t *testing.T) {
	around := Surroundings{StateDir: "/nowhere", Registries: []registries.Registry{{Pack: "npm", Host: "npm.example", Port: 8443, URL: "https://npm.example:8443/", From: "~/.npmrc"}}}
	for name, tt := range map[string]struct {
		packs []string
		host  string
		port  uint16
		want  string
	}{
		"its pack":        {[]string{"npm"}, "npm.example", 8443, "agents.defaults.sandbox.egress.packs (npm: ~/.npmrc)"},
		"another pack":    {[]string{"go"}, "npm.example", 8443, ""},
		"another port":    {[]string{"npm"}, "npm.example", 443, ""},
		"a name below it": {[]string{"npm"}, "x.npm.example", 8443, ""},
		"no pack":         {nil, "npm.example", 8443, ""},
	} {
		s, _ := Compile(Configuration{Defaults: Defaults{Config: Config{Network: new("egress"), Egress: EgressConfig{Packs: tt.packs}}}}, around)
		if got := s.For("coder").Reach().Listed(tt.host, tt.port); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
