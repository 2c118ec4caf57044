package policy

import (
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// line is one line of the class table as it is written down.
type line struct {
	tool    string
	actions []string // squashed; nil: whatever the action
	when    condition
	toolward.Classification
	name string // for people and records, such as "write: workspace"
}

// row is a line with its reason in words, so that nothing is put into words on the path of a call.
type row struct {
	line
	reason toolward.Reason
}

func (l line) explained() row {
	text := "a person decides about calls of this kind"
	switch {
	case l.Class == toolward.Blocked:
		text = "calls of this kind are blocked unless the operator enables them by name"
	case l.Class == toolward.Safe && l.From == toolward.Lockdown:
		text = "calls of this kind run until the session is in lockdown"
	case l.Class == toolward.Safe:
		text = "calls of this kind run until the session's level is elevated"
	}
	text += " (" + l.name + ")"
	return row{l, toolward.Reason{Layer: "class", Rule: l.name, Text: text}}
}

// condition is a further test of a row; nil is always true. It gets a copy of the subject, which stays on the stack.
type condition func(subject) bool

func (r *row) hits(s *subject) bool {
	if r.actions != nil && !slices.Contains(r.actions, s.action) {
		return false
	}
	return r.when == nil || r.when(*s)
}

// at holds when the strictest target is at one of the places.
func at(places ...place.Zone) condition {
	return func(s subject) bool { return s.placed && slices.Contains(places, s.place) }
}

// withURL holds when the call aims at a URL and at no file.
func withURL(s subject) bool { return s.urls && !s.placed }

// withURLAnd holds when the call aims at a URL and the further condition holds.
func withURLAnd(c condition) condition { return func(s subject) bool { return s.urls && c(s) } }

// inTree holds when the call is about its own session or its descendants.
func inTree(s subject) bool { return s.scope == "self" || s.scope == "tree" }

// ownScope holds unless the call reaches into another session.
func ownScope(s subject) bool { return s.scope == "" || inTree(s) }

// inSandbox holds when the browser is the sandboxed one. An unknown browser is the host's: it holds the user's
// logins.
func inSandbox(s subject) bool { return s.browserOn == "sandbox" }

// toPresentConversation holds when a message goes to the conversation that the call came from; the tool says so by
// the scope "self".
func toPresentConversation(s subject) bool { return s.scope == "self" }

func isElevated(s subject) bool { return s.elevated }

// changesModel holds when session_status is used to change the model.
func changesModel(s subject) bool {
	if !s.params.Has("model") {
		return false
	}
	text, ok := s.params.String("model")
	return !ok && s.params.Value("model") != nil || strings.TrimSpace(text) != ""
}

// actIs holds when any of the kinds of a browser act is the given one.
func actIs(kind string) condition {
	return func(s subject) bool { return slices.Contains(s.actKinds(), kind) }
}

// actOnly holds when the act has a kind, only listed ones, and runs in the sandbox.
func actOnly(kinds ...string) condition {
	return func(s subject) bool {
		all := s.actKinds()
		for _, kind := range all {
			if !slices.Contains(kinds, kind) {
				return false
			}
		}
		return len(all) > 0 && inSandbox(s)
	}
}

// invokes holds when a nodes call sends one of the commands in any spelling. It is for rows that refuse.
func invokes(commands ...string) condition {
	squashed := make([]string, len(commands))
	for i, c := range commands {
		squashed[i] = toolward.NormalAction(c)
	}
	return func(s subject) bool { return slices.Contains(squashed, toolward.NormalAction(s.invoked())) }
}

// invokesExactly holds when a nodes call sends one of the commands as written; a command that ends in "." stands
// for every command below it. It is for rows that let through.
func invokesExactly(commands ...string) condition {
	return func(s subject) bool {
		sent := s.invoked()
		for _, c := range commands {
			if sent == c {
				return true
			}
			if rest, ok := strings.CutPrefix(sent, c); ok && strings.HasSuffix(c, ".") && plainCommand(rest) {
				return true
			}
		}
		return false
	}
}

func plainCommand(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return text != ""
}

// safe is a row that runs until the session reaches the level.
func safe(from toolward.Level, severity toolward.Severity, grant toolward.GrantKind) toolward.Classification {
	return toolward.Classification{Class: toolward.Safe, From: from, Severity: severity, Grant: grant}
}

// approval is a row that people or a grant decide.
func approval(severity toolward.Severity, grant toolward.GrantKind) toolward.Classification {
	return toolward.Classification{Class: toolward.NeedsApproval, From: toolward.Normal, Severity: severity, Grant: grant}
}

// blocked is a row that is refused unless the operator enables it by name.
var blocked = toolward.Classification{Class: toolward.Blocked, From: toolward.Normal, Severity: toolward.Critical}

// do squashes a list of actions written as their tools write them.
func do(actions string) []string {
	list := strings.Fields(actions)
	for i, a := range list {
		list[i] = toolward.NormalAction(a)
	}
	return list
}
