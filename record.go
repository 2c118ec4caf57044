package toolward

import (
	"slices"
	"time"
)

// RecordID names a decision record.
type RecordID int64

// DecisionRecord is written before a call runs, and for every refusal.
type DecisionRecord struct {
	Time           time.Time
	Call           Call
	Tool           string
	Plugin         string // of the tool
	OwnerOnly      bool   // the tool is
	Digest         string
	DigestOriginal string // if hooks rewrote the arguments
	Params         Params
	Facts          Facts
	Judgment       Judgment
	First          Verdict   // the verdict before hooks rewrote, V1
	Policy         *Judgment // of the policy alone, about these facts at this level; nil if it was not asked
	Level          Level
	Inputs         LevelInputs
	Hooks          []HookRun
	Verdict        Verdict // final: Allow or Deny
	Code           Code    // with Deny
	Via            string  // class, grant <id>, approval <id>, client, shadow, denied
	Answer         Answer
	Revision       string          // policy revision
	Shadow         *ShadowJudgment // what the shadow policy says, if it differs from the policy in force
	Undo           string          // by what name people take the call back; "" if it writes to no workspace that is kept
	Cause          string          // internal error behind a refusal
}

// OutcomeRecord says what became of a call.
type OutcomeRecord struct {
	Time         time.Time
	Status       Status
	Duration     time.Duration
	Error        string
	ResultBytes  int
	SentBytes    int64  // that left through the call, if it made a connection
	ResultDigest string // hex SHA-256 over the result, "" if unknown
	External     []string
	ExitCode     *int // of the command that the call ran; nil if it ran none
}

// Status is the end of a call.
type Status string

// The ends of a call.
const (
	StatusOK      Status = "ok"
	StatusError   Status = "error"
	StatusAborted Status = "aborted"
	StatusDenied  Status = "denied"
	StatusUnused  Status = "unused"  // allowed, never started
	StatusUnknown Status = "unknown" // the client never reported an outcome
	StatusEvaded  Status = "evaded"  // the client ran outside what it was let run confined
	StatusLost    Status = "lost"    // a crash came between decision and outcome
)

func missingReasons(have, more []Reason) []Reason {
	var out []Reason
	for _, r := range more {
		if !slices.Contains(have, r) {
			out = append(out, r)
		}
	}
	return out
}

func (a *admission) record(verdict Verdict, code Code) *DecisionRecord {
	r := &DecisionRecord{
		Time: time.Now(), Call: a.call, Tool: a.call.Tool, Judgment: a.judged, First: a.first.Verdict,
		Hooks: a.hookRuns, Verdict: verdict, Code: code, Via: a.via, Answer: a.answer, Shadow: a.shadow(), Undo: a.kept,
	}
	if a.snapshot != nil {
		r.Revision = a.snapshot.Revision()
	}
	if a.weighed != nil && a.weighed == a.request {
		r.Policy = &a.policy
	}
	if form := a.call.Form; form != nil {
		r.Plugin, r.OwnerOnly = form.Plugin, form.OwnerOnly
	}
	if a.request != nil {
		r.Plugin, r.OwnerOnly = a.request.Tool.Plugin, a.request.Tool.OwnerOnly
		r.Digest, r.Params, r.Facts = a.request.Digest, a.request.Params, a.request.Facts
		r.Level, r.Inputs = a.request.Level, a.request.Inputs
		if a.original != a.request.Digest {
			r.DigestOriginal = a.original
		}
	}
	return r
}
