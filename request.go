package toolward

import (
	"cmp"
)

// Request is a call after decoding, as every later step sees it. It is shared and must not be changed.
type Request struct {
	Call   Call
	Tool   *Tool
	Params Params
	Digest string // Params.Digest of this call
	Level  Level
	Inputs LevelInputs
	Facts  Facts
	Seen   bool // a person said yes to this very call, and saw it; known when it runs
}

// Host is where the call runs: where its tool says, else where the call says.
func (r *Request) Host() Host { return cmp.Or(r.Facts.Host, r.Call.Host) }

// Facts is what a call would touch, as its tool would touch it. Decisions are made on facts, records keep them,
// and the tool runs on them.
type Facts struct {
	Action     string           // the tool's action in lower case, letters and digits only; "" if it has none
	Targets    []Target         // files and directories
	Hosts      []string         // "scheme://host:port" of every address
	Listed     string           // configuration key by which the operator lists every one of Hosts for this tool; "" if none does
	Recipients []string         // "channel:account:target"
	TargetID   string           // session, agent, node or process that the call is aimed at
	Host       Host             // where it will run, if that is not where the call says
	HostWhy    string           // by which rule or request it runs there, for people
	Sandbox    string           // name of the sandbox that it works in; "" if it is not confined
	Command    string           // shell text, if the call runs one
	Analysis   *CommandAnalysis // of the command; nil if nobody looked at it
	For        string           // text of the command that a connection is made for, for people; it decides nothing
	URLs       []string         // as given
	Outbound   []string         // texts that leave the machine: bodies, messages, queries
	Elevated   bool             // asks for more rights than the host gives by itself
	Mutates    bool             // changes state
	Deletes    int              // files it deletes
	Takes      []Take           // what it would delete or write over, for the keeper: it decides nothing else
	BrowserOn  string           // sandbox, host or node, for browser calls
	Scope      string           // self, tree or other, for calls about sessions

	// Bound holds what an approval is bound to beyond parameters and targets, such as an environment hash.
	Bound []string
	// Findings are what the tool itself saw wrong in the arguments.
	Findings []Finding
	// External is where content that strangers wrote will come from if the call runs; it marks the session then.
	External []string
	// Prepared carries the tool's own parsed form of the call from the decision to the run, so that nothing is
	// parsed twice. Only the tool itself looks inside.
	Prepared any
}
