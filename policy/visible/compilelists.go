package visible

import (
	"slices"
	"strings"

	"github.com/toolward/toolward/policy/report"
)

// scope compiles the lists of the gateway (id is "") or of one agent.
func (b *binder) scope(t *Tools, at report.Path, id string) scope {
	label, providerLabel := "tools.global", "tools.global-provider"
	if id != "" {
		label, providerLabel = "tools.agent ("+id+")", "tools.agent-provider ("+id+")"
	}
	s := scope{
		alsoAllow: t.AlsoAllow, profile: b.profile(t.Profile, at), providers: map[string]*providerScope{},
		tools: b.lists(t.lists(), at, layer{label: label}),
	}
	b.sandboxEntries(&t.Sandbox.Tools, at.At("sandbox", "tools"))
	for _, key := range sortedKeys(t.ByProvider) {
		p, at := t.ByProvider[key], at.At("byProvider", key)
		folded := Fold(key)
		switch {
		case folded == "":
			b.Fail(at, "the key is blank; name a provider, or provider/model")
			continue
		case s.providers[folded] != nil:
			b.Fail(at, "there are two entries for %q; keep one of them", folded)
			continue
		}
		s.providers[folded] = &providerScope{
			alsoAllow: p.AlsoAllow, profile: b.profile(p.Profile, at), tools: b.lists(p.lists(), at, layer{label: providerLabel}),
		}
	}
	return s
}

// profile checks the name of a profile: an unknown one would silently restrict nothing.
func (b *binder) profile(name string, at report.Path) profile {
	if name == "" {
		return profile{}
	}
	if _, ok := Profile(name); !ok {
		known := []string{"minimal", "coding", "messaging", "full"}
		b.Fail(at.At("profile"), "%q is not a profile; use %s%s", name, strings.Join(known, ", "), report.DidYouMean(name, known))
	}
	return profile{name, at.At("profile").String()}
}

// lists compiles one scope into a layer; nil if it restricts nothing.
func (b *binder) lists(l Lists, at report.Path, as layer) *layer {
	b.entries(l.Allow, at.At("allow"), as.label)
	b.entries(l.AlsoAllow, at.At("alsoAllow"), as.label)
	b.entries(l.Deny, at.At("deny"), as.label)
	b.noteUnavailable(slices.Concat(l.Allow, l.AlsoAllow), at, as.label)
	if l.contradicts() {
		b.Fail(at, "allow and alsoAllow stand together: move the entries of alsoAllow into allow, or use a profile with alsoAllow")
	}
	r, ok := l.restriction()
	if !ok {
		return nil
	}
	as.allowKey, as.denyKey = at.At("allow").String(), at.At("deny").String()
	compiled := b.rules.inventory.layer(as, r)
	if compiled.stripped {
		b.warnStripped(as.label, compiled, at.At("allow"))
	}
	return compiled
}

func (b *binder) warnInherit(at report.Path) {
	b.Warn(report.Warning{Path: at, Code: report.CheckInheritOff, Text: "sub-agents may have tools that their parent lacks"})
}

// sandboxEntries checks the entries of the lists for sandboxed sessions.
func (b *binder) sandboxEntries(l *SandboxLists, at report.Path) {
	b.entries(l.Allow, at.At("allow"), sandboxTools)
	b.entries(l.AlsoAllow, at.At("alsoAllow"), sandboxTools)
	b.entries(l.Deny, at.At("deny"), sandboxTools)
	b.entries(l.AlsoDeny, at.At("alsoDeny"), sandboxTools)
}

// warnStripped reports an allow list that is ignored. In a group, where strangers write, that is critical.
func (b *binder) warnStripped(label string, l *layer, at report.Path) {
	w := report.Warning{Path: at, Code: report.CheckAllowlistStripped, Text: ListWarning{label, l.unknown, true}.String()}
	if label == groupLayer {
		b.Alarm(w)
		return
	}
	b.Warn(w)
}
