package visible

import (
	"slices"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/glob"
)

// inventory is the tools that layers are compiled for, and what entries of lists can mean among them.
type inventory struct {
	tools   []*toolward.Tool // registered tools by name
	present map[string]bool  // names of tools that no plug-in brought, and of those that clients bring
	plugins map[string]bool  // ids of plug-ins; true if it has a tool
	byName  map[string]bool  // names of tools of plug-ins
	closed  bool             // tools.unmatchedAllowlist is closed
}

func newInventory(tools []*toolward.Tool, clientTools []string, closed bool) inventory {
	v := inventory{tools: tools, present: map[string]bool{}, plugins: map[string]bool{}, byName: map[string]bool{}, closed: closed}
	for _, t := range tools {
		if t.Plugin == "" {
			v.present[t.Name] = true
			continue
		}
		v.plugins[NormalizeName(t.Plugin)] = true
		v.byName[t.Name] = true
	}
	for _, name := range clientTools {
		v.present[name] = true
	}
	return v
}

func (v *inventory) isPlugin(id string) bool { _, ok := v.plugins[id]; return ok }

// live reports whether an entry names something that is there, or a core tool: core tools count even where they are
// not available now, so that a list of them stays a restriction for those who do not get them.
func (v *inventory) live(entry string) bool {
	if _, isGroup := group(entry); isGroup || entry == "*" {
		return true
	}
	switch {
	case entry == pluginsGroup:
		return len(v.byName) > 0
	case !glob.Is(entry):
		return reserved(entry) || v.present[entry] || v.byName[entry] || v.plugins[entry]
	case hasGroupPrefix(entry):
		return false
	}
	matches := func(name string) bool { return glob.Match(entry, name) }
	if slices.ContainsFunc(CoreTools(), matches) || slices.ContainsFunc(beyondCore[:], matches) || slices.ContainsFunc(channelTools[:], matches) {
		return true
	}
	for _, names := range []map[string]bool{v.present, v.byName} {
		for name := range names {
			if matches(name) {
				return true
			}
		}
	}
	return false
}

// unmatched reports the entries of an allow list that match nothing there is, and whether the whole list is dead:
// it names only plug-ins that are not enabled.
func (v *inventory) unmatched(allow []string) (unknown []string, dead bool) {
	unknown, entries, live := []string{}, 0, 0
	for _, raw := range allow {
		entry := NormalizeName(raw)
		switch {
		case entry == "":
			continue
		case v.live(entry):
			live++
		case entry != pluginsGroup && !v.isPlugin(entry) && !slices.Contains(unknown, entry):
			unknown = append(unknown, entry)
		}
		entries++
	}
	return unknown, entries > 0 && live == 0
}

// layer compiles one layer. A dead allow list of a layer that strips is dropped, unless such lists are to close: a
// plug-in that is not enabled must not take every other tool away.
func (v *inventory) layer(l layer, r restriction) *layer {
	var dead bool
	l.unknown, dead = v.unmatched(r.Allow)
	if l.strips && dead && !v.closed {
		l.stripped, r.Allow = true, nil
	}
	l.effective = r
	l.list = newList(r.Allow, r.Deny, v.isPlugin)
	l.keeps = newToolSet(len(v.tools))
	for i, t := range v.tools {
		if _, ok := l.list.allows(t.Name, t.Plugin); ok {
			l.keeps.add(i)
		}
	}
	return &l
}
