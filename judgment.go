package toolward

import (
	"slices"
	"time"
)

// Reason says why a verdict is what it is.
type Reason struct {
	Layer   string `json:"layer"`             // the step or policy layer, such as "tools.agent (coder)"
	Rule    string `json:"rule,omitempty"`    // the configuration key or class row that decided
	Matched string `json:"matched,omitempty"` // the value that matched
	Text    string `json:"text"`              // in words, for people
}

// Finding is what validation saw in the arguments.
type Finding struct {
	Code   string `json:"code"` // such as path_escape
	Effect Effect `json:"effect"`
	Detail string `json:"detail,omitempty"` // for people and the record; never sent to the model
}

// Judgment is what policy says about a request at its level. The zero value denies.
type Judgment struct {
	Verdict     Verdict
	Code        Code // why it is refused; set when Verdict is Deny
	Finding     string
	Class       Classification
	Row         string        // the row of the class table that decided
	Overrides   []string      // configuration keys that changed the row
	AllowAlways bool          // people may answer "always"
	GrantOK     bool          // a matching grant turns Ask into Allow
	Listed      bool          // with Allow: the allowlist of commands says so
	Wait        time.Duration // how long people may take for it; 0: as long as for any call
	Unanswered  bool          // with Ask: the call runs if nobody answers, as the operator wants for what is on the list
	Findings    []Finding
	Reasons     []Reason
}

// LevelInputs are the signals that a level was computed from.
type LevelInputs struct {
	ContextTokens int64    `json:"contextTokens"` // -1: unknown
	ContextWindow int64    `json:"maxContextTokens"`
	Compacted     bool     `json:"compacted"`
	External      bool     `json:"external"`
	Suspicious    bool     `json:"suspicious"`
	Floor         Level    `json:"floor"`
	Reasons       []string `json:"reasons,omitempty"`
}

// Exposure is what a session has just been exposed to.
type Exposure struct {
	External []string // sources of content that strangers wrote
}

// needPerson asks people whatever was judged before, unless that refuses. No grant and no time-out answers in their place.
func (j *Judgment) needPerson(why ...Reason) {
	j.Verdict = Stricter(j.Verdict, Ask)
	j.GrantOK, j.AllowAlways, j.Unanswered = false, false, false
	j.Reasons = append(slices.Clip(j.Reasons), why...)
}

// stricterJudgment keeps the second judgment, which is about what will run, but never lets it ask less than the
// first did.
func stricterJudgment(first, second Judgment) Judgment {
	second.Verdict = Stricter(first.Verdict, second.Verdict)
	second.Class.Severity = Graver(first.Class.Severity, second.Class.Severity)
	if first.Verdict == Ask {
		second.GrantOK = second.GrantOK && first.GrantOK
		second.AllowAlways = second.AllowAlways && first.AllowAlways
		second.Unanswered = second.Unanswered && first.Unanswered
		second.Reasons = append(slices.Clip(first.Reasons), second.Reasons...)
		second.Findings = append(slices.Clip(first.Findings), second.Findings...)
	}
	return second
}
