package toolward

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Code says in one word why a call was refused.
type Code string

// The refusal codes. docs/develop/steps.md says which step refuses with which; CodeInternal is for what should never happen.
const (
	CodeNoApprovalChannel Code = "no_approval_channel"
	CodeApprovalTimeout   Code = "approval_timeout"
	CodeApproverAway      Code = "approver_away"
	CodeDeniedByUser      Code = "denied_by_user"
	CodeDeniedBefore      Code = "denied_before"
	CodeBlocked           Code = "blocked"
	CodeBlockedInLockdown Code = "blocked_in_lockdown"
	CodeValidation        Code = "validation"
	CodeInvalidArgs       Code = "invalid_args"
	CodeHookBlock         Code = "hook_block"
	CodeHookError         Code = "hook_error"
	CodeHookTimeout       Code = "hook_timeout"
	CodeAuditUnavailable  Code = "audit_unavailable"
	CodeTargetChanged     Code = "target_changed"
	CodeNoSandbox         Code = "sandbox_unavailable"
	CodeNotKept           Code = "undo_unavailable"
	CodeLoop              Code = "loop"
	CodeAnomaly           Code = "anomaly"
	CodeUnknownTool       Code = "unknown_tool"
	CodeInternal          Code = "internal_error"
)

// Retry tells the model whether trying again can help.
type Retry string

// The values of Retry.
const (
	RetryNever  Retry = "never"
	RetryLater  Retry = "later"
	RetryChange Retry = "change"
)

// advice holds, for every code, what the model is told. It never names configuration keys, patterns or thresholds:
// those would teach evasion.
var advice = map[Code]struct {
	retry Retry
	text  string
}{
	CodeNoApprovalChannel: {RetryLater, "nobody can approve it now. Go on without it and tell the user what is waiting"},
	CodeApprovalTimeout:   {RetryLater, "nobody answered in time. Do not repeat it now"},
	CodeApproverAway:      {RetryLater, "the person who approves is away. Do not repeat it now"},
	CodeDeniedByUser:      {RetryNever, "a person declined it. Do not try the same effect another way; ask the user"},
	CodeDeniedBefore:      {RetryNever, "a person declined the same call before. Do not try the same effect another way; ask the user"},
	CodeBlocked:           {RetryNever, "it is not available here"},
	CodeBlockedInLockdown: {RetryNever, "it is not available here at present"},
	CodeValidation:        {RetryChange, "its arguments were refused. Correct them if they were a mistake"},
	CodeInvalidArgs:       {RetryChange, "its arguments are not valid"},
	CodeHookBlock:         {RetryNever, "it was blocked"},
	CodeHookError:         {RetryLater, "an internal check failed"},
	CodeHookTimeout:       {RetryLater, "an internal check did not answer in time"},
	CodeAuditUnavailable:  {RetryLater, "it could not be recorded"},
	CodeTargetChanged:     {RetryLater, "what it is about changed between the decision and the run"},
	CodeNoSandbox:         {RetryLater, "the sandbox that it is to run in cannot be used. Do not repeat it now; tell the user"},
	CodeNotKept:           {RetryLater, "what it would change could not be kept, so nobody could take it back. Do not repeat it now; tell the user"},
	CodeLoop:              {RetryNever, "it repeats without progress. Stop and report to the user"},
	CodeAnomaly:           {RetryNever, "the session behaves unusually. Stop and report to the user"},
	CodeUnknownTool:       {RetryNever, "there is no such tool here"},
	CodeInternal:          {RetryLater, "an internal error stopped it"},
}

// Refusal is the error of a call that did not run.
type Refusal struct {
	Tool     string
	Code     Code
	Finding  string   // finding code, with CodeValidation
	Detail   string   // for the model: field and expected type, a person's or hook's own words
	Reasons  []Reason // for people
	Approval string   // id of the approval, if one was asked
	Cause    error    // for the log; never sent to the model
}

// Error says for people and logs what was refused and why.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("%s refused (%s): %s", r.Tool, r.Code, r.Message())
	if r.Cause != nil {
		text += ": " + r.Cause.Error()
	}
	return text
}

// Unwrap gives the internal cause.
func (r *Refusal) Unwrap() error { return r.Cause }

// Retry tells whether trying again can help.
func (r *Refusal) Retry() Retry {
	if a, ok := advice[r.Code]; ok {
		return a.retry
	}
	return RetryNever
}

// Message is what the model is told: that the call did not run, why, and what to do.
func (r *Refusal) Message() string {
	text := "The call did not run: "
	switch a, ok := advice[r.Code]; {
	case r.Code == CodeHookBlock && r.Detail != "":
		return text + r.Detail
	case !ok:
		text += "it was refused"
	default:
		text += a.text
	}
	if r.Finding != "" {
		text += " (" + r.Finding + ")"
	}
	if r.Detail != "" {
		return text + ": " + r.Detail
	}
	return text + "."
}

// MarshalJSON writes the answer that the model gets: {status, tool, code, message, retry}.
func (r *Refusal) MarshalJSON() ([]byte, error) {
	code := string(r.Code)
	return json.Marshal(struct {
		Status  string `json:"status"`
		Tool    string `json:"tool"`
		Code    string `json:"code"`
		Finding string `json:"finding,omitempty"`
		Message string `json:"message"`
		Retry   Retry  `json:"retry"`
	}{"denied", r.Tool, code, r.Finding, r.Message(), r.Retry()})
}

// Pending is returned instead of waiting when a detached call (Call.Detach) needs people, and to calls that have waited
// long enough for an approval that may wait for days. The caller comes back with the same call, with Call.Approval set
// to ID if it can carry it.
type Pending struct {
	Tool      string
	ID        string
	ExpiresAt time.Time
}

func (p *Pending) Error() string { return "approval " + p.ID + " is pending" }

// Message is what the model is told: that the call did not run yet, and how it gets the answer.
func (p *Pending) Message() string {
	return "The call did not run yet: a person decides about it, until " + p.ExpiresAt.UTC().Format(time.RFC3339) +
		" at the latest. Go on without it. To get the answer, make exactly the same call again later in this session; do not repeat it at once."
}

// MarshalJSON writes the answer that the model gets: {status, tool, approvalId, expiresAtMs, message, retry}.
func (p *Pending) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Status    string `json:"status"`
		Tool      string `json:"tool"`
		ID        string `json:"approvalId"`
		ExpiresMs int64  `json:"expiresAtMs"`
		Message   string `json:"message"`
		Retry     Retry  `json:"retry"`
	}{"approval-pending", p.Tool, p.ID, p.ExpiresAt.UnixMilli(), p.Message(), RetryLater})
}

// InvalidArgs is the error of Policy.Decode and Tool.Facts for arguments that are wrong in themselves.
type InvalidArgs struct {
	Field string // the parameter, "" for the whole
	Text  string // what is expected; shown to the model
}

func (e *InvalidArgs) Error() string {
	if e.Field == "" {
		return e.Text
	}
	return e.Field + ": " + e.Text
}

// refusalOf turns any error into a refusal, so that no caller can take an unknown error for anything but a refusal.
func refusalOf(tool string, code Code, err error) *Refusal {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	var invalid *InvalidArgs
	if errors.As(err, &invalid) {
		return &Refusal{Tool: tool, Code: CodeInvalidArgs, Detail: invalid.Error(), Cause: err}
	}
	return &Refusal{Tool: tool, Code: code, Cause: err}
}
