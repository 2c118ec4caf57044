package visible

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/policy/report"
)

// checkLayers looks for layers that work as written and yet leave open what they seem to close.
func (b *binder) checkLayers() {
	c := &b.config
	b.checkAgent(b.book.agents.others, report.Path{"tools"}, &c.Tools, &SandboxLists{})
	b.checkModels(c.Tools.ByProvider, report.Path{"tools", "byProvider"})
	for i := range c.Agents {
		own, at := &c.Agents[i].Tools, report.Path{"agents", "list", i, "tools"}
		if a := b.book.agents.Named(Fold(c.Agents[i].ID)); a != nil {
			b.checkAgent(a, at, own, &own.Sandbox.Tools)
		}
		b.checkModels(own.ByProvider, at.At("byProvider"))
	}
}

// checkAgent looks at one scope, where it says something itself.
func (b *binder) checkAgent(a *agentRules, at report.Path, own *Tools, ownSandbox *SandboxLists) {
	if len(own.Deny) > 0 || own.Exec.ApplyPatch.Enabled != nil {
		b.checkPatch(a, at.At("deny"))
	}
	sandbox := own.Sandbox.Tools
	if sandbox.Deny != nil || sandbox.Allow != nil || len(sandbox.AlsoAllow) > 0 || len(ownSandbox.AlsoDeny) > 0 {
		b.checkSandbox(a, sandbox.Deny != nil, at.At("sandbox", "tools"))
	}
}

// checkPatch reports that files cannot be written, but can be patched.
func (b *binder) checkPatch(a *agentRules, at report.Path) {
	lists := pipeline{}
	for _, l := range []*layer{b.rules.global.tools, a.scope.tools} {
		if l != nil {
			lists = append(lists, l)
		}
	}
	denied := func(tool string) bool {
		return slices.ContainsFunc(lists, func(l *layer) bool { _, hit := l.list.deny.Match(tool, ""); return hit })
	}
	if (a.patch.enabled || !a.patch.set) && denied("write") && denied("edit") && !denied("apply_patch") && !denied("exec") {
		b.Warn(report.Warning{Path: at, Code: report.CheckWriteDenied, Text: "write and edit are denied, but apply_patch is not and writes files too; deny it, or group:fs"})
	}
}

// checkSandbox reports lists for sandboxed sessions that lack what the default ones deny.
func (b *binder) checkSandbox(a *agentRules, replaced bool, at report.Path) {
	l := newList(a.sandboxLists.Allow, a.sandboxLists.Deny, b.rules.inventory.isPlugin)
	reachable := func(tool string) bool { _, ok := l.allows(tool, ""); return ok }
	if replaced {
		var missing []string
		for _, tool := range sandboxDenied {
			if reachable(tool) {
				missing = append(missing, tool)
			}
		}
		if len(missing) > 0 {
			b.Warn(report.Warning{
				Path: at.At("deny"), Code: report.CheckSandboxDeny,
				Text: fmt.Sprintf("it replaces the default list and leaves %s, which that one denies; use alsoDeny to add to the default list", strings.Join(missing, ", ")),
			})
		}
	}
	isDenied := func(tool string) bool { _, hit := l.deny.Match(tool, ""); return hit }
	if slices.ContainsFunc(b.book.words.channels, isDenied) && reachable("message") {
		b.Warn(report.Warning{Path: at, Code: report.CheckSandboxMessage, Text: "channels are denied one by one, but message reaches them all; deny message too"})
	}
}

// checkModels reports entries for one model that lack what the entry of its provider denies: entries are not merged, and
// the more exact one counts alone.
func (b *binder) checkModels(entries map[string]ProviderTools, at report.Path) {
	byKey := map[string]ProviderTools{}
	for _, key := range sortedKeys(entries) {
		byKey[Fold(key)] = entries[key]
	}
	for _, key := range sortedKeys(entries) {
		name, model, isModel := strings.Cut(Fold(key), "/")
		if !isModel {
			continue
		}
		whole, ok := byProvider(byKey, name, "")
		if !ok {
			continue
		}
		own := NewNames(entries[key].Deny, b.rules.inventory.isPlugin)
		var missing []string
		for _, entry := range ExpandGroups(whole.Deny) {
			if _, covered := own.Match(entry, ""); !covered && !slices.Contains(own.globs, entry) {
				missing = append(missing, strconv.Quote(entry))
			}
		}
		if len(missing) > 0 {
			b.Warn(report.Warning{
				Path: at.At(key), Code: report.CheckModelEntry,
				Text: fmt.Sprintf("it counts alone for %s and does not deny %s, as the entry of %s does", model, strings.Join(missing, ", "), name),
			})
		}
	}
}
