package toolward

import (
	"context"
	"encoding/json"
	"strings"
)

// Tool is something an agent can call.
type Tool struct {
	Name        string          // normal form: lower case, `[a-z0-9][a-z0-9_.:/-]{0,127}`
	Description string          // shown to the model
	Schema      json.RawMessage // JSON Schema of the arguments; validation always uses this one
	OwnerOnly   bool            // invisible to everybody but the owner
	Plugin      string          // id of the plug-in or MCP server that brought the tool; "" for Toolward's own
	Internal    bool            // calls of it are made by Toolward's own parts only: nobody sees it or finds it by its name; see Adopter
	Optional    bool            // of a plug-in: there only for callers one of whose allow lists names the tool, its plug-in or group:plugins

	// Declared is the class of a tool that the class table does not know. Only tools compiled into the binary may
	// declare one: policy ignores it when Plugin is set, because a plug-in's word about itself is a claim. (With
	// teg.mcp.<server>.trustHints a server's "safe" counts as safe from elevated.)
	Declared func(Params) Classification

	// Decode turns raw arguments into parameters in place of the policy's decoding by Schema; errors are
	// *InvalidArgs. Only forms of a client's tools have one (Call.Form); nil for all others.
	Decode func(json.RawMessage) (Params, error)

	// Facts finds out what a call would touch, without touching it. It is called at least once for every call and
	// again before a call that waited; the same call must give the same facts. Nil: nothing to find out.
	Facts func(context.Context, *Request) (Facts, error)

	// Diff shows what a call would change, as a unified diff of at most 64 KiB. Called only when people are asked.
	Diff func(context.Context, *Request) (string, error)

	// Run executes an admitted call, using exactly the parameters and targets in the request. It is reachable
	// through Pass.Run only. Nil for tools that the client runs itself.
	Run func(context.Context, *Request) (Result, error)
}

// NormalToolName brings a tool's name, or an entry of a list of tools, to its normal form: trimmed, lower case, then
// aliases of whole names.
func NormalToolName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	switch name {
	case "bash":
		return "exec"
	case "apply-patch":
		return "apply_patch"
	}
	return name
}

// NormalAction is the form in which actions are compared: lower case, letters and digits only, so that send-keys,
// send_keys and sendKeys are one. Characters beyond ASCII are kept: a look-alike letter or an invisible character
// must not turn an unknown action into a known one.
func NormalAction(action string) string {
	plain := true
	for _, c := range []byte(action) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			plain = false
			break
		}
	}
	if plain {
		return action
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 0x80, r >= 'a' && r <= 'z', r >= '0' && r <= '9', r < 0x20:
			return r
		}
		return -1
	}, action)
}

// Classification is how risky one call is before the session's level and the findings are considered.
type Classification struct {
	Class    Class
	From     Level // for Safe: the level from which on it asks, Elevated or Lockdown; for the others Normal
	Severity Severity
	Grant    GrantKind // what a person's "always" can be bound to
}

// GrantKind says by what a grant recognizes later calls; "" means that no grant is possible.
type GrantKind string

// The kinds of grants.
const (
	GrantNone      GrantKind = ""
	GrantExact     GrantKind = "exact"
	GrantPath      GrantKind = "path"
	GrantHost      GrantKind = "host"
	GrantRecipient GrantKind = "recipient"
	GrantSession   GrantKind = "session"
	GrantAgent     GrantKind = "agent"
	GrantNode      GrantKind = "node"
	GrantProcess   GrantKind = "process"
	GrantExec      GrantKind = "exec"
)

// Result is what a tool gave back.
type Result struct {
	Content    []Content
	Structured json.RawMessage // optional machine-readable form
	IsError    bool            // the tool ran and says it failed
	External   []string        // where content from outside came from; marks the session
	Running    <-chan struct{} // closed when what the call left running has ended; nil if it left nothing
	ExitCode   *int            // of the command that the tool ran to its end; nil if it ran none, or a signal ended it
}

// Content is one block of a result.
type Content struct {
	Text string
	MIME string // set for binary content
	Data []byte // binary content, for instance an image
}

// TextResult is a result of one text block.
func TextResult(text string) Result { return Result{Content: []Content{{Text: text}}} }

// ErrorResult is a failed result of one text block.
func ErrorResult(text string) Result {
	return Result{Content: []Content{{Text: text}}, IsError: true}
}

// Bytes is the size of the result's content.
func (r Result) Bytes() int {
	n := len(r.Structured)
	for _, c := range r.Content {
		n += len(c.Text) + len(c.Data)
	}
	return n
}
