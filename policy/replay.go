package policy

import (
	"fmt"
	"slices"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/rule"
	"github.com/toolward/toolward/policy/visible"
)

// Selectors are the parameters that choose the row of the class table. Records keep them if they are plain words, so
// that another policy can judge a call again; "a.b" is the member b of the parameter a.
func Selectors() []string {
	return []string{"action", "elevated", "fn", "invokeCommand", "kind", "model", "request.fn", "request.kind"}
}

// PastRecipients is the [RecipientPolicy] for calls of the past. Who was known then is among the findings that their
// records keep, and cannot be asked again.
type PastRecipients struct{}

// Known is true: a recipient who was not known has a finding already.
func (PastRecipients) Known(toolward.SessionKey, string) bool { return true }

// Granted is never asked.
func (PastRecipients) Granted(*toolward.Call, string) bool { return false }

// Gap says why this policy cannot judge a call of the past by what its record keeps; "" if it can. The request has no
// tool, or judged is nil, if the call was refused before it was judged.
func (s *Snapshot) Gap(r *toolward.Request, judged *toolward.Judgment) string {
	form := r.Call.Form != nil
	switch {
	case r.Tool == nil || judged == nil:
		return ""
	case !form && s.Tool(r.Tool.Name) == nil:
		return fmt.Sprintf("the tool %s is not registered here", printable(r.Tool.Name))
	case classDeclared(r.Tool, judged.Row) && (!form || len(judged.Overrides) > 0):
		return "the tool told its class from arguments that are not kept"
	case s.readsContents(r):
		return "a rule that reads what is not kept is about such calls"
	case form && s.trusted[visible.NormalizeName(r.Tool.Plugin)] && judged.Row == unknownTool.name:
		return "what the server said about its tool was not believed then, and is not kept"
	}
	return ""
}

// classDeclared reports whether the row of a judgment stands for the class that the tool told by itself.
func classDeclared(t *toolward.Tool, row string) bool {
	if t.Plugin != "" {
		return row == trustedHint.name
	}
	if row != t.Name {
		return false
	}
	for _, l := range classTable() {
		if l.tool == t.Name {
			return false
		}
	}
	return true
}

// notKept are the variables of conditions that hold contents, which records do not keep.
var notKept = []string{"params", "facts.command", "facts.outbound", "facts.targets.path", "facts.urls"}

// ContentRule is a rule that cannot be tried on records, because it reads contents.
type ContentRule struct {
	Name  string   `json:"name"`
	Reads []string `json:"reads"` // the variables that records do not keep
}

// ContentRules lists the rules that cannot be tried on records. What they would say about the calls that they are about
// is not known; Gap names these calls.
func (s *Snapshot) ContentRules() []ContentRule {
	var out []ContentRule
	for _, r := range s.rulesOf.all {
		if len(r.contents) > 0 {
			out = append(out, ContentRule{r.Name, r.contents})
		}
	}
	return out
}

// contentsOf are the variables of a condition that records do not keep.
func contentsOf(c *rule.Condition) []string {
	return slices.DeleteFunc(c.Reads(), func(name string) bool { return !slices.Contains(notKept, name) })
}

// readsContents reports whether a rule that reads contents is about the call.
func (s *Snapshot) readsContents(r *toolward.Request) bool {
	rules := s.rulesOf.of(r.Tool.Name, r.Tool.Plugin)
	if rules == nil {
		return false
	}
	reads := func(a *actionRules) bool {
		for then := range thenCount {
			if slices.ContainsFunc(a.of(then), func(r *compiledRule) bool { return len(r.contents) > 0 }) {
				return true
			}
		}
		return false
	}
	sub := subject{tool: r.Tool.Name, params: r.Params, elevated: r.Facts.Elevated}
	sub.readParams(r.Facts.Action)
	precise, general := sub.actionKeys()
	return reads(rules.any) || reads(rules.byAction[precise]) || reads(rules.byAction[general])
}
