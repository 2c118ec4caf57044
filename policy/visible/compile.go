package visible

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/glob"
	"github.com/toolward/toolward/policy/memo"
	"github.com/toolward/toolward/policy/report"
)

// Compile checks the lists and turns them, with the tools that are registered, into a Book. Mistakes and doubts go
// into found; with a mistake in it the Book must not be used. A tool of a plug-in that may not be registered is left out
// with a warning; one of Toolward's own is an error.
func Compile(c Config, tools []*toolward.Tool, found *report.Collector) (Book, error) {
	channels := c.Around.Channels
	if channels == nil {
		channels = builtInChannels[:]
	}
	registered := map[string]*toolward.Tool{}
	b := binder{Collector: found, config: c, book: Book{
		words: Vocabulary{tools: registered, plugins: map[string]bool{}, clientTools: c.Around.ClientTools, channels: channels},
		tools: registered, internal: map[string]*toolward.Tool{}, views: &memo.Map[toolward.Caller, *view]{},
		confines: c.Around.Confined, whyConfined: c.Around.WhyConfined,
	}}
	if err := b.register(tools); err != nil {
		return Book{}, err
	}
	b.layers()
	return b.book, nil
}

// layers compiles everything that decides which tools a caller sees.
func (b *binder) layers() {
	c := &b.config
	if u := c.Tools.UnmatchedAllowlist; u != "" && u != "strip" && u != "closed" {
		b.Fail(report.Path{"tools", "unmatchedAllowlist"}, "%q is unknown; use strip or closed", u)
	}
	if c.Tools.SelfLimit != nil {
		b.Fail(report.Path{"tools", "selfLimit"}, "only agents have a self-limit; use tools.deny for all of them")
	}
	r := &ruleBook{
		inventory: newInventory(b.sorted, c.Around.ClientTools, c.Tools.UnmatchedAllowlist == "closed"),
		defaults:  c.Subagents, inherit: c.Tools.Subagents.Inherit == nil || *c.Tools.Subagents.Inherit,
	}
	b.rules, b.book.rules = r, r
	b.book.position = make(map[*toolward.Tool]int, len(b.sorted))
	for i, t := range b.sorted {
		b.book.position[t] = i
	}
	r.global = b.scope(&c.Tools, report.Path{"tools"}, "")
	b.subagents()
	b.httpTools()
	b.channels()
	b.agents()
	b.checkLayers()
}

// subagents compiles tools.subagents.
func (b *binder) subagents() {
	t, at := &b.config.Tools.Subagents, report.Path{"tools", "subagents"}
	const label = "subagent tools.allow"
	b.entries(t.Tools.Allow, at.At("tools", "allow"), label)
	b.entries(t.Tools.AlsoAllow, at.At("tools", "alsoAllow"), label)
	b.entries(t.Tools.Deny, at.At("tools", "deny"), label)
	as := layer{label: label, allowKey: "tools.subagents.tools.allow", denyKey: "tools.subagents.tools.deny", private: true}
	b.rules.leaf = b.rules.inventory.layer(as, subagentLists(t.Tools, true))
	b.rules.inner = b.rules.inventory.layer(as, subagentLists(t.Tools, false))
	if !b.rules.inherit {
		b.warnInherit(at.At("inherit"))
	}
}

// httpTools compiles gateway.tools.
func (b *binder) httpTools() {
	t, at := b.config.HTTP, report.Path{"gateway", "tools"}
	b.entries(t.Allow, at.At("allow"), httpLayer)
	b.entries(t.Deny, at.At("deny"), httpLayer)
	for i, entry := range t.Allow {
		if glob.Is(entry) || hasGroupPrefix(NormalizeName(entry)) {
			b.Warn(report.Warning{
				Path: at.At("allow", i), Code: report.CheckHTTPNotExact,
				Text: fmt.Sprintf("%q re-opens nothing: what the HTTP endpoint denies by default is re-opened by exact names only", entry),
			})
		}
	}
	b.rules.http = newHTTPRule(t, b.rules.inventory.isPlugin)
}

// agents compiles the layers of every agent, and those of agents that the file does not name.
func (b *binder) agents() {
	global := &b.config.Tools
	base := agentRules{patch: b.patch(patchRule{}, global.Exec.ApplyPatch, report.Path{"tools", "exec", "applyPatch"})}
	b.derive(&base, nil)
	b.book.agents = NewByAgent(&base)
	for i := range b.config.Agents {
		a, at := &b.config.Agents[i], report.Path{"agents", "list", i}
		id := Fold(a.ID)
		switch {
		case id == "" || strings.ContainsAny(id, ": \t\r\n\x00"):
			b.Fail(at.At("id"), "%q is not an agent id; use a name without colons and spaces", a.ID)
			continue
		case b.book.agents.Named(id) != nil:
			b.Fail(at.At("id"), "there are two agents %q", id)
			continue
		}
		b.book.agents.Set(id, b.agent(base, a, at, id))
	}
}

// agent lays the settings of one agent over those of the gateway.
func (b *binder) agent(one agentRules, a *Agent, at report.Path, id string) *agentRules {
	b.gatewayOnly(&a.Tools, at.At("tools"))
	one.scope = b.scope(&a.Tools, at.At("tools"), id)
	one.patch = b.patch(one.patch, a.Tools.Exec.ApplyPatch, at.At("tools", "exec", "applyPatch"))
	one.ownTools = a.Subagents.OwnTools
	if one.ownTools {
		b.warnInherit(at.At("subagents", "ownTools"))
	}
	if len(a.Tools.SelfLimit) > 0 {
		label, key := "tools.self-limit ("+id+")", at.At("tools", "selfLimit")
		b.entries(a.Tools.SelfLimit, key, label)
		as := layer{label: label, allowKey: key.String(), denyKey: key.String(), private: true}
		one.selfLimit = b.rules.inventory.layer(as, restriction{Deny: a.Tools.SelfLimit})
	}
	b.derive(&one, a)
	return &one
}

// derive compiles the layers that come from the gateway's settings and the agent's together; a is nil for agents that
// the file does not name.
func (b *binder) derive(one *agentRules, a *Agent) {
	global, inventory := &b.rules.global, &b.rules.inventory
	one.profile = inventory.profileLayer("tools.profile", narrower(one.scope.profile, global.profile), firstList(one.scope.alsoAllow, global.alsoAllow))
	var own *SandboxLists
	if a != nil {
		own = &a.Tools.Sandbox.Tools
	}
	p := newSandboxPolicy(b.config.Tools.Sandbox.Tools, own, b.config.Around.Channels)
	one.sandboxLists = p
	allow := p.Allow
	if p.AllowSource.Source == "default" {
		// The standard list has reading; finding files shows no more. A list that somebody wrote is what it says.
		allow = slices.Concat(allow, beyondCore[:])
	}
	one.sandbox = inventory.layer(layer{
		label: sandboxTools, allowKey: p.AllowSource.Key, denyKey: p.DenySource.Key,
		hint: fmt.Sprintf("; the session is sandboxed, and the list is the %s one for allow and the %s one for deny; an empty list [] allows all; toolward sandbox explain shows more", p.AllowSource.Source, p.DenySource.Source),
	}, restriction{Allow: allow, Deny: p.Deny})
}

// gatewayOnly refuses settings of an agent that only the gateway has: they would look as if they did something.
func (b *binder) gatewayOnly(t *Tools, at report.Path) {
	s := t.Subagents
	if s.Inherit != nil || s.Tools.Allow != nil || s.Tools.AlsoAllow != nil || s.Tools.Deny != nil {
		b.Fail(at.At("subagents"), "agents have no such section; use tools.subagents of the gateway, or subagents.ownTools of the agent")
	}
	if t.UnmatchedAllowlist != "" {
		b.Fail(at.At("unmatchedAllowlist"), "agents have no such setting; use tools.unmatchedAllowlist of the gateway")
	}
}

// patch lays tools.exec.applyPatch of a narrower scope over that of a wider one.
func (b *binder) patch(p patchRule, a ApplyPatch, at report.Path) patchRule {
	for i, m := range a.AllowModels {
		if strings.TrimSpace(m) == "" {
			b.Fail(at.At("allowModels", i), "the entry is blank; name a model, or remove it")
		}
	}
	return p.with(a)
}
