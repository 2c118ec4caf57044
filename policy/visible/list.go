package visible

import (
	"slices"

	"github.com/toolward/toolward/policy/glob"
)

// Names answers whether a list of entries covers a tool, and by which entry.
type Names struct {
	exact map[string]string // tool, plug-in id or group → the entry it came from
	globs []string
	ids   map[string]bool // those of exact that are ids of registered plug-ins
}

// NewNames compiles entries. plugin tells the id of a registered plug-in.
func NewNames(entries []string, plugin func(id string) bool) Names {
	n := Names{exact: map[string]string{}, ids: map[string]bool{}}
	for _, raw := range entries {
		entry := NormalizeName(raw)
		switch members, isGroup := group(entry); {
		case entry == "":
		case isGroup:
			for _, m := range members {
				n.add(m, entry)
			}
		case glob.Is(entry) && !hasGroupPrefix(entry):
			if !slices.Contains(n.globs, entry) {
				n.globs = append(n.globs, entry)
			}
		default:
			n.add(entry, entry)
			n.ids[entry] = plugin(entry)
		}
	}
	return n
}

// add keeps the first entry of a name; groups are never globbed, so "group:*" matches nothing.
func (n *Names) add(name, entry string) {
	if _, there := n.exact[name]; !there {
		n.exact[name] = entry
	}
}

func (n *Names) empty() bool { return len(n.exact) == 0 && len(n.globs) == 0 }

// matchExact returns the entry that names the tool, its plug-in or the group of all plug-ins, or "".
func (n *Names) matchExact(tool, plugin string) (entry string) {
	// The id of a plug-in stands for its tools only, not for a tool of the same name that another one brought.
	if entry, ok := n.exact[tool]; ok && (!n.ids[tool] || plugin == tool) {
		return entry
	}
	if plugin != "" {
		if entry, ok := n.exact[plugin]; ok {
			return entry
		}
		return n.exact[pluginsGroup]
	}
	return ""
}

// Match returns the entry that covers the tool.
func (n *Names) Match(tool, plugin string) (entry string, ok bool) {
	if entry := n.matchExact(tool, plugin); entry != "" {
		return entry, true
	}
	for _, pattern := range n.globs {
		if glob.Match(pattern, tool) {
			return pattern, true
		}
	}
	return "", false
}

// list is an allow list and a deny list; deny is looked at first.
type list struct {
	allow, deny Names
}

func newList(allow, deny []string, plugin func(id string) bool) list {
	return list{allow: NewNames(allow, plugin), deny: NewNames(deny, plugin)}
}

// allows reports whether the list leaves the tool to the caller. If not, entry is the deny entry that took it away,
// or "" if no allow entry names it.
func (l *list) allows(tool, plugin string) (entry string, ok bool) {
	if entry, denied := l.deny.Match(tool, plugin); denied {
		return entry, false
	}
	if l.allow.empty() {
		return "", true
	}
	if _, ok := l.allow.Match(tool, plugin); ok {
		return "", true
	}
	if tool == "apply_patch" {
		// A caller that may run commands can apply patches with them.
		if _, ok := l.allow.Match("exec", ""); ok {
			return "", true
		}
	}
	return "", false
}

// Matches reports whether a tool passes an allow list and a deny list. plugins maps ids of plug-ins to the names of
// their tools.
func Matches(allow, deny []string, tool string, plugins map[string][]string) bool {
	tool = NormalizeName(tool)
	owner := ""
	for id, tools := range plugins {
		if slices.ContainsFunc(tools, func(name string) bool { return NormalizeName(name) == tool }) {
			owner = NormalizeName(id)
		}
	}
	l := newList(allow, deny, func(id string) bool { _, ok := plugins[id]; return ok })
	_, ok := l.allows(tool, owner)
	return ok
}
