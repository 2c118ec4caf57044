package anomaly

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func inSession(key toolward.SessionKey) *toolward.Request {
	return &toolward.Request{Call: toolward.Call{Session: key}}
}

func yes() *bool { b := true; return &b }

// nowhere has no floors.
type nowhere struct{}

func (nowhere) RaiseFloor(context.Context, toolward.SessionKey, toolward.Level, time.Duration, string) error {
	return nil
}
