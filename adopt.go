package toolward

import (
	"encoding/json"
	"fmt"
)

// Adopter is a Snapshot that can also judge tools which it does not hold itself: those of a client that runs its
// tools itself and brings their forms along (Call.Form).
type Adopter interface {
	// Adopt returns the form as the caller may use it, or nil and the reason. The same layers decide as for tools of
	// ours, by the form's name; a form with the name of a tool of ours also takes its class and its owner-only flag.
	//
	// A tool that is [Tool.Internal] is adopted if it is the very one that the policy was compiled with, for every caller that
	// no list denies it to: whoever only knows its name, a model or a client, has no way to call it.
	Adopt(Caller, *Tool) (*Tool, Reason)
}

// visible finds the tool that a call means, if its caller may see it by this snapshot.
func visible(s Snapshot, c *Call) (*Tool, Reason) {
	form := c.Form
	if form == nil {
		return s.Find(c.caller(), c.Tool)
	}
	if !c.ByClient || form.Name != c.Tool || form.Run != nil {
		// A form describes what a client does. Where Toolward runs the tool, only its own description counts:
		// else an adapter could have one thing judged and another one run.
		return nil, Reason{Layer: "form", Text: fmt.Sprintf("the form %q does not fit the call of %q", form.Name, c.Tool)}
	}
	adopter, ok := s.(Adopter)
	if !ok {
		return nil, Reason{Layer: "form", Text: "this policy knows only its own tools"}
	}
	tool, reason := adopter.Adopt(c.caller(), form)
	if tool != nil && tool.Name != form.Name {
		return nil, Reason{Layer: "form", Text: fmt.Sprintf("%q was taken for %q", form.Name, tool.Name)}
	}
	return tool, reason
}

// decodeFor decodes arguments by the tool's own decoder if it has one, else by the snapshot.
func decodeFor(s Snapshot, t *Tool, raw json.RawMessage) (Params, error) {
	if t.Decode != nil {
		return t.Decode(raw)
	}
	return s.Decode(t, raw)
}
