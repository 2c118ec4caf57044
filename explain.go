package toolward

import (
	"context"
	"errors"
)

// Trace is the explanation of a decision.
type Trace struct {
	Tool     string      `json:"tool"`
	Verdict  Verdict     `json:"verdict"`
	Code     Code        `json:"code,omitempty"` // with Deny
	Via      string      `json:"via,omitempty"`  // with Allow: class, or grant <id>
	Level    Level       `json:"level"`
	Host     Host        `json:"host,omitempty"`    // where a command would run
	HostWhy  string      `json:"hostWhy,omitempty"` // by which rule or request
	Row      string      `json:"row,omitempty"`
	Class    Class       `json:"class"`
	Severity Severity    `json:"severity"`
	Digest   string      `json:"digest,omitempty"`
	Findings []Finding   `json:"findings,omitempty"`
	Reasons  []Reason    `json:"reasons,omitempty"`
	Hooks    []HookRun   `json:"hooks,omitempty"` // with ExplainOptions.Hooks: what plug-ins did
	Steps    []TraceStep `json:"steps"`

	// Question is the call as it was read and judged, for an approver to show; nil if it was not judged.
	Question *Question `json:"-"`
}

// TraceStep is what one step of admission said.
type TraceStep struct {
	Name   string `json:"name"`
	Result string `json:"result"` // "passed", or the refusal in words
}

// ExplainOptions says how far an explanation goes.
type ExplainOptions struct {
	Hooks bool // call plug-ins too
}

// Explain walks the steps of Admit without asking, running, recording, using up a grant or (by default) calling
// plug-ins, and says what would happen. Without plug-ins its verdict is Admit's: Allow where Admit gives a pass at
// once, Ask where it asks people, Deny where it refuses. Whether people would be asked at all — somebody is there,
// nobody has said no to the same call before — is known only when they are: Admit may refuse what is Ask here.
func (g *Gateway) Explain(ctx context.Context, call Call, opts ExplainOptions) Trace {
	trace := &Trace{Tool: call.Tool}
	call.Approval = ""
	a := &admission{gateway: g, call: call, dry: true, hooksOff: !opts.Hooks, trace: trace}
	err := a.run(ctx)
	if a.request != nil {
		trace.Tool, trace.Digest, trace.Level = a.request.Tool.Name, a.request.Digest, a.request.Level
		if a.request.Facts.Command != "" {
			trace.Host, trace.HostWhy = a.request.Host(), a.request.Facts.HostWhy
		}
	}
	j := a.judged
	trace.Row, trace.Class, trace.Severity = j.Row, j.Class.Class, j.Class.Severity
	trace.Findings, trace.Reasons, trace.Hooks = j.Findings, j.Reasons, a.hookRuns
	if a.weighed != nil {
		trace.Question = &Question{Request: a.request, Judgment: j}
	}
	switch {
	case err != nil:
		refusal := refusalOf(call.Tool, CodeInternal, err)
		trace.Verdict, trace.Code = Deny, refusal.Code
		trace.Reasons = append(trace.Reasons, missingReasons(trace.Reasons, refusal.Reasons)...)
	case a.via != "":
		trace.Verdict, trace.Via = Allow, a.via
	default:
		trace.Verdict = Ask
	}
	return *trace
}

// note adds a step to the explanation, if there is one.
func (a *admission) note(name string, err error) {
	if a.trace == nil {
		return
	}
	result := "passed"
	if err != nil {
		result = err.Error()
	}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		result = string(refusal.Code) + ": " + refusal.Message()
	}
	a.trace.Steps = append(a.trace.Steps, TraceStep{Name: name, Result: result})
}
