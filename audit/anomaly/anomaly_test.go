package anomaly

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/schema"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func monitor(t testing.TB, c Config) *Monitor {
	t.Helper()
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type params = map[string]any

func request(t testing.TB, tool string, p params, f toolward.Facts) *toolward.Request {
	t.Helper()
	canonical, err := schema.Canonical(p)
	if err != nil {
		t.Fatal(err)
	}
	return &toolward.Request{
		Call: toolward.Call{Tool: tool, Session: "agent:a:s", Caller: toolward.Caller{Agent: "a"}},
		Tool: &toolward.Tool{Name: tool}, Params: toolward.NewParams(canonical, p), Facts: f,
	}
}

func TestAnomalyVectors(t *testing.T) {
	type fired struct {
		At       int      `json:"at"`
		Detector Detector `json:"detector"`
		Count    int      `json:"count"`
		Action   Action   `json:"action"`
	}
	gatetest.Run(t, "policy.json", "anomaly", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Events []struct {
				Type      string
				AtMs      int64
				Mutates   bool
				Deletes   int
				Recipient string
			}
			Config map[Detector]Override
		}
		gatetest.Decode(t, input, &in)
		m := monitor(t, Config{Detectors: in.Config})
		all := []fired{}
		for i, e := range in.Events {
			at := start.Add(time.Duration(e.AtMs) * time.Millisecond)
			facts := toolward.Facts{Mutates: e.Mutates, Deletes: e.Deletes}
			if e.Recipient != "" {
				facts.Recipients = []string{e.Recipient}
			}
			r := request(t, "tool", params{}, facts)
			var report Report
			switch e.Type {
			case "call":
				report = m.Before(at, r)
			case "denied":
				report = m.Denied(at, r, toolward.CodeBlocked)
			case "invalid":
				report = m.Invalid(at, r)
			case "user":
				m.User(at, r.Call.Session, false, "")
			default:
				t.Fatalf("unknown event %q", e.Type)
			}
			for _, d := range report.Fired {
				all = append(all, fired{i, d.Detector, d.Count, d.Action})
			}
		}
		return map[string]any{"fired": all}
	})
}

// then is one observation at a second, and the detectors that it makes fire.
type then struct {
	second int
	what   string // call, denied, invalid, user
	facts  toolward.Facts
	fired  string // detector count action, separated by commas
}

func TestDetectors(t *testing.T) {
	write := toolward.Facts{Mutates: true}
	off := func(names ...Detector) map[Detector]Override {
		no := false
		m := map[Detector]Override{}
		for _, d := range names {
			m[d] = Override{Enabled: &no}
		}
		return m
	}
	times := func(n, second, step int, facts toolward.Facts) []then {
		all := make([]then, n)
		for i := range all {
			all[i] = then{second: second + i*step, what: "call", facts: facts}
		}
		return all
	}
	firedAt := func(all []then, at int, fired string) []then { all[at].fired = fired; return all }
	join := func(parts ...[]then) (all []then) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, c := range []struct {
		name string
		off  []Detector
		do   []then
	}{
		{"fires again after falling below", nil, join(
			firedAt(times(20, 0, 1, write), 19, "writes 20 alert"),
			firedAt(times(20, 100, 1, write), 19, "writes 20 alert"))},
		{"a steady value fires once", nil, firedAt(times(40, 0, 3, write), 19, "writes 20 alert")},
		{"another event shows that it fell", nil, join(
			firedAt(times(20, 0, 1, write), 19, "writes 20 alert"), []then{{second: 61, what: "user"}},
			times(1, 62, 1, write), firedAt(times(2, 62, 0, write), 1, "writes 20 alert"))},
		{"escalates", []Detector{Burst, Rate}, firedAt(firedAt(times(45, 0, 1, write), 19, "writes 20 alert"), 39, "writes 40 ask")},
		{"burst and rate, in order", nil, firedAt(firedAt(times(60, 0, 0, toolward.Facts{}), 49, "burst 50 alert"), 59, "rate 60 alert")},
		{"a user ends a burst", []Detector{Rate}, join(times(49, 0, 0, toolward.Facts{}), []then{{what: "user"}},
			firedAt(times(50, 0, 0, toolward.Facts{}), 49, "burst 50 alert"))},
		{"refusals", nil, []then{
			{0, "denied", toolward.Facts{}, ""},
			{1, "denied", toolward.Facts{}, ""},
			{2, "denied", toolward.Facts{}, "denied 3 elevate"},
			{3, "denied", toolward.Facts{}, ""},
			{4, "denied", toolward.Facts{}, ""},
			{5, "denied", toolward.Facts{}, "denied 6 lockdown"},
		}},
		{"the window ends at its length", nil, []then{
			{0, "denied", toolward.Facts{}, ""},
			{1, "denied", toolward.Facts{}, ""},
			{300, "denied", toolward.Facts{}, ""},
			{300, "denied", toolward.Facts{}, "denied 3 elevate"},
		}},
		{"deletions one by one", nil, []then{
			{0, "call", toolward.Facts{Deletes: 9}, ""},
			{1, "call", toolward.Facts{Deletes: 1000}, "deletes 10 ask"},
			{2, "call", toolward.Facts{Deletes: 1}, ""},
			{70, "call", toolward.Facts{Deletes: 10}, "deletes 10 ask"},
		}},
		{"several recipients of one call", nil, []then{
			{0, "call", toolward.Facts{Recipients: []string{"a", "b", "c", "d", "e", "f"}}, "fanout 5 ask"},
			{1, "call", toolward.Facts{Recipients: []string{"g"}}, ""},
			{900, "call", toolward.Facts{Recipients: []string{"a", "b", "c", "d"}}, ""},
			{901, "call", toolward.Facts{Recipients: []string{"e"}}, "fanout 5 ask"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := monitor(t, Config{Detectors: off(c.off...)})
			for i, step := range c.do {
				at := start.Add(time.Duration(step.second) * time.Second)
				r := request(t, "tool", params{}, step.facts)
				var report Report
				switch step.what {
				case "call":
					report = m.Before(at, r)
				case "denied":
					report = m.Denied(at, r, toolward.CodeBlocked)
				case "user":
					m.User(at, r.Call.Session, true, "")
				}
				if got := firedText(report); got != step.fired {
					t.Errorf("observation %d fired %q, want %q", i, got, step.fired)
				}
			}
		})
	}
}

func firedText(r Report) string {
	var all []string
	for _, d := range r.Fired {
		all = append(all, fmt.Sprint(d.Detector, " ", d.Count, " ", d.Action))
	}
	return strings.Join(all, ", ")
}

func TestActions(t *testing.T) {
	m := monitor(t, Config{})
	host := func(name string) *toolward.Request {
		r := request(t, "web_fetch", params{"url": name}, toolward.Facts{Hosts: []string{"https://" + name + ":443"}})
		r.Inputs.External = true
		return r
	}
	report := m.Before(start, host("new.example"))
	if diff := cmp.Diff([]Detector{NewTarget}, report.Ask); diff != "" || report.Floor != toolward.Normal || !report.Fired[0].Notify {
		t.Errorf("%+v", report)
	}
	if report = m.Before(start.Add(time.Second), host("newer.example")); len(report.Fired) != 1 || report.Fired[0].Notify {
		t.Errorf("told twice within five minutes, or not fired: %+v", report)
	}
	for range 5 {
		report = m.Denied(start, host("x.example"), toolward.CodeBlocked)
	}
	if report.Floor != toolward.Elevated || report.FloorFor != ElevateTime {
		t.Errorf("%+v", report)
	}
	report = m.Denied(start, host("x.example"), toolward.CodeBlocked)
	if report.Floor != toolward.Lockdown || report.FloorFor != LockdownTime || report.Block {
		t.Errorf("%+v", report)
	}
	if (Report{}).Floor != toolward.Lockdown {
		t.Error("the zero report is not the strictest")
	}

	deletes := func(at time.Duration, n int) Report {
		return m.Before(start.Add(at), request(t, "apply_patch", params{}, toolward.Facts{Deletes: n}))
	}
	if report = deletes(time.Hour, 10); len(report.Ask) != 1 || report.Ask[0] != Deletes {
		t.Errorf("%+v", report)
	}
	if report = deletes(time.Hour+9*time.Minute, 1); len(report.Ask) != 1 {
		t.Errorf("a deletion nine minutes later does not ask: %+v", report)
	}
	if report = deletes(time.Hour+9*time.Minute, 0); len(report.Ask) != 0 {
		t.Errorf("a call without deletions asks: %+v", report)
	}
	if report = deletes(time.Hour+11*time.Minute, 1); len(report.Ask) != 0 {
		t.Errorf("asks for ever: %+v", report)
	}
}

func TestArgSize(t *testing.T) {
	no := false
	m := monitor(t, Config{Detectors: map[Detector]Override{Burst: {Enabled: &no}, Rate: {Enabled: &no}}})
	send := func(tool, param string, size int) string {
		return firedText(m.Before(start, request(t, tool, params{param: strings.Repeat("x", size)}, toolward.Facts{})))
	}
	for range 19 {
		send("t", "p", 500)
	}
	if got := send("t", "p", 6000); got != "" {
		t.Errorf("after 19 values: %s", got)
	}
	for range 60 {
		send("t", "p", 100)
		send("t", "content", 100)
		send("t", "q", 390)
	}
	for _, c := range []struct {
		param string
		size  int
		want  string
	}{
		{"p", 4095, ""},
		{"q", 4000, ""},
		{"content", 100_000, ""},
		{"new", 100_000, ""},
		{"p", 5001, "argSize 1 alert"},
		{"p", 5000, ""},
		{"q", 5000, ""},
		{"q", 5000, "argSize 3 ask"},
	} {
		if got := send("t", c.param, c.size); got != c.want {
			t.Errorf("%s of %d: %q, want %q", c.param, c.size, got, c.want)
		}
	}
}

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
	secret := toolward.Facts{Targets: []toolward.Target{{Real: "/s", Place: "secret", Op: toolward.OpRead}}}
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
		Targets: []toolward.Target{{Real: "/s", Place: "secret", Op: toolward.OpRead}}, Hosts: []string{"https://new.example:443"},
	})
	if got := firedText(monitor(t, Config{}).Before(start, r)); got != "exfilChain 1 ask" {
		t.Errorf("%q", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	m := monitor(t, Config{Loops: LoopConfig{Enabled: yes()}})
	var wait sync.WaitGroup
	fired := make([]int, 4)
	for i := range fired {
		wait.Go(func() {
			r := request(t, "write", params{"n": fmt.Sprint(i)}, toolward.Facts{Mutates: true})
			for range 5 {
				fired[i] += len(m.Before(start, r).Fired)
				m.After(start, r, &Outcome{})
			}
		})
	}
	wait.Wait()
	if sum := fired[0] + fired[1] + fired[2] + fired[3]; sum != 1 {
		t.Errorf("twenty writes fired %d times", sum)
	}
}

func TestNewTarget(t *testing.T) {
	for _, c := range []struct {
		name     string
		external bool
		owner    bool
		said     string
		facts    toolward.Facts
		want     string
	}{
		{"strangers' content", true, true, "look it up", toolward.Facts{Hosts: []string{"https://a.example:443"}}, "newTarget 1 ask"},
		{"none", false, true, "", toolward.Facts{Hosts: []string{"https://a.example:443"}}, ""},
		{"named by the owner", true, true, "see (https://A.example/x?y).", toolward.Facts{Hosts: []string{"https://a.example:443"}}, ""},
		{"named by another", true, false, "see https://a.example", toolward.Facts{Hosts: []string{"https://a.example:443"}}, "newTarget 1 ask"},
		{"part of a name", true, true, "see not-a.example.com", toolward.Facts{Hosts: []string{"https://a.example:443"}}, "newTarget 1 ask"},
		{"recipient named", true, true, "tell Bob.", toolward.Facts{Recipients: []string{"sms:main:bob"}}, ""},
		{"recipient not named", true, true, "tell Bob.", toolward.Facts{Recipients: []string{"sms:main:eve"}}, "newTarget 1 ask"},
		{"the owner who speaks", true, true, "", toolward.Facts{Recipients: []string{"chat:x:me"}}, ""},
		{"one of two", true, true, "a.example", toolward.Facts{Hosts: []string{"https://a.example", "https://b.example"}}, "newTarget 1 ask"},
		{"configured", true, true, "", toolward.Facts{Hosts: []string{"https://ok.example:443"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := monitor(t, Config{Known: func(s string) bool { return s == "ok.example" }})
			m.User(start, "agent:a:s", c.owner, c.said)
			r := request(t, "web_fetch", params{}, c.facts)
			r.Inputs.External = c.external
			r.Call.Caller = toolward.Caller{Owner: true, Channel: "chat", Account: "x", Sender: "me"}
			if got := firedText(m.Before(start, r)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestConfigRefusesNonsense(t *testing.T) {
	for _, text := range []string{
		`{"writes":{"threshold":0}}`,
		`{"writes":{"threshold":513}}`,
		`{"writes":{"windowMs":0}}`,
		`{"writes":{"action":"shout"}}`,
		`{"wrties":{}}`,
		`{"writes":{"escalate":{"threshold":-1,"action":"ask"}}}`,
	} {
		var o map[Detector]Override
		err := json.Unmarshal([]byte(text), &o)
		if err == nil {
			_, err = New(Config{Detectors: o})
		}
		if err == nil {
			t.Errorf("%s is taken", text)
		} else {
			t.Log(err)
		}
	}
}

// TestMemoryIsBounded: whatever is observed, nothing of a session grows beyond its limits, and no report comes from
// a window that never expires.
func TestMemoryIsBounded(t *testing.T) {
	m := monitor(t, Config{Loops: LoopConfig{Enabled: yes()}})
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 5000 {
		session := toolward.SessionKey(fmt.Sprint("agent:a:", i%1500))
		if i > 2000 {
			session = "agent:a:busy"
		}
		name := fmt.Sprint(i)
		r := request(t, "t"+name[:1], params{"p" + name: "v"}, toolward.Facts{
			Deletes: random.IntN(5000), Mutates: true, Hosts: []string{"https://h" + name}, Recipients: []string{name, "x" + name},
			Targets: []toolward.Target{{Real: "/p/" + name, Place: "secret"}}, Command: "cat /p/" + name,
		})
		r.Call.Session = session
		at := start.Add(time.Duration(i) * time.Second)
		m.User(at, session, true, "word"+name)
		m.Before(at, r)
		m.After(at, r, &Outcome{Text: name})
		m.Denied(at, r, toolward.CodeBlocked)
		m.Invalid(at, r)
	}
	if len(m.sessions) > maxSessions || m.order.Len() > maxSessions {
		t.Errorf("%d sessions", len(m.sessions))
	}
	s := m.session("agent:a:busy", start)
	for d, c := range s.counters {
		if len(c.times) > maxEvents || c.n > len(c.times) {
			t.Errorf("%s keeps %d", Detector(d), len(c.times))
		}
	}
	for name, n := range map[string]int{
		"calls": len(s.calls.calls), "seen": len(s.seen.has), "seen ring": len(s.seen.ring), "words": len(s.words.has),
		"series": len(s.sizes.series), "refusals": len(s.refusals), "reads": len(s.reads), "contacted": len(s.contacted.list),
		"warned": len(s.warned.told),
	} {
		if n > maxEvents || name == "series" && n > maxSeries || name == "refusals" && n > maxRefusals {
			t.Errorf("%s: %d", name, n)
		}
	}
}

// TestWindowsAgreeWithCounting: the bounded windows say what counting all events of all time would say.
func TestWindowsAgreeWithCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		var all []time.Duration
		before, now := 0, time.Duration(0)
		for _, gap := range rapid.SliceOfN(rapid.IntRange(0, 30), 1, 80).Draw(t, "gaps") {
			now += time.Duration(gap) * time.Second
			all = append(all, now)
			value := 0
			for _, at := range all {
				if now-at < time.Minute {
					value++
				}
			}
			want := ""
			if value >= 5 && before < 5 {
				want = "invalid 5 alert"
			}
			before = value
			if got := firedText(m.Invalid(start.Add(now), inSession("s"))); got != want {
				t.Fatalf("%v: %q, want %q", all, got, want)
			}
		}
	})
}

// TestPreview: a preview says what Before then says, and however many there were, nothing is changed by them.
func TestPreview(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := New(Config{Loops: LoopConfig{Enabled: yes(), Warning: number(2), Critical: number(3)}})
		if err != nil {
			t.Fatal(err)
		}
		at := start
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			at = at.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "gap")) * time.Second)
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
			r := &toolward.Request{
				Call:   toolward.Call{Session: "s", ID: name},
				Tool:   &toolward.Tool{Name: "tool-" + name},
				Params: toolward.NewParams([]byte(`{"p":"`+name+`"}`), params{"p": strings.Repeat(name, 5000)}),
				Facts: toolward.Facts{
					Mutates: true, Deletes: rapid.IntRange(0, 3).Draw(t, "deletes"), Recipients: []string{name},
					Targets: []toolward.Target{{Real: "/p", Place: "secret", Op: toolward.OpRead}},
				},
			}
			first, second := m.Preview(at, r), m.Preview(at, r)
			report := m.Before(at, r)
			if diff := cmp.Diff(first, report); diff != "" {
				t.Fatal(diff)
			}
			if diff := cmp.Diff(second, report); diff != "" {
				t.Fatal(diff)
			}
			if report.Block || rapid.Bool().Draw(t, "refused") {
				m.Denied(at, r, toolward.CodeBlocked)
			} else {
				m.After(at, r, &Outcome{Text: "same"})
			}
		}
	})
}

// TestClockSetBack: no window empties and nothing is forgiven when the clock runs back.
func TestClockSetBack(t *testing.T) {
	m := monitor(t, Config{})
	for i := range 4 {
		m.Invalid(start.Add(-time.Duration(i)*time.Hour), inSession("s"))
	}
	if got := firedText(m.Invalid(start.Add(-24*time.Hour), inSession("s"))); got != "invalid 5 alert" {
		t.Errorf("%q", got)
	}
}

func inSession(key toolward.SessionKey) *toolward.Request {
	return &toolward.Request{Call: toolward.Call{Session: key}}
}

func yes() *bool { b := true; return &b }

func BenchmarkHasEncoded(b *testing.B) {
	words := strings.Repeat("the quick brown fox jumps over the lazy dog ", 1<<20/44)
	b.SetBytes(int64(len(words)))
	for b.Loop() {
		if hasEncoded(words) {
			b.Fatal("words")
		}
	}
}

// BenchmarkWatch is what the detectors add to a call: before it is decided, and after it has run. All of them are on;
// thresholds are out of reach, because a benchmark is a burst.
func BenchmarkWatch(b *testing.B) {
	high, most := maxBurst, maxEvents
	m := monitor(b, Config{Detectors: map[Detector]Override{
		Burst: {Threshold: &high, Escalate: Escalation{Set: true}}, Rate: {Threshold: &most, Escalate: Escalation{Set: true}},
	}})
	r := request(b, "read", params{"path": "src/server/handlers/list.go", "limit": json.Number("200")}, toolward.Facts{
		Targets: []toolward.Target{{Real: "/home/u/p/src/server/handlers/list.go", Op: toolward.OpRead, Place: "workspace"}},
	})
	r.Call.ID, r.Call.Run, r.Digest = "call-1", "run-7", strings.Repeat("0123456789abcdef", 4)
	w, err := NewWatcher(m, nowhere{}, func(Notice) {}, nil)
	if err != nil {
		b.Fatal(err)
	}
	outcome := toolward.OutcomeRecord{Status: toolward.StatusOK, ResultDigest: r.Digest}
	b.Run("before", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.Before(b.Context(), r, false)
		}
	})
	b.Run("before and after", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.Before(b.Context(), r, false)
			w.After(b.Context(), r, &outcome, nil)
		}
	})
}

// nowhere has no floors.
type nowhere struct{}

func (nowhere) RaiseFloor(context.Context, toolward.SessionKey, toolward.Level, time.Duration, string) error {
	return nil
}
