package policy

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/schema"
)

// Live holds the snapshot in force. The zero value refuses everything.
type Live struct {
	current atomic.Pointer[Snapshot]
}

var _ toolward.Policy = (*Live)(nil)

// NewLive starts with a compiled snapshot.
func NewLive(s *Snapshot) *Live {
	l := &Live{}
	l.Swap(s)
	return l
}

// Swap puts another snapshot in force. Calls that are under way are checked against it before they run.
func (l *Live) Swap(s *Snapshot) { l.current.Store(s) }

// Snapshot returns the snapshot in force.
func (l *Live) Snapshot() toolward.Snapshot {
	if s := l.current.Load(); s != nil {
		return s
	}
	return &Snapshot{}
}

// Snapshot is a compiled policy. It is immutable. The zero value shows no tool and denies every call.
type Snapshot struct {
	revision string
	tools    map[string]*toolward.Tool
	internal map[string]*toolward.Tool // those that nobody finds by their names
	schemas  map[*toolward.Tool]*schema.Schema
	agents   map[string]*agent // those that the configuration names
	anyAgent *agent            // all others

	rules    *ruleBook
	position map[*toolward.Tool]int // among rules.inventory.tools
	views    memo[toolward.Caller, *view]

	table      table
	overrides  overrides
	waits      overrides // teg.approval.waitMs
	rulesOf    ruleSet
	enabled    map[string]bool // blocked rows that may be asked for, as "tool.action"
	allowHosts map[string]bool
	trusted    map[string]bool // MCP servers whose read-only hints count
	around     Surroundings
}

var (
	_ toolward.Snapshot = (*Snapshot)(nil)
	_ toolward.Adopter  = (*Snapshot)(nil)
)

// agent is what the policy says about the callers of one agent.
type agent struct {
	scope         scope
	profile       *layer // nil if there is none
	sandbox       *layer
	sandboxLists  SandboxPolicy
	selfLimit     *layer // nil if there is none
	ownTools      bool
	patch         patchRule
	modes         modes.Modes
	workspaceOnly bool
	overrides     overrides // those of the agent alone
}

// keepsInWorkspace reports whether files outside the workspace are refused to a tool. A patch names its files inside
// its text, where people who are asked overlook them; it stays in the workspace unless the operator says otherwise.
func (a *agent) keepsInWorkspace(tool string) bool {
	return a.workspaceOnly || tool == "apply_patch" && a.patch.workspaceOnly
}

// agentOf finds the agent of a caller. A face that spells an id in another way must not get the caller out of the
// agent's own rules.
func (s *Snapshot) agentOf(c *toolward.Caller) *agent { return s.agentNamed(c.Agent, c.Session) }

// agentNamed is agentOf for a caller that may say only by its session which agent it is.
func (s *Snapshot) agentNamed(id string, session toolward.SessionKey) *agent {
	if id == "" {
		id = session.Agent()
	}
	if a, ok := s.agents[id]; ok {
		return a
	}
	if a, ok := s.agents[fold(id)]; ok {
		return a
	}
	return s.anyAgent
}

// Revision changes with the configuration and with the registered tools.
func (s *Snapshot) Revision() string { return s.revision }

// Tools lists what the caller sees, by name.
func (s *Snapshot) Tools(c toolward.Caller) []*toolward.Tool {
	a := s.agentOf(&c)
	if a == nil {
		return nil
	}
	return slices.Clone(s.view(a, &c).visible)
}

// Find returns the tool of a name if the caller sees it.
func (s *Snapshot) Find(c toolward.Caller, name string) (*toolward.Tool, toolward.Reason) {
	t := s.tools[name]
	if t == nil {
		t = s.tools[NormalizeName(name)]
	}
	if t == nil {
		return nil, toolward.Reason{Layer: "registry", Text: "no tool of that name is registered"}
	}
	if reason, hidden := s.hides(&c, t); hidden {
		return nil, reason
	}
	return t, toolward.Reason{}
}

// hides says why a caller does not see a registered tool.
func (s *Snapshot) hides(c *toolward.Caller, t *toolward.Tool) (toolward.Reason, bool) {
	a := s.agentOf(c)
	if a == nil {
		return toolward.Reason{Layer: "registry", Text: "no policy is loaded"}, true
	}
	v := s.view(a, c)
	if i, ok := s.position[t]; ok && v.seen.has(i) {
		return toolward.Reason{}, false
	}
	reason, hidden := v.hides(t)
	if reason.Layer == sandboxTools && s.around.WhyConfined != nil {
		// Most are surprised to be in a sandbox at all.
		if why := s.around.WhyConfined(*c); why != "" {
			reason.Text += fmt.Sprintf("; session %s: %s", c.Session, why)
		}
	}
	return reason, hidden
}

// Adopt judges a form of a client's tool by the same layers, by its name. A form with the name of a tool of ours
// takes its owner-only flag; its class goes by the name anyway.
func (s *Snapshot) Adopt(c toolward.Caller, form *toolward.Tool) (*toolward.Tool, toolward.Reason) {
	a := s.agentOf(&c)
	if a == nil {
		return nil, toolward.Reason{Layer: "registry", Text: "no policy is loaded"}
	}
	if form.Internal || isInternal(form.Name) {
		return s.adoptInternal(a, &c, form)
	}
	if err := checkForm(form); err != nil {
		return nil, toolward.Reason{Layer: "registry", Text: err.Error()}
	}
	ours := s.tools[form.Name]
	if !c.Owner && (ownerOnly(form) || ours != nil && ownerOnly(ours)) {
		return nil, ownerReason
	}
	v := s.view(a, &c)
	if reason, gone := v.pipeline.remover(form.Name, form.Plugin); gone {
		return nil, reason
	}
	if reason, gone := v.after(form); gone {
		return nil, reason
	}
	if ours != nil && ours.OwnerOnly && !form.OwnerOnly {
		adopted := *form
		adopted.OwnerOnly = true
		return &adopted, toolward.Reason{}
	}
	return form, toolward.Reason{}
}

// isInternal reports whether a name is that of an internal tool, whether or not one is registered.
func isInternal(name string) bool { return NormalizeName(name) == EgressTool }

// adoptInternal lets a part of Toolward call a tool of its own. Only the very tool that the policy was compiled with counts:
// a form that merely has its name comes from a client, which could spend its grants and raise its questions. Allow lists do
// not name it, because they say what a model sees; deny lists count.
func (s *Snapshot) adoptInternal(a *agent, c *toolward.Caller, form *toolward.Tool) (*toolward.Tool, toolward.Reason) {
	if s.internal[form.Name] != form {
		return nil, toolward.Reason{Layer: "registry", Text: "no tool of that name is registered"}
	}
	for _, l := range s.view(a, c).pipeline {
		if entry, denied := l.list.deny.match(form.Name, ""); denied {
			return nil, toolward.Reason{Layer: l.label, Rule: l.denyKey, Matched: entry, Text: fmt.Sprintf("%s denies it by %q", l.denyKey, entry)}
		}
	}
	return form, toolward.Reason{}
}

// checkForm is CheckName for forms: clients name the tools of their MCP servers mcp__<server>__<tool> themselves.
func checkForm(form *toolward.Tool) error {
	if rest, ok := strings.CutPrefix(form.Name, "mcp__"); ok && form.Plugin != "" {
		return checkCharacters("m" + rest)
	}
	return CheckName(form.Name, form.Plugin)
}

// ToolView is one registered tool as a caller sees it.
type ToolView struct {
	Tool    *toolward.Tool
	Visible bool
	Reason  toolward.Reason // why it is not visible
}

// View lists all registered tools with what removed them, for explanations.
func (s *Snapshot) View(c toolward.Caller) []ToolView {
	views := make([]ToolView, 0, len(s.tools))
	for _, name := range sortedKeys(s.tools) {
		reason, hidden := s.hides(&c, s.tools[name])
		views = append(views, ToolView{Tool: s.tools[name], Visible: !hidden, Reason: reason})
	}
	return views
}

// SandboxTools is the policy for sandboxed sessions of the caller's agent. Without a configuration it denies
// everything.
func (s *Snapshot) SandboxTools(c toolward.Caller) SandboxPolicy {
	a := s.agentOf(&c)
	if a == nil {
		return SandboxPolicy{Deny: []string{"*"}}
	}
	return a.sandboxLists
}

// view returns what a caller sees, remembered by everything that the caller states except what no layer looks at: a
// fact too many in the key costs memory, one that is left out would show a caller another's tools.
func (s *Snapshot) view(a *agent, c *toolward.Caller) *view {
	facts := s.confined(*c)
	facts.Client, facts.Workspace, facts.Connection, facts.Device = "", "", "", ""
	return s.views.of(facts, func() *view { return s.rules.newView(a, &facts) })
}

// confined is the caller with what is known of its sandbox.
func (s *Snapshot) confined(c toolward.Caller) toolward.Caller {
	if s.around.Confined != nil {
		yes, readOnly := s.around.Confined(c)
		c.Sandboxed, c.SandboxReadOnly = c.Sandboxed || yes, c.SandboxReadOnly || readOnly
	}
	return c
}

// Steps lists the layers that apply to a caller, in order.
func (s *Snapshot) Steps(c toolward.Caller) []Step {
	if a := s.agentOf(&c); a != nil {
		return s.view(a, &c).pipeline.steps()
	}
	return nil
}

// ListWarnings lists the allow lists among a caller's layers with entries that match nothing.
func (s *Snapshot) ListWarnings(c toolward.Caller) []ListWarning {
	if a := s.agentOf(&c); a != nil {
		return s.view(a, &c).pipeline.warnings()
	}
	return nil
}
