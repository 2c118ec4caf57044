package command

import (
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
)

// An entry for a program of which nothing is known says yes to the program, not to what its arguments name.
func TestFloorUnderEntries(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/mystery": "x", "/ws/.env": "f", "/ws/src/a.go": "f", "/ws/key": "l:/home/dev/.ssh/id_ed25519", "/ws/tool": "x"})
	runs := []string{
		"mystery", "mystery src/a.go", "mystery -v --out=build/x src/a.go:12:3", "mystery -j4 HEAD~1 'HEAD@{1}' a@1.2.3 @types/node",
		"mystery --at 12:30 /tmp/x", "mystery --url http://localhost:8080/x http://127.0.0.1:1", "mystery --name=env make", "mystery -lc -i",
		"mystery 'a sentence: with, signs = in it @ all'", "./tool https://example.com",
	}
	asks := []string{
		"mystery /home/dev/.ssh/id_ed25519", "mystery --config=/home/dev/.ssh/id_ed25519", "mystery --data=@/home/dev/.ssh/id_ed25519",
		"mystery -d@/home/dev/.ssh/id_ed25519", "mystery -i/home/dev/.ssh/id_ed25519", "mystery '~/.ssh/id_ed25519'", "mystery --key='~/.ssh/id_ed25519'",
		"mystery /etc/hosts", "mystery .env", "mystery f=.env", "mystery x:.env", "mystery a,.env", "mystery key", "mystery file:///home/dev/.ssh/id_ed25519",
		"mystery /home/dev/.toolward/state.db", "mystery --out=.git/config", "mystery -o.git/hooks/pre-commit", "mystery .git/hooks/pre-commit",
		"mystery sh", "mystery /bin/sh", "mystery --shell=bash", "mystery -x/bin/sh", "mystery -e/usr/bin/python3", "mystery busybox",
		"mystery https://collector.example/x", "mystery --to=https://collector.example", "mystery git@collector.example:x", "mystery http://192.168.0.1",
		"mystery -uhttps://collector.example", "mystery http://[broken", "mystery " + strings.Repeat("a,", 40) + ".env", "mystery --to=a@one.example,b@192.168.0.1.example",
		"cd src && mystery ../.env", "cd src || cd /ws; mystery .env",
	}
	settings := onMiss(Strict, "/usr/bin/mystery", "/ws/tool")
	for _, command := range runs {
		if a := w.evaluate(t, settings, command); verdict(a) != toolward.Allow {
			t.Errorf("%s: %s %v", command, verdict(a), codes(a))
		}
	}
	for _, command := range asks {
		if a := w.evaluate(t, settings, command); verdict(a) == toolward.Allow {
			t.Errorf("%s: %s", command, verdict(a))
		}
	}
	many := "mystery"
	for range maxFloorArgs + 1 {
		many += " x"
	}
	if a := w.evaluate(t, settings, many); verdict(a) != toolward.Ask {
		t.Errorf("more arguments than are read: %s", verdict(a))
	}
}

// A person who names the network for a program means public hosts; one who lists a very command means that, but no key in it.
func TestFloorUnderEntriesThatSayMore(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/mystery": "x", "/ws/.env": "f"})
	under := func(e allowlist.Entry) Policy {
		s := onMiss(Strict)
		e.Pattern = "/usr/bin/mystery"
		s.Entries = []allowlist.Listed{{Entry: e}}
		return s
	}
	network := under(allowlist.Entry{Effects: []string{"read", "network"}})
	exact := func(args ...string) Policy {
		return under(allowlist.Entry{Argv: append([]string{"/usr/bin/mystery"}, args...)})
	}
	for _, c := range []struct {
		policy  Policy
		command string
		want    toolward.Verdict
	}{
		{network, "mystery https://example.com", toolward.Allow},
		{network, "mystery http://192.168.0.1", toolward.Ask},
		{network, "mystery https://example.com,http://192.168.0.1", toolward.Ask},
		{network, "mystery .env", toolward.Ask},
		{exact("https://example.com"), "mystery https://example.com", toolward.Allow},
		{exact("sh"), "mystery sh", toolward.Allow},
		{exact(".env"), "mystery .env", toolward.Ask},
	} {
		if a := w.evaluate(t, c.policy, c.command); verdict(a) != c.want {
			t.Errorf("%v %s: %s %v, want %s", c.policy.Entries[0].Entry, c.command, verdict(a), codes(a), c.want)
		}
	}
}
