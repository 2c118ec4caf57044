package anomaly

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

func TestHasEncoded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(b)
	}
	const base64, hex = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "0123456789abcdef"
	wrapped := strings.Builder{}
	for range 5 {
		wrapped.WriteString(draw(base64, 76) + "\r\n")
	}
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"200 of base64", "see " + draw(base64, 200), true},
		{"199 of base64", "see " + draw(base64, 199) + " " + draw(base64, 199), false},
		{"200 of hex", "see " + draw(hex, 200) + " end", true},
		{"hex in capitals", draw("0123456789ABCDEF", 300), true},
		{"one letter", strings.Repeat("a", 5000), false},
		{"padded with one letter", strings.Repeat("a", 5000) + draw(base64, 200) + strings.Repeat("b", 5000), true},
		{"wrapped lines", wrapped.String(), true},
		{"words", strings.Repeat("the quick brown fox jumps over the lazy dog ", 100), false},
		{"a list of names", strings.Repeat("README\nMakefile\nmain\n", 50), false},
		{"uneven stretches, even as a whole", func() (s string) {
			for _, c := range base64[:48] {
				s += strings.Repeat(string(c), 30)
			}
			return s
		}(), true},
		{"digits", strings.Repeat("0123", 100), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := hasEncoded(c.text); got != c.want {
				t.Errorf("%t", got)
			}
		})
	}
}

func TestEvasion(t *testing.T) {
	secret := toolward.Facts{Targets: []toolward.Target{{Path: "~/.ssh/id", Real: "/home/u/.ssh/id", Op: toolward.OpRead}}}
	host := toolward.Facts{Hosts: []string{"https://evil.example:443"}}
	for _, c := range []struct {
		name    string
		refused toolward.Facts
		between int
		tool    string
		next    toolward.Facts
		want    string
	}{
		{"same path", secret, 0, "exec", secret, "evasion 1 ask"},
		{"third call", secret, 2, "exec", secret, "evasion 1 ask"},
		{"fourth call", secret, 3, "exec", secret, ""},
		{"same tool", secret, 0, "first", secret, ""},
		{"another path", secret, 0, "exec", toolward.Facts{Targets: []toolward.Target{{Real: "/home/u/.ssh/id.pub"}}}, ""},
		{"path in a command", secret, 0, "exec", toolward.Facts{Command: "base64 '/home/u/.ssh/id'"}, "evasion 1 ask"},
		{"longer path in a command", secret, 0, "exec", toolward.Facts{Command: "cat /home/u/.ssh/id.pub"}, ""},
		{"path of a refused command", toolward.Facts{Command: "cat /home/u/.ssh/id"}, 0, "read", secret, "evasion 1 ask"},
		{"host by another port", host, 0, "browser", toolward.Facts{Hosts: []string{"http://EVIL.example:8080"}}, "evasion 1 ask"},
		{"host in a command", host, 0, "exec", toolward.Facts{Command: "curl http://evil.example/x"}, "evasion 1 ask"},
		{"same recipient", toolward.Facts{Recipients: []string{"c:a:b"}}, 0, "sms", toolward.Facts{Recipients: []string{"c:a:b"}}, "evasion 1 ask"},
		{"same command", toolward.Facts{Command: "rm x"}, 0, "process", toolward.Facts{Command: " rm x\n"}, "evasion 1 ask"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := monitor(t, Config{})
			m.Denied(start, request(t, "first", params{}, c.refused), toolward.CodeBlocked)
			for range c.between {
				m.Before(start, request(t, "list", params{}, toolward.Facts{}))
			}
			if got := firedText(m.Before(start, request(t, c.tool, params{}, c.next))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestExfilChain(t *testing.T) {
	secret := toolward.Facts{Targets: []toolward.Target{{Real: "/s", Zone: "secret", Op: toolward.OpRead}}}
	out := toolward.Facts{Hosts: []string{"https://new.example:443"}}
	const want = "exfilChain 1 ask"
	for _, c := range []struct {
		name    string
		prepare func(*Monitor, func(string, toolward.Facts) *toolward.Request)
		want    string
	}{
		{"nothing read", func(*Monitor, func(string, toolward.Facts) *toolward.Request) {}, ""},
		{"secret read", func(m *Monitor, r func(string, toolward.Facts) *toolward.Request) { m.Before(start, r("read", secret)) }, want},
		{"memory read", func(m *Monitor, r func(string, toolward.Facts) *toolward.Request) {
			m.Before(start, r("memory_get", toolward.Facts{}))
		}, want},
		{"another session read", func(m *Monitor, r func(string, toolward.Facts) *toolward.Request) {
			m.Before(start, r("sessions_history", toolward.Facts{Scope: "tree"}))
		}, want},
		{"own session read", func(m *Monitor, r func(string, toolward.Facts) *toolward.Request) {
			m.Before(start, r("sessions_history", toolward.Facts{Scope: "self"}))
		}, ""},
		{"refused to read", func(m *Monitor, r func(string, toolward.Facts) *toolward.Request) {
			m.Before(start, r("read", secret))
			m.Denied(start, r("read", secret), toolward.CodeBlocked)
		}, ""},
		{"known host", func(m *Monitor, r func(string, toolward.Facts) *toolward.Request) {
			m.After(start, r("fetch", out), &Outcome{})
			m.Before(start, r("read", secret))
		}, ""},
		{"host never reached", func(m *Monitor, r func(string, toolward.Facts) *toolward.Request) {
			m.After(start, r("fetch", out), &Outcome{Error: "no"})
			m.Before(start, r("read", secret))
		}, want},
		{"read refused, another one not", func(m *Monitor, r func(string, toolward.Facts) *toolward.Request) {
			m.Before(start, r("memory_get", toolward.Facts{}))
			m.Before(start, r("read", secret))
			m.Denied(start, r("read", secret), toolward.CodeBlocked)
		}, want},
		{"tenth call", func(m *Monitor, r func(string, toolward.Facts) *toolward.Request) {
			m.Before(start, r("read", secret))
			for range 9 {
				m.Before(start, r("list", toolward.Facts{}))
			}
		}, want},
		{"eleventh call", func(m *Monitor, r func(string, toolward.Facts) *toolward.Request) {
			m.Before(start, r("read", secret))
			for range 10 {
				m.Before(start, r("list", toolward.Facts{}))
			}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := monitor(t, Config{})
			c.prepare(m, func(tool string, f toolward.Facts) *toolward.Request {
				r := request(t, tool, params{}, f)
				r.Call.ID = tool
				return r
			})
			r := request(t, "message", params{}, out)
			r.Call.ID = "last"
			if got := firedText(m.Before(start, r)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestExfilInOneCall(t *testing.T) {
	r := request(t, "exec", params{}, toolward.Facts{
		Targets: []toolward.Target{{Real: "/s", Zone: "secret", Op: toolward.OpRead}}, Hosts: []string{"https://new.example:443"},
	})
	if got := firedText(monitor(t, Config{}).Before(start, r)); got != "exfilChain 1 ask" {
		t.Errorf("%q", got)
	}
}
