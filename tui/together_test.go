package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// alike are identical calls, each a millisecond after the other.
func alike(ids ...string) []Call {
	var calls []Call
	for i, id := range ids {
		call := question(id, "make")
		call.CreatedMs += int64(i)
		calls = append(calls, call)
	}
	return calls
}

func TestOneAnswerForIdenticalCalls(t *testing.T) {
	for _, tt := range []struct {
		name string
		keys []string
		want []string
	}{
		{"each by itself at first", []string{"enter"}, []string{"one deny 0"}},
		{"deny all", []string{"s", "wait", "enter"}, []string{"one deny 0", "two deny 0", "three deny 0"}},
		{"deny all, why", []string{"s", "wait", "d", "n", "o", "enter"}, []string{"one deny 0 no", "two deny 0 no", "three deny 0 no"}},
		{"allow all", []string{"s", "wait", "a", "space"}, []string{"one allow-once 0", "two allow-once 0", "three allow-once 0"}},
		{"enter never allows", []string{"s", "wait", "a", "enter"}, nil},
		{"not at once", []string{"s", "enter", "a", "space"}, nil},
		{"the focus goes back to Deny", []string{"a", "s", "wait", "space"}, []string{"one deny 0", "two deny 0", "three deny 0"}},
		{"always is for one", []string{"s", "wait", "w", "space"}, []string{"one deny 0", "two deny 0", "three deny 0"}},
		{"and back", []string{"s", "wait", "s", "wait", "a", "space"}, []string{"one allow-once 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at(t, func(t *testing.T) {
				other := question("other", "make")
				other.Request.Digest, other.CreatedMs = "of other arguments", other.CreatedMs+9
				d := newDesk(t, append(alike("one", "two", "three"), other)...)
				d.sees("2 identical calls wait, too; s: answer all")
				d.press("end")
				d.reads()
				for _, key := range tt.keys {
					if key == "wait" {
						d.reads()
						continue
					}
					d.press(key)
				}
				d.answered(tt.want...)
				if len(tt.want) == 3 {
					d.sees("3 identical calls: ", "Queue (1)")
				}
			})
		})
	}
}

// TestLateTwin: a call that came in after a person chose to answer all of them is not among them.
func TestLateTwin(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, alike("one", "two")...)
		d.press("end")
		d.reads()
		d.press("s")
		d.reads()
		d.sees("Deny all 2", "Allow all 2, each once", "the answer is for 2 identical calls")
		late := question("late", "make")
		late.CreatedMs += 5
		d.waiting["late"] = late
		d.tell(newsMsg{Calls: []Call{late}})
		d.press("a", "space")
		d.answered("one allow-once 0", "two allow-once 0")
		d.sees("Queue (1)", "2 identical calls: Allowed once", "[ Deny ]")
		d.press("space")
		d.answered("one allow-once 0", "two allow-once 0")
	})
}

// TestTwinThatIsNotOne: the gateway has the last word on what is identical.
func TestTwinThatIsNotOne(t *testing.T) {
	at(t, func(t *testing.T) {
		calls := alike("one", "two", "three")
		d := newDesk(t, calls...)
		d.waiting["two"] = question("two", "rm -rf ~")
		d.waiting["two"].Binding = "another"
		delete(d.waiting, "three")
		d.press("end")
		d.reads()
		d.press("s")
		d.reads()
		d.sees("[ Deny ]     Allow once")
		d.press("a", "space")
		d.answered("one allow-once 0")
	})
}

func TestPartOfTheAnswersRefused(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, alike("one", "two")...)
		d.press("end")
		d.reads()
		d.press("s")
		d.reads()
		d.fail = approval.ErrTooSoon
		d.press("a", "space")
		d.answered("one allow-once 0", "two allow-once 0")
		d.sees("1 of 2 identical calls answered; the others were not", "Queue (1)", "[ Deny ]")
	})
}

func TestKeptForLess(t *testing.T) {
	for _, tt := range []struct {
		name string
		keys []string
		sees string
		want []string
	}{
		{"for ten minutes", []string{"down", "t", "1", "0", "m", "enter", "space"}, "", []string{"one allow-always 0 for 10m0s, 0 uses"}},
		{"for three calls", []string{"down", "down", "u", "3", "enter", "space"}, "", []string{"one allow-always 1 for 0s, 3 uses"}},
		{"for both", []string{"down", "t", "2", "h", "enter", "u", "1", "enter", "space"}, "", []string{"one allow-always 0 for 2h0m0s, 1 uses"}},
		{"shown before it is pressed", []string{"down", "t", "1", "0", "m", "enter", "u", "3", "enter"}, "only for 10 min, for 3 more calls", nil},
		{"longer than proposed", []string{"down", "t", "2", "5", "h", "enter", "space"}, "Write a time such as 10m or 2h, at most 1 day.", nil},
		{"without a unit", []string{"down", "t", "1", "0", "enter"}, "Write a time such as", nil},
		{"no number", []string{"down", "u", "0", "enter"}, "Write a number of calls", nil},
		{"typed keys answer nothing", []string{"down", "t", "space", "space"}, "For how long", nil},
		{"left", []string{"down", "t", "5", "m", "esc", "space"}, "", []string{"one allow-always 0"}},
		{"taken back", []string{"down", "t", "5", "m", "enter", "t", "enter", "space"}, "", []string{"one allow-always 0"}},
		{"another proposal", []string{"down", "t", "5", "m", "enter", "down", "space"}, "", []string{"one allow-always 1"}},
		{"nothing chosen", []string{"t", "5"}, "Choose first what to save", nil},
		{"the allowlist has no end", []string{"down", "down", "down", "u"}, "cannot be kept for less", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at(t, func(t *testing.T) {
				one := question("one", "make")
				life := (24 * time.Hour).Milliseconds()
				one.Request.Proposals = []approval.Proposal{
					{Text: "this very command in this session", LifeMs: life},
					{Text: "this very command of this agent", LifeMs: life},
					{Text: "make, anywhere", Match: approval.Match{Entries: []toolward.CommandEntry{{Pattern: "/usr/bin/make"}}}},
				}
				d := newDesk(t, one)
				d.press("end")
				d.reads()
				d.press("w", "space")
				d.press(tt.keys...)
				if tt.sees != "" {
					d.sees(tt.sees)
				}
				d.answered(tt.want...)
			})
		})
	}
}

func TestLevels(t *testing.T) {
	var sources []string
	for i := range 30 {
		sources = append(sources, fmt.Sprintf("https://evil%d.example/\x1b[2J", i))
	}
	for _, tt := range []struct {
		name  string
		keys  []string
		level SessionLevel
		sees  string
		want  []string
	}{
		{"elevate", []string{"e", "y"}, SessionLevel{}, "At least elevated until somebody clears it", []string{"agent:coder:main at least elevated"}},
		{"lock down", []string{"l", "y"}, SessionLevel{}, "At least lockdown", []string{"agent:coder:main at least lockdown"}},
		{"asked first", []string{"l"}, SessionLevel{}, "Keep agent:coder:main at least at level lockdown", nil},
		{"no", []string{"e", "n", "l", "enter", "c", "space", "y"}, SessionLevel{}, "[3 Sessions]", nil},
		{"clear", []string{"c", "y"}, SessionLevel{Level: toolward.Elevated, Floor: "elevated; set by eve\x1b[2J"}, "Cleared: agent:coder:main", []string{`agent:coder:main cleared ""`}},
		{"what is cleared is shown", []string{"c"}, SessionLevel{Level: toolward.Elevated, Floor: "elevated; set by eve\x1b[2J", Suspicious: true}, "Floor: elevated; set by eve⟦U+001B⟧[2J", nil},
		{"sources stay", []string{"c", "y"}, SessionLevel{Sources: sources, Stamp: "s1"}, "Cleared", []string{`agent:coder:main cleared ""`}},
		{"sources that were not read", []string{"c", "s"}, SessionLevel{Sources: sources, Stamp: "s1"}, "Not all sources have been on the screen", nil},
		{"sources that were read", append(append([]string{"c"}, slices.Repeat([]string{"f"}, 12)...), "s"), SessionLevel{Sources: sources, Stamp: "s1"}, "Cleared", []string{`agent:coder:main cleared "s1"`}},
		{"no sources to forget", []string{"c", "s"}, SessionLevel{Stamp: "s1"}, "[3 Sessions]", nil},
		{"sources without a stamp", []string{"c", "s"}, SessionLevel{Sources: sources[:1]}, "Not changed", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at(t, func(t *testing.T) {
				d := newDesk(t)
				d.level = tt.level
				d.press("3")
				d.sees("e: elevate   l: lock down   c: clear")
				d.press(tt.keys...)
				d.sees(tt.sees)
				if !slices.Equal(d.levels, tt.want) {
					t.Errorf("done %q, want %q", d.levels, tt.want)
				}
			})
		})
	}
	at(t, func(t *testing.T) {
		d := newDesk(t)
		d.press("3", "l")
		d.fail = errors.New("it could not be recorded, so it was not done")
		d.press("y")
		d.sees("Not changed: it could not be recorded")
		d.press("l")
		d.tell(awayMsg{errors.New("gone")})
		d.press("y", "y")
		if len(d.levels) != 1 {
			t.Errorf("done %q", d.levels)
		}
	})
}

// TestHelpFits: all keys stand on the smallest screen that the console promises, 80 columns and 24 rows.
func TestHelpFits(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t)
		d.press("?")
		d.sees("Any key: back")
		for line := range strings.SplitSeq(helpText, "\n") {
			d.sees(line)
		}
	})
}
