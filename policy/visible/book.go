package visible

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/memo"
)

// Book says which of the registered tools every caller sees. It is immutable. The zero value shows no tool.
type Book struct {
	words    Vocabulary
	tools    map[string]*toolward.Tool
	internal map[string]*toolward.Tool // those that nobody finds by their names
	agents   ByAgent[agentRules]

	rules    *ruleBook
	position map[*toolward.Tool]int // among rules.inventory.tools
	views    *memo.Map[toolward.Caller, *view]

	confines    func(toolward.Caller) (yes, readOnly bool) // may be nil
	whyConfined func(toolward.Caller) string               // may be nil
}

// agentRules is which tools the callers of one agent see.
type agentRules struct {
	scope        scope
	profile      *layer // nil if there is none
	sandbox      *layer
	sandboxLists SandboxPolicy
	selfLimit    *layer // nil if there is none
	ownTools     bool
	patch        patchRule
}

// agentOf finds the rules of a caller's agent.
func (b *Book) agentOf(c *toolward.Caller) *agentRules { return b.agents.Of(c.Agent, c.Session) }

// Vocabulary is the words that may name the tools of the book.
func (b *Book) Vocabulary() *Vocabulary { return &b.words }

// Tool returns the registered tool of a name in normal form, or nil.
func (b *Book) Tool(name string) *toolward.Tool { return b.tools[name] }

// Registered lists the registered tools by name.
func (b *Book) Registered() []*toolward.Tool {
	if b.rules == nil {
		return nil
	}
	return b.rules.inventory.tools
}

// Tools lists what the caller sees, by name.
func (b *Book) Tools(c toolward.Caller) []*toolward.Tool {
	a := b.agentOf(&c)
	if a == nil {
		return nil
	}
	return slices.Clone(b.view(a, &c).visible)
}

// Find returns the tool of a name if the caller sees it.
func (b *Book) Find(c toolward.Caller, name string) (*toolward.Tool, toolward.Reason) {
	t := b.tools[name]
	if t == nil {
		t = b.tools[NormalizeName(name)]
	}
	if t == nil {
		return nil, toolward.Reason{Layer: "registry", Text: "no tool of that name is registered"}
	}
	if reason, hidden := b.Hides(&c, t); hidden {
		return nil, reason
	}
	return t, toolward.Reason{}
}

// Hides says why a caller does not see a registered tool.
func (b *Book) Hides(c *toolward.Caller, t *toolward.Tool) (toolward.Reason, bool) {
	a := b.agentOf(c)
	if a == nil {
		return toolward.Reason{Layer: "registry", Text: "no policy is loaded"}, true
	}
	v := b.view(a, c)
	if i, ok := b.position[t]; ok && v.seen.has(i) {
		return toolward.Reason{}, false
	}
	reason, hidden := v.hides(t)
	if reason.Layer == sandboxTools && b.whyConfined != nil {
		// Most are surprised to be in a sandbox at all.
		if why := b.whyConfined(*c); why != "" {
			reason.Text += fmt.Sprintf("; session %s: %s", c.Session, why)
		}
	}
	return reason, hidden
}

// Adopt judges a form of a client's tool by the same layers, by its name. A form with the name of a tool of ours
// takes its owner-only flag; its class goes by the name anyway.
func (b *Book) Adopt(c toolward.Caller, form *toolward.Tool) (*toolward.Tool, toolward.Reason) {
	a := b.agentOf(&c)
	if a == nil {
		return nil, toolward.Reason{Layer: "registry", Text: "no policy is loaded"}
	}
	if form.Internal || isInternal(form.Name) {
		return b.adoptInternal(a, &c, form)
	}
	if err := checkForm(form); err != nil {
		return nil, toolward.Reason{Layer: "registry", Text: err.Error()}
	}
	ours := b.tools[form.Name]
	if !c.Owner && (OwnerOnly(form) || ours != nil && OwnerOnly(ours)) {
		return nil, OwnerReason
	}
	v := b.view(a, &c)
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
func (b *Book) adoptInternal(a *agentRules, c *toolward.Caller, form *toolward.Tool) (*toolward.Tool, toolward.Reason) {
	if b.internal[form.Name] != form {
		return nil, toolward.Reason{Layer: "registry", Text: "no tool of that name is registered"}
	}
	for _, l := range b.view(a, c).pipeline {
		if entry, denied := l.list.deny.Match(form.Name, ""); denied {
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
func (b *Book) View(c toolward.Caller) []ToolView {
	views := make([]ToolView, 0, len(b.tools))
	for _, name := range sortedKeys(b.tools) {
		reason, hidden := b.Hides(&c, b.tools[name])
		views = append(views, ToolView{Tool: b.tools[name], Visible: !hidden, Reason: reason})
	}
	return views
}

// SandboxTools is the policy for sandboxed sessions of the caller's agent. Without a configuration it denies
// everything.
func (b *Book) SandboxTools(c toolward.Caller) SandboxPolicy {
	a := b.agentOf(&c)
	if a == nil {
		return SandboxPolicy{Deny: []string{"*"}}
	}
	return a.sandboxLists
}

// view returns what a caller sees, remembered by everything that the caller states except what no layer looks at: a
// fact too many in the key costs memory, one that is left out would show a caller another's tools.
func (b *Book) view(a *agentRules, c *toolward.Caller) *view {
	facts := b.Confined(*c)
	facts.Client, facts.Workspace, facts.Connection, facts.Device = "", "", "", ""
	return b.views.Of(facts, func() *view { return b.rules.newView(a, &facts) })
}

// Confined is the caller with what is known of its sandbox.
func (b *Book) Confined(c toolward.Caller) toolward.Caller {
	if b.confines != nil {
		yes, readOnly := b.confines(c)
		c.Sandboxed, c.SandboxReadOnly = c.Sandboxed || yes, c.SandboxReadOnly || readOnly
	}
	return c
}

// Steps lists the layers that apply to a caller, in order.
func (b *Book) Steps(c toolward.Caller) []Step {
	if a := b.agentOf(&c); a != nil {
		return b.view(a, &c).pipeline.steps()
	}
	return nil
}

// ListWarnings lists the allow lists among a caller's layers with entries that match nothing.
func (b *Book) ListWarnings(c toolward.Caller) []ListWarning {
	if a := b.agentOf(&c); a != nil {
		return b.view(a, &c).pipeline.warnings()
	}
	return nil
}
