package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

func TestLevelVectors(t *testing.T) {
	gatetest.Run(t, "policy.json", "level", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			ContextTokens, MaxContextTokens                                 *float64
			HasCompactedHistory, ExternalContentDetected, SuspiciousContent bool
			Floor, Previous                                                 *toolward.Level
		}
		gatetest.Decode(t, input, &in)
		level, _ := Compute(Signals{
			ContextTokens: orNaN(in.ContextTokens), ContextWindow: orNaN(in.MaxContextTokens),
			Compacted: in.HasCompactedHistory, External: in.ExternalContentDetected, Suspicious: in.SuspiciousContent,
			Floor: orNormal(in.Floor), Previous: orNormal(in.Previous),
		})
		return map[string]any{"level": level}
	})
}

func orNaN(f *float64) float64 {
	if f == nil {
		return math.NaN()
	}
	return *f
}

func orNormal(l *toolward.Level) toolward.Level {
	if l == nil {
		return toolward.Normal
	}
	return *l
}

// Any further signal makes a session at least as tense.
func TestSignalsOnlyRaise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Signals{
			ContextTokens: rapid.Float64Range(-1, 3000).Draw(t, "tokens"), ContextWindow: rapid.Float64Range(0, 2000).Draw(t, "window"),
			Compacted: rapid.Bool().Draw(t, "compacted"), External: rapid.Bool().Draw(t, "external"),
			Suspicious: rapid.Bool().Draw(t, "suspicious"), Floor: toolward.Level(rapid.IntRange(0, 2).Draw(t, "floor")),
			Previous: toolward.Level(rapid.IntRange(0, 2).Draw(t, "previous")),
		}
		before, _ := Compute(s)
		worse := s
		switch rapid.IntRange(0, 5).Draw(t, "which") {
		case 0:
			worse.Compacted = true
		case 1:
			worse.External = true
		case 2:
			worse.Suspicious = true
		case 3:
			worse.Floor = toolward.Lockdown
		case 4:
			worse.ContextTokens = math.NaN()
		case 5:
			worse.Previous = toolward.Elevated
			if s.Previous < worse.Previous {
				worse.Previous = s.Previous
			}
		}
		if after, _ := Compute(worse); after > before {
			t.Fatalf("%+v is %v, %+v only %v", s, before, worse, after)
		}
	})
}

// memory is a store that can fail.
type memory struct {
	states map[toolward.SessionKey]State
	err    error
}

func (m *memory) LoadSession(_ context.Context, key toolward.SessionKey) (State, bool, error) {
	s, ok := m.states[key]
	return s, ok, m.err
}

func (m *memory) RecentSessions(_ context.Context, limit int) ([]State, error) {
	all := slices.SortedFunc(maps.Values(m.states), func(a, b State) int { return b.Updated.Compare(a.Updated) })
	return all[:min(limit, len(all))], m.err
}

func (m *memory) SaveSession(_ context.Context, s State) error {
	if m.err == nil {
		m.states[s.Key] = s
	}
	return m.err
}

const key = toolward.SessionKey("agent:main:main")

func newTracker(t *testing.T, store *memory, keep int) (*Tracker, *[]Change) {
	t.Helper()
	if store.states == nil {
		store.states = map[toolward.SessionKey]State{}
	}
	var changes []Change
	tracker, err := New(Options{
		Store: store, Keep: keep, Settings: Settings{DefaultLevel: toolward.Normal},
		OnChange: func(c Change) { changes = append(changes, c) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return tracker, &changes
}

func levelOf(t *testing.T, tracker *Tracker, run string) toolward.Level {
	t.Helper()
	level, _, err := tracker.Level(t.Context(), &toolward.Call{Session: key, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	return level
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLevelDoesNotFallWithinARun(t *testing.T) {
	tracker, changes := newTracker(t, &memory{}, 0)
	if got := levelOf(t, tracker, "r1"); got != toolward.Normal {
		t.Fatalf("a fresh session is %v", got)
	}
	must(t, tracker.Usage(t.Context(), key, 190_000, 200_000))
	if got := levelOf(t, tracker, "r1"); got != toolward.Elevated {
		t.Fatalf("a full context is %v", got)
	}
	must(t, tracker.Usage(t.Context(), key, 10_000, 200_000))
	if got := levelOf(t, tracker, "r1"); got != toolward.Elevated {
		t.Errorf("the level fell within a run to %v", got)
	}
	if got := levelOf(t, tracker, "r2"); got != toolward.Normal {
		t.Errorf("the next run begins with %v", got)
	}
	if got := levelOf(t, tracker, "r1"); got != toolward.Elevated {
		t.Errorf("another run between made the first one fall to %v", got)
	}
	if len(*changes) == 0 || (*changes)[0].To != toolward.Elevated {
		t.Errorf("changes told: %+v", *changes)
	}
}

// Two runs of one conversation may take turns, and an explanation belongs to none: neither is a way to calm a run.
func TestRunsThatTakeTurns(t *testing.T) {
	tracker, _ := newTracker(t, &memory{}, 0)
	must(t, tracker.Usage(t.Context(), key, 190_000, 200_000))
	if got := levelOf(t, tracker, "r1"); got != toolward.Elevated {
		t.Fatalf("a full context is %v", got)
	}
	must(t, tracker.Usage(t.Context(), key, 10_000, 200_000))
	for _, other := range []string{"r2", "", "r3"} {
		if got := levelOf(t, tracker, other); got != toolward.Normal {
			t.Errorf("run %q begins with %v", other, got)
		}
		if got := levelOf(t, tracker, "r1"); got != toolward.Elevated {
			t.Errorf("after run %q the level of the first fell to %v", other, got)
		}
	}
	for i := range 10 * maxRuns {
		levelOf(t, tracker, string(rune('a'+i)))
	}
	if n := len(tracker.entries[key].Value.(*entry).runs); n > maxRuns {
		t.Errorf("%d runs are remembered", n)
	}
}

func TestExposureSurvivesARestartAndEviction(t *testing.T) {
	store := &memory{}
	tracker, _ := newTracker(t, store, 1)
	must(t, tracker.Expose(t.Context(), key, toolward.Exposure{External: []string{"https://example.org"}}))
	must(t, tracker.Compacted(t.Context(), key))
	if _, _, err := tracker.Level(t.Context(), &toolward.Call{Session: "agent:main:other"}); err != nil {
		t.Fatal(err)
	}
	again, _ := newTracker(t, store, 10)
	for _, tr := range []*Tracker{tracker, again} {
		if got := levelOf(t, tr, "r"); got != toolward.Lockdown {
			t.Errorf("compacted and exposed is %v", got)
		}
	}
	seen, err := again.Overview(t.Context(), key)
	if err != nil || len(seen.Sources) != 1 || seen.Level != toolward.Lockdown {
		t.Errorf("%+v, %v", seen, err)
	}
}

func TestAnUnreadablePastIsAnError(t *testing.T) {
	tracker, _ := newTracker(t, &memory{err: errors.New("disk")}, 0)
	if level, _, err := tracker.Level(t.Context(), &toolward.Call{Session: key}); err == nil || level != toolward.Lockdown {
		t.Errorf("level %v, error %v", level, err)
	}
}

func TestFullDiskDoesNotCalm(t *testing.T) {
	store := &memory{}
	tracker, _ := newTracker(t, store, 0)
	must(t, tracker.SetFloor(t.Context(), key, toolward.Lockdown, "owner"))
	store.err = errors.New("disk full")
	if err := tracker.Clear(t.Context(), key, (&State{}).SourcesStamp(), "owner"); err == nil {
		t.Fatal("clearing succeeded without being kept")
	}
	if got := levelOf(t, tracker, "r"); got != toolward.Lockdown {
		t.Errorf("an unkept clearing calmed the session to %v", got)
	}
}

func TestChildBeginsWithItsParentsExposure(t *testing.T) {
	tracker, _ := newTracker(t, &memory{}, 0)
	must(t, tracker.Expose(t.Context(), "agent:main:parent", toolward.Exposure{External: []string{"mail"}}))
	must(t, tracker.Inherit(t.Context(), key, "agent:main:parent"))
	must(t, tracker.Compacted(t.Context(), key))
	if got := levelOf(t, tracker, "r"); got != toolward.Lockdown {
		t.Errorf("spawning laundered the exposure: %v", got)
	}
}

func TestFloors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, _ := newTracker(t, &memory{}, 0)
		must(t, tracker.RaiseFloor(t.Context(), key, toolward.Elevated, 30*time.Minute, "alarm"))
		if got := levelOf(t, tracker, "r1"); got != toolward.Elevated {
			t.Errorf("raised floor: %v", got)
		}
		time.Sleep(31 * time.Minute) // the bubble's clock
		if got := levelOf(t, tracker, "r2"); got != toolward.Normal {
			t.Errorf("the floor did not end: %v", got)
		}
		must(t, tracker.SetFloor(t.Context(), key, toolward.Lockdown, "owner"))
		must(t, tracker.RaiseFloor(t.Context(), key, toolward.Elevated, time.Minute, "alarm"))
		if got := levelOf(t, tracker, "r3"); got != toolward.Lockdown {
			t.Errorf("a weaker alarm lowered a floor: %v", got)
		}
		must(t, tracker.Clear(t.Context(), key, "", "owner"))
		if got := levelOf(t, tracker, "r4"); got != toolward.Normal {
			t.Errorf("after clearing: %v", got)
		}
	})
}

func TestDefaultLevelOfSourcesWithoutContext(t *testing.T) {
	tracker, _ := newTracker(t, &memory{}, 0)
	tracker.Configure(Settings{DefaultLevel: toolward.Elevated})
	if got := levelOf(t, tracker, "r"); got != toolward.Elevated {
		t.Errorf("default level: %v", got)
	}
	must(t, tracker.Usage(t.Context(), key, 100, 200_000))
	if got := levelOf(t, tracker, "r2"); got != toolward.Normal {
		t.Errorf("a client that reports: %v", got)
	}
	must(t, tracker.Usage(t.Context(), key, -1, 200_000))
	if got := levelOf(t, tracker, "r3"); got != toolward.Elevated {
		t.Errorf("a client that stops telling: %v", got)
	}
}

// What came in while a person read the list of sources is not cleared with it.
func TestClearingWhatWasRead(t *testing.T) {
	tracker, _ := newTracker(t, &memory{}, 0)
	overview := func() Overview {
		o, err := tracker.Overview(t.Context(), key)
		must(t, err)
		return o
	}
	must(t, tracker.Expose(t.Context(), key, toolward.Exposure{External: []string{"https://a.example"}}))
	read := overview()
	must(t, tracker.Expose(t.Context(), key, toolward.Exposure{External: []string{"https://b.example"}}))
	if err := tracker.Clear(t.Context(), key, read.SourcesStamp(), "owner"); !errors.Is(err, ErrSourcesChanged) || !overview().External {
		t.Errorf("an unread source was cleared: %v, %+v", err, overview())
	}
	must(t, tracker.Clear(t.Context(), key, "", "owner"))
	if !overview().External {
		t.Error("clearing the floor cleared the mark of external content")
	}
	read = overview()
	must(t, tracker.Clear(t.Context(), key, read.SourcesStamp(), "owner"))
	if o := overview(); o.External || len(o.Sources) > 0 {
		t.Errorf("after clearing: %+v", o)
	}
}

// Looking through old conversations does not make those that go on forget their runs.
func TestRecentDisturbsNobody(t *testing.T) {
	store := &memory{}
	tracker, _ := newTracker(t, store, 2)
	must(t, tracker.Usage(t.Context(), key, 190_000, 200_000))
	if got := levelOf(t, tracker, "r1"); got != toolward.Elevated {
		t.Fatalf("a full context is %v", got)
	}
	must(t, tracker.Usage(t.Context(), key, 10_000, 200_000))
	for _, other := range []toolward.SessionKey{"agent:main:a", "agent:main:b", "agent:main:c"} {
		store.states[other] = State{Key: other, Floors: []Floor{{Level: toolward.Elevated, By: "owner"}}, Updated: time.Now().Add(time.Hour)}
		if o, err := tracker.Overview(t.Context(), other); err != nil || o.Level != toolward.Elevated {
			t.Errorf("%s: %+v, %v", other, o, err)
		}
	}
	list, err := tracker.Recent(t.Context(), 3)
	if err != nil || len(list) != 3 || list[0].Floor.By != "owner" {
		t.Errorf("%+v, %v", list, err)
	}
	if got := levelOf(t, tracker, "r1"); got != toolward.Elevated {
		t.Errorf("the run fell to %v", got)
	}
}

// A floor that is as tense already is not written again: an alarm may ask for it with every call.
func TestARaisedFloorIsWrittenOnce(t *testing.T) {
	store := &memory{}
	tracker, changes := newTracker(t, store, 0)
	must(t, tracker.RaiseFloor(t.Context(), key, toolward.Elevated, time.Hour, "alarm"))
	store.err = errors.New("disk full")
	must(t, tracker.RaiseFloor(t.Context(), key, toolward.Elevated, time.Hour, "alarm"))
	if err := tracker.RaiseFloor(t.Context(), key, toolward.Lockdown, time.Hour, "alarm"); err == nil {
		t.Error("a floor that cannot be kept was raised without an error")
	}
	if len(*changes) != 1 {
		t.Errorf("changes told: %+v", *changes)
	}
}

// What a person wants holds when an alarm is over, and an alarm holds what it says whatever a person set before.
func TestFloorsOfPeopleAndAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		tracker, _ := newTracker(t, store, 0)
		level := func(want toolward.Level, why string) {
			t.Helper()
			fresh, _ := newTracker(t, store, 0)
			for _, tr := range []*Tracker{tracker, fresh} {
				if o, err := tr.Overview(t.Context(), key); err != nil || o.Level != want || o.Floor.Level != want {
					t.Errorf("%s: %v, floor %+v, %v; want %v", why, o.Level, o.Floor, err, want)
				}
			}
		}
		must(t, tracker.SetFloor(t.Context(), key, toolward.Elevated, "owner"))
		must(t, tracker.RaiseFloor(t.Context(), key, toolward.Lockdown, time.Hour, "alarm"))
		level(toolward.Lockdown, "an alarm")
		must(t, tracker.SetFloor(t.Context(), key, toolward.Normal, "owner"))
		level(toolward.Lockdown, "a person lowers their own floor, not the alarm's")
		must(t, tracker.SetFloor(t.Context(), key, toolward.Elevated, "owner"))
		time.Sleep(61 * time.Minute) // the bubble's clock
		level(toolward.Elevated, "the alarm is over")
		must(t, tracker.Clear(t.Context(), key, "", "owner"))
		level(toolward.Normal, "cleared")

		must(t, tracker.RaiseFloor(t.Context(), key, toolward.Elevated, 30*time.Minute, "alarm"))
		time.Sleep(20 * time.Minute)
		must(t, tracker.RaiseFloor(t.Context(), key, toolward.Elevated, 30*time.Minute, "alarm"))
		time.Sleep(20 * time.Minute)
		level(toolward.Elevated, "raised again ten minutes before its end")
		must(t, tracker.RaiseFloor(t.Context(), key, toolward.Lockdown, 5*time.Minute, "alarm"))
		time.Sleep(6 * time.Minute)
		level(toolward.Elevated, "the shorter, tenser one is over")
		time.Sleep(5 * time.Minute)
		level(toolward.Normal, "all are over")
	})
}

// A list that a person reads before they clear it must say that it is not all: an agent could read many harmless files
// to push out where it had been.
func TestALongListOfSourcesSaysThatItWasCut(t *testing.T) {
	tracker, _ := newTracker(t, &memory{}, 0)
	expose := func(key toolward.SessionKey, from string, n int) {
		t.Helper()
		for i := range n {
			if err := tracker.Expose(t.Context(), key, toolward.Exposure{External: []string{fmt.Sprint(from, i)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	look := func(key toolward.SessionKey) Overview {
		t.Helper()
		o, err := tracker.Overview(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	expose("agent:a:x", "evil", 1)
	expose("agent:a:x", "file", maxSources-1)
	if o := look("agent:a:x"); o.SourcesCut || len(o.Sources) != maxSources {
		t.Fatalf("all are kept, but %+v", o.State)
	}
	expose("agent:a:x", "another", 1)
	o := look("agent:a:x")
	whole := o.State
	whole.SourcesCut = false
	if !o.SourcesCut || o.SourcesStamp() == whole.SourcesStamp() {
		t.Errorf("nothing says that the list was cut: %+v", o.State)
	}
	expose("agent:a:child", "own", 1)
	if err := tracker.Inherit(t.Context(), "agent:a:child", "agent:a:x"); err != nil {
		t.Fatal(err)
	}
	if !look("agent:a:child").SourcesCut {
		t.Error("a child does not know that its parent's list was cut")
	}
	if err := tracker.Clear(t.Context(), "agent:a:x", o.SourcesStamp(), "tester"); err != nil {
		t.Fatal(err)
	}
	if o := look("agent:a:x"); o.SourcesCut || o.External {
		t.Errorf("after clearing: %+v", o.State)
	}
}

// An alarm that goes off while a person keeps the session tense is still there when the person relaxes it.
func TestAPersonsFloorDoesNotSwallowAnAlarm(t *testing.T) {
	tracker, _ := newTracker(t, &memory{}, 0)
	for _, err := range []error{
		tracker.SetFloor(t.Context(), key, toolward.Lockdown, "owner"),
		tracker.RaiseFloor(t.Context(), key, toolward.Lockdown, time.Hour, "alarm: denied"),
		tracker.SetFloor(t.Context(), key, toolward.Normal, "owner"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if o, err := tracker.Overview(t.Context(), key); err != nil || o.Level != toolward.Lockdown || o.Floor.By != "alarm: denied" {
		t.Errorf("%s by %q, %v", o.Level, o.Floor.By, err)
	}
}
