package toolward

import (
	"cmp"
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

// Request is a call after decoding, as every later step sees it. It is shared and must not be changed.
type Request struct {
	Call   Call
	Tool   *Tool
	Params Params
	Digest string // Params.Digest of this call
	Level  Level
	Inputs LevelInputs
	Facts  Facts
}

// Host is where the call runs: where its tool says, else where the call says.
func (r *Request) Host() Host { return cmp.Or(r.Facts.Host, r.Call.Host) }

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
