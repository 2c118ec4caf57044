package visible

import (
	"strings"

	"github.com/toolward/toolward/policy/report"
)

// channels compiles the section "channels".
func (b *binder) channels() {
	b.rules.channels = map[string]*channel{}
	for _, id := range sortedKeys(b.config.Channels) {
		c, at := b.config.Channels[id], report.Path{"channels", id}
		key := Fold(id)
		switch {
		case key == "":
			b.Fail(at, "the id of the channel is blank")
			continue
		case b.rules.channels[key] != nil:
			b.Fail(at, "there are two channels %q; keep one of them", key)
			continue
		}
		compiled := &channel{groups: b.groups(c.Groups, at.At("groups")), accounts: map[string]*groups{}}
		b.rules.channels[key] = compiled
		seen := map[string]bool{}
		for _, id := range sortedKeys(c.Accounts) {
			account, at := c.Accounts[id], at.At("accounts", id)
			if seen[Fold(id)] {
				b.Fail(at, "there are two accounts %q; keep one of them", Fold(id))
				continue
			}
			seen[Fold(id)] = true
			if account.Groups != nil {
				compiled.accounts[Fold(id)] = b.groups(account.Groups, at.At("groups"))
			}
		}
	}
}

// groups compiles a map of groups.
func (b *binder) groups(entries map[string]Group, at report.Path) *groups {
	g := &groups{exact: map[string]*groupRule{}, folded: map[string]*groupRule{}}
	for _, id := range sortedKeys(entries) {
		rule := b.group(entries[id], at.At(id))
		if id == anyGroup {
			g.others = rule
			continue
		}
		g.exact[id] = rule
		folded := strings.ToLower(id)
		if _, twice := g.folded[folded]; twice {
			rule = nil
			b.Warn(report.Warning{Path: at.At(id), Code: report.CheckAmbiguousGroup, Text: "another group differs in case only; session keys in lower case cannot tell them apart and get the default entry"})
		}
		g.folded[folded] = rule
	}
	return g
}

// group compiles one group.
func (b *binder) group(entry Group, at report.Path) *groupRule {
	as := layer{label: groupLayer, strips: true}
	rule := &groupRule{senders: newSenderRules[*layer]()}
	if entry.Tools != nil {
		rule.hasTools, rule.tools = true, b.lists(*entry.Tools, at.At("tools"), as)
	}
	for _, key := range sortedKeys(entry.ToolsBySender) {
		lists, at := entry.ToolsBySender[key], at.At("toolsBySender", key)
		who, ok := parseSenderKey(key)
		if !ok {
			b.Fail(at, "the key names nobody; use id:…, e164:…, username:…, name:… or *")
			continue
		}
		b.warnSender(who, lists, at)
		rule.senders.add(who, b.lists(lists, at, as))
	}
	return rule
}

// warnSender reports keys that are not what they seem.
func (b *binder) warnSender(who senderKey, l Lists, at report.Path) {
	switch {
	case who.untyped:
		b.Warn(report.Warning{Path: at, Code: report.CheckUntypedSender, Text: "a bare key is compared with ids only; write id:" + who.value})
	case (who.kind == byUser || who.kind == byName) && len(l.Allow)+len(l.AlsoAllow) > 0:
		b.Warn(report.Warning{Path: at, Code: report.CheckMutableName, Text: "names can be changed on most channels, so that somebody else may get these tools; use id:…"})
	}
}
