package anomaly

import (
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
)

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
			Targets: []toolward.Target{{Real: "/p/" + name, Zone: "secret"}}, Command: "cat /p/" + name,
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
					Targets: []toolward.Target{{Real: "/p", Zone: "secret", Op: toolward.OpRead}},
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
