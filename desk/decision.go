package desk

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolward/toolward"
)

// DecisionRecord is what people are shown of a decision in the log. The log has redacted and escaped it.
type DecisionRecord struct {
	Verdict string `json:"verdict"`
	Via     string `json:"via"`
	Code    string `json:"code"`
	Agent   string `json:"agentId"`
	Preview string `json:"preview"`
	Digest  string `json:"digest"`
	Level   string `json:"level"`
	Host    string `json:"host"`
	Undo    string `json:"undo"`
	Facts   struct {
		HostWhy string `json:"hostWhy"`
		Action  string `json:"action"`
		Targets []struct {
			Path string `json:"path"`
		} `json:"targets"`
		Hosts   []string `json:"hosts"`
		Sandbox string   `json:"sandbox"`
	} `json:"facts"`
	Approval struct {
		Decision   string `json:"decision"`
		ResolvedBy string `json:"resolvedBy"`
		Reason     string `json:"reason"`
	} `json:"approval"`
}

// refusals says in words why a call was refused, for the person; the model is told less.
var refusals = map[toolward.Code]string{
	toolward.CodeNoApprovalChannel: "nobody was there to answer",
	toolward.CodeApprovalTimeout:   "not answered in time",
	toolward.CodeApproverAway:      "three calls in a row went unanswered",
	toolward.CodeDeniedByUser:      "denied",
	toolward.CodeDeniedBefore:      "the same call was denied before",
	toolward.CodeBlocked:           "blocked by policy",
	toolward.CodeBlockedInLockdown: "blocked in lockdown",
	toolward.CodeValidation:        "its arguments are dangerous",
	toolward.CodeInvalidArgs:       "its arguments are not valid",
	toolward.CodeHookBlock:         "a plug-in blocked it",
	toolward.CodeHookError:         "a plug-in failed",
	toolward.CodeHookTimeout:       "a plug-in did not answer in time",
	toolward.CodeAuditUnavailable:  "it could not be recorded",
	toolward.CodeNoSandbox:         "its sandbox could not be used",
	toolward.CodeNotKept:           "what it would change could not be kept for taking it back",
	toolward.CodeTargetChanged:     "its target changed meanwhile",
	toolward.CodeLoop:              "it repeated without progress",
	toolward.CodeAnomaly:           "the session behaves unusually",
	toolward.CodeUnknownTool:       "there is no such tool for this agent",
	toolward.CodeInternal:          "an internal error",
}

// DecisionWords says in one line each what a decided call was aimed at, and who or what decided. It takes the record
// as GET /v1/decisions lists it; the words are not made safe for showing.
func DecisionWords(record []byte) (about, how string, err error) {
	var d DecisionRecord
	if err := json.Unmarshal(record, &d); err != nil {
		return "", "", fmt.Errorf("a decision of the record: %w", err)
	}
	return AboutOf(&d), HowOf(&d), nil
}

// AboutOf is what the call was aimed at, in one line.
func AboutOf(d *DecisionRecord) string {
	var args struct {
		Command string `json:"command"`
		Path    string `json:"path"`
		URL     string `json:"url"`
		Pattern string `json:"pattern"`
	}
	text := d.Facts.Action
	if json.Unmarshal([]byte(d.Preview), &args) == nil {
		for _, candidate := range []string{args.Command, args.Path, args.URL, args.Pattern} {
			if candidate != "" {
				text = candidate
				break
			}
		}
	}
	if text == "" && len(d.Facts.Targets) > 0 {
		text = d.Facts.Targets[0].Path
	}
	return Shortened(text)
}

// HowOf says who or what decided.
func HowOf(d *DecisionRecord) string {
	by := d.Approval.ResolvedBy
	switch kind, _, _ := strings.Cut(d.Via, " "); {
	case d.Verdict == toolward.Allow.String() && kind == "approval":
		return "Allowed by " + by
	case d.Verdict == toolward.Allow.String() && kind == "grant":
		return "Allowed by a grant"
	case d.Verdict == toolward.Allow.String() && kind == "shadow":
		return "Ran unasked: shadow mode"
	case d.Verdict == toolward.Allow.String():
		return "Allowed by policy"
	case d.Code == string(toolward.CodeDeniedByUser) && d.Approval.Reason != "":
		return "Denied by " + by + ": " + d.Approval.Reason
	case d.Code == string(toolward.CodeDeniedByUser):
		return "Denied by " + by
	}
	if why, ok := refusals[toolward.Code(d.Code)]; ok {
		return "Refused: " + why
	}
	return "Refused"
}

// Shortened is a text for one line, marked where it was cut.
func Shortened(text string) string {
	const most = 200
	if line, _, more := strings.Cut(text, "\n"); more {
		text = line + " …"
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
