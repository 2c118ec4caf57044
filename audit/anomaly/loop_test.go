package anomaly

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

func TestLoopVectors(t *testing.T) {
	type call struct {
		Tool    string
		Params  params
		Times   int
		Text    string
		Vary    bool
		Details json.RawMessage
		Error   json.RawMessage
	}
	gatetest.Run(t, "policy.json", "loop", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Config LoopConfig
			Calls  []call
			Next   call
		}
		gatetest.Decode(t, input, &in)
		m := monitor(t, Config{Loops: in.Config})
		var h history
		for _, c := range in.Calls {
			for i := range max(1, c.Times) {
				r := request(t, c.Tool, c.Params, toolward.Facts{})
				o := Outcome{Text: c.Text, Details: c.Details}
				if c.Vary {
					o.Text += fmt.Sprint(" ", i)
				}
				if len(c.Error) > 0 && string(c.Error) != "null" {
					o.Error = string(c.Error)
				}
				_, action := pollOf(r)
				h.record(m.settings.Load().loops, m.callOf(r), 0)
				h.outcome(m.settings.Load().loops, m.callOf(r), 0, o.hash(m.seed, action))
			}
		}
		next := request(t, in.Next.Tool, in.Next.Params, toolward.Facts{})
		poll, _ := pollOf(next)
		stuck := h.check(m.settings.Load().loops, m.callOf(next), poll)
		if stuck.Detector == "" {
			return map[string]any{"stuck": false}
		}
		level := "warning"
		if stuck.Critical {
			level = "critical"
		}
		return map[string]any{"stuck": true, "level": level, "detector": stuck.Detector, "count": stuck.Count}
	})
}

func number(n float64) *float64 { return &n }

func TestLoopRules(t *testing.T) {
	no := false
	for _, c := range []struct {
		name          string
		global, agent LoopConfig
		want          loopRules
	}{
		{"defaults", LoopConfig{}, LoopConfig{}, loopRules{false, true, true, true, 30, 10, 20, 30}},
		{
			"nonsense is the default",
			LoopConfig{HistorySize: number(-1), Warning: number(2.5), Critical: number(0)},
			LoopConfig{},
			loopRules{false, true, true, true, 30, 10, 20, 30},
		},
		{
			"each above the one before",
			LoopConfig{Warning: number(40), HistorySize: number(1e9)},
			LoopConfig{},
			loopRules{false, true, true, true, 512, 40, 41, 42},
		},
		{
			"agent over global",
			LoopConfig{Enabled: yes(), Warning: number(5), Detectors: LoopDetectors{PingPong: &no, GenericRepeat: &no}},
			LoopConfig{Warning: number(3), Detectors: LoopDetectors{GenericRepeat: yes()}},
			loopRules{true, true, true, false, 30, 3, 20, 30},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.agent.Over(c.global).rules(); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// play records calls by letter, each ending as the digit after it says, and checks the last letter.
func play(r loopRules, script string, next byte) Stuck {
	var h history
	for i := 0; i+1 < len(script); i += 2 {
		h.record(r, uint64(script[i]), 0)
		if script[i+1] != '-' {
			h.outcome(r, uint64(script[i]), 0, uint64(script[i+1]))
		}
	}
	return h.check(r, uint64(next), next >= 'p')
}

func repeat(part string, n int) (s string) {
	for range n {
		s += part
	}
	return s
}

func TestLoops(t *testing.T) {
	rules := LoopConfig{Enabled: yes()}.rules()
	small := LoopConfig{Enabled: yes(), Warning: number(3), Critical: number(5), GlobalCircuitBreak: number(7)}.rules()
	for _, c := range []struct {
		name   string
		rules  loopRules
		script string
		next   byte
		want   Stuck
	}{
		{"breaker", rules, repeat("a1", 30), 'a', Stuck{"global_circuit_breaker", true, 30}},
		{"one below the breaker", rules, repeat("a1", 29), 'a', Stuck{"generic_repeat", false, 29}},
		{"breaker past other calls", small, repeat("a1b1c1", 7), 'a', Stuck{"global_circuit_breaker", true, 7}},
		{"an unknown outcome does not break the row", small, repeat("a1a-", 7), 'a', Stuck{"global_circuit_breaker", true, 7}},
		{"poll warning", small, repeat("p1", 4), 'p', Stuck{"known_poll_no_progress", false, 4}},
		{"poll critical", small, repeat("p1", 5), 'p', Stuck{"known_poll_no_progress", true, 5}},
		{"poll with news", small, "p1p1p1p1p2p2", 'p', Stuck{}},
		{"ping-pong warning", small, "a1b1", 'a', Stuck{"ping_pong", false, 3}},
		{"ping-pong critical", small, "a1b1a1b1", 'a', Stuck{"ping_pong", true, 5}},
		{"ping-pong with news stays a warning", small, "a1b1a2b1", 'a', Stuck{"ping_pong", false, 5}},
		{"ping-pong without an outcome stays a warning", small, "a1b1a1b-", 'a', Stuck{"ping_pong", false, 5}},
		{"not the turn of this one", small, "a1b1a1b1", 'b', Stuck{}},
		{"only the end alternates", small, "b1b1a1", 'b', Stuck{"ping_pong", false, 3}},
		{"nothing yet", small, "", 'a', Stuck{}},
		{"one call", small, "a1", 'b', Stuck{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, play(c.rules, c.script, c.next)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOutcomeHash(t *testing.T) {
	seed := maphash.MakeSeed()
	of := func(o Outcome, action string) uint64 { return o.hash(seed, action) }
	details := func(text string) Outcome { return Outcome{Details: json.RawMessage(text)} }
	if of(details(`{"a":1,"b":2}`), "") != of(details(`{"b":2,"a":1}`), "") {
		t.Error("the order of keys matters")
	}
	if of(details(`{"status":"running","at":1}`), "poll") != of(details(`{"status":"running","at":2}`), "poll") {
		t.Error("a time is news of a poll")
	}
	if of(details(`{"totalLines":1}`), "log") == of(details(`{"totalLines":2}`), "log") {
		t.Error("another line is no news of a log")
	}
	if of(Outcome{Text: "x"}, "") == of(Outcome{Error: "x"}, "") {
		t.Error("an error is like a result")
	}
	if of(details(`{"at":1}`), "") == of(details(`{"at":2}`), "") {
		t.Error("details do not matter")
	}
}

// TestLoopsInTheMonitor: a loop that is critical blocks, is not recorded, and stays blocked; warnings are told once
// for ten repeats.
func TestLoopsInTheMonitor(t *testing.T) {
	no := false
	m := monitor(t, Config{
		Loops:     LoopConfig{Enabled: yes()},
		Detectors: map[Detector]Override{Burst: {Enabled: &no}, Rate: {Enabled: &no}, Denied: {Enabled: &no}},
	})
	r := request(t, "read", params{"path": "x"}, toolward.Facts{})
	fired := map[int]string{}
	for i := range 35 {
		report := m.Before(start, r)
		if text := firedText(report); text != "" {
			fired[i] = text
		}
		if report.Block != (i >= 30) {
			t.Fatalf("call %d: %+v", i, report)
		}
		if report.Block {
			m.Denied(start, r, toolward.CodeLoop)
		} else {
			m.After(start, r, &Outcome{Text: "same"})
		}
	}
	want := map[int]string{10: "loop 10 alert", 20: "loop 20 alert"}
	for i := 30; i < 35; i++ {
		want[i] = "loop 30 block"
	}
	if diff := cmp.Diff(want, fired); diff != "" {
		t.Error(diff)
	}
	var w warnings
	for key := range uint64(2 * maxWarned) {
		w.due(key, 10)
	}
	if len(w.told) != maxWarned || len(w.keys) != maxWarned {
		t.Errorf("%d keys kept", len(w.told))
	}
}
