// Package session knows what conversations have been exposed to and how full their context is, and computes from it
// how tense they are.
//
// Rules fall out of a full context, and what strangers wrote may hold instructions; both together are how an agent is
// hijacked. So the level comes from counters that the model cannot talk about, not from what it says. [Tracker]
// implements toolward.Sessions.
package session

import (
	"math"

	"github.com/toolward/toolward"
)

// HighWater is the share of the context window above which a context counts as full. It may only be lowered.
const HighWater = 0.8

// Signals are what a level is computed from. The zero value knows nothing and is at least elevated.
type Signals struct {
	ContextTokens float64 // tokens in the context; NaN or negative: unknown
	ContextWindow float64 // tokens that fit; not above zero: unknown
	Compacted     bool    // older text has been dropped or summarized
	External      bool    // strangers' text has been seen
	Suspicious    bool    // strangers' text looked like instructions
	Floor         toolward.Level
	Previous      toolward.Level // of the same run; Normal when there is none
	HighWater     float64        // 0: HighWater
}

// Compute makes a level of the signals, as docs/levels.md has it. It also says in words what raised the level.
func Compute(s Signals) (toolward.Level, []string) {
	level, reasons := toolward.Normal, []string(nil)
	raise := func(to toolward.Level, why string) {
		if to < level {
			level = to
		}
		reasons = append(reasons, why)
	}
	full := s.full()
	switch {
	case full == "" && !s.Compacted:
	case s.External && s.Compacted:
		raise(toolward.Lockdown, "the history was compacted and the session has seen content from outside")
	case s.External:
		raise(toolward.Lockdown, full+" and the session has seen content from outside")
	case s.Compacted:
		raise(toolward.Elevated, "the history was compacted")
	default:
		raise(toolward.Elevated, full)
	}
	if s.Suspicious && level == toolward.Normal {
		raise(toolward.Elevated, "content from outside looked like instructions")
	}
	if s.Floor < level {
		raise(s.Floor, "a person or an alarm raised the level")
	}
	if s.Previous < level {
		raise(s.Previous, "the level does not fall within a run")
	}
	return level, reasons
}

// full says why the context counts as full, or "". What is not known counts as the worse value: a client that hides
// its usage must not look emptier than one that tells.
func (s Signals) full() string {
	limit := s.HighWater
	if limit <= 0 || limit > HighWater {
		limit = HighWater
	}
	switch {
	case math.IsNaN(s.ContextTokens) || math.IsInf(s.ContextTokens, 0) || s.ContextTokens < 0:
		return "the context's size is unknown"
	case math.IsNaN(s.ContextWindow) || math.IsInf(s.ContextWindow, 0) || s.ContextWindow <= 0:
		return "the context window is unknown"
	case s.ContextTokens > limit*s.ContextWindow:
		return "the context is nearly full"
	}
	return ""
}
