package policy

import (
	"fmt"

	"github.com/toolward/toolward"
)

// Selectors are the parameters that choose the row of the class table. Records keep them if they are plain words, so
// that another policy can judge a call again; "a.b" is the member b of the parameter a.
func Selectors() []string {
	return []string{"action", "elevated", "fn", "invokeCommand", "kind", "model", "request.fn", "request.kind"}
}

// Gap says why this policy cannot judge a call of the past by what its record keeps; "" if it can. The request has no
// tool, or judged is nil, if the call was refused before it was judged.
func (s *Snapshot) Gap(r *toolward.Request, judged *toolward.Judgement) string {
	form := r.Call.Form != nil
	switch {
	case r.Tool == nil || judged == nil:
		return ""
	case !form && s.tools[r.Tool.Name] == nil:
		return fmt.Sprintf("the tool %s is not registered here", visible(r.Tool.Name))
	case classDeclared(r.Tool, judged.Row) && (!form || len(judged.Overrides) > 0):
		return "the tool told its class from arguments that are not kept"
	case form && s.trusted[NormalizeName(r.Tool.Plugin)] && judged.Row == unknownTool.name:
		return "what the server said about its tool was not believed then, and is not kept"
	}
	return ""
}

// classDeclared reports whether the row of a judgement stands for the class that the tool told by itself.
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
