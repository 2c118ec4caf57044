package plugin

import (
	"slices"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/schema"
)

// Name is the name of a hook, as configuration and records write it.
type Name string

// The hooks around a tool call.
const (
	BeforeToolCall    Name = "before_tool_call"
	AfterToolCall     Name = "after_tool_call"
	ToolResultPersist Name = "tool_result_persist"
)

// CallContext says whose call it is. Every field but the first three may be empty: that means "not known".
type CallContext struct {
	AgentID    string
	SessionKey toolward.SessionKey
	ToolName   string
	RunID      string
	ToolCallID string
	ByClient   bool // the client runs the tool itself, with the arguments that it sent: a rewrite refuses the call
	Requester  Requester
}

// Requester is the person behind a call, as far as an adapter proved it. What is missing is not proven; it is never "no".
type Requester struct {
	Channel, AccountID, SenderID string
	SenderIsOwner                bool
}

func contextOf(r *toolward.Request) CallContext {
	c := &r.Call
	return CallContext{
		AgentID: c.Caller.Agent, SessionKey: c.Session, ToolName: toolward.NormalToolName(r.Tool.Name),
		RunID: c.Run, ToolCallID: c.ID, ByClient: c.ByClient,
		Requester: Requester{c.Caller.Channel, c.Caller.Account, c.Caller.Sender, c.Caller.Owner},
	}
}

// BeforeToolCallEvent is a call that the gate did not refuse.
type BeforeToolCallEvent struct {
	Call   CallContext
	Params toolward.Params // as earlier handlers left them; cannot be written to
}

// BeforeToolCallResult is what a handler wants. The zero value wants nothing.
type BeforeToolCallResult struct {
	Block           bool   // refuse the call; final
	BlockReason     string // with Block: for the model; "" for a default text
	RequireApproval bool   // a person must decide, on the parameters as they are now
	Params          Changes
}

// Changes are parameters that a handler sets. The zero value changes nothing.
type Changes struct {
	text string // a canonical JSON object
	err  error
}

// Change sets parameters: each name replaces the parameter of that name as a whole. The map is read before Change
// returns and never again: a goroutine that keeps it cannot change what people approve and what runs.
func Change(params map[string]any) Changes {
	if params == nil {
		return Changes{}
	}
	text, err := schema.Canonical(params)
	return Changes{string(text), err}
}

func (c Changes) none() bool { return c.text == "" && c.err == nil }

// ToolResultEvent is the result of a call on its way to the agent.
type ToolResultEvent struct {
	Call    CallContext
	Message toolward.Result // the handler's own copy
}

// Replacement is what the agent gets in the place of a result. The zero value leaves the result as it is.
type Replacement struct{ result *toolward.Result }

// Replace puts another result in the place of the one in the event. It is copied before Replace returns. What marks
// the session as having seen content from outside (External) stays as it was.
func Replace(r toolward.Result) Replacement {
	copied := copyResult(r)
	return Replacement{&copied}
}

// AfterToolCallEvent says what became of a call.
type AfterToolCallEvent struct {
	Call     CallContext
	Params   toolward.Params  // those that were executed, if the call ran
	Status   toolward.Status  // ok, error, aborted, denied, …
	Result   *toolward.Result // as the tool gave it; nil if the gateway did not see it. The handler's own copy
	Error    string           // "" if the call succeeded
	Duration time.Duration    // of the execution; 0 if it is not known or there was none
}

// copyResult copies everything that could be written to.
func copyResult(r toolward.Result) toolward.Result {
	r.Content = slices.Clone(r.Content)
	for i := range r.Content {
		r.Content[i].Data = slices.Clone(r.Content[i].Data)
	}
	r.Structured = slices.Clone(r.Structured)
	r.External = slices.Clone(r.External)
	return r
}
