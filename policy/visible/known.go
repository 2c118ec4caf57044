package visible

import (
	"slices"
	"strings"
)

// KnownTool is a tool that policies can name: one that is registered, or one of the catalog that is not there yet.
type KnownTool struct {
	Name        string `json:"name"`
	Section     string `json:"section"` // of the catalog; "plugin" for tools of plug-ins and MCP servers
	Plugin      string `json:"plugin,omitempty"`
	Description string `json:"description,omitempty"`
	Available   bool   `json:"available"` // registered now
	OwnerOnly   bool   `json:"ownerOnly,omitempty"`
}

// Sections of known tools that are not in the catalog.
const (
	SectionToolward = "toolward" // Toolward's additions to the catalog
	SectionChannels = "channels" // tools that chat channels contribute
	SectionOther    = "other"    // compiled in, but neither in the catalog nor in its additions
	SectionPlugin   = "plugin"   // tools of plug-ins and MCP servers
)

// KnownTools lists the catalog in its order, then everything else that is registered, tools of plug-ins last.
func (b *Book) KnownTools() []KnownTool {
	var out []KnownTool
	listed := map[string]bool{}
	add := func(section string, names ...string) {
		for _, name := range names {
			listed[name] = true
			out = append(out, b.knownTool(name, section))
		}
	}
	for _, c := range catalog {
		add(c.name, c.tools...)
	}
	add(SectionToolward, beyondCore[:]...)
	add(SectionChannels, channelTools[:]...)
	var plugins []KnownTool
	for _, name := range sortedKeys(b.tools) {
		switch {
		case listed[name]:
		case b.tools[name].Plugin == "":
			add(SectionOther, name)
		default:
			plugins = append(plugins, b.knownTool(name, SectionPlugin))
		}
	}
	slices.SortStableFunc(plugins, func(a, b KnownTool) int { return strings.Compare(a.Plugin, b.Plugin) })
	return append(out, plugins...)
}

func (b *Book) knownTool(name, section string) KnownTool {
	k := KnownTool{Name: name, Section: section, OwnerOnly: isOwnerOnlyName(name)}
	if t := b.tools[name]; t != nil {
		k.Plugin, k.Description, k.Available, k.OwnerOnly = t.Plugin, t.Description, true, OwnerOnly(t)
	}
	return k
}

// Knows reports whether a name is one of KnownTools.
func (b *Book) Knows(name string) bool { return b.tools[name] != nil || reserved(name) }

// AgentIDs lists the agents that the configuration names. All others are treated alike.
func (b *Book) AgentIDs() []string { return sortedKeys(b.agents.named) }

// HasAgent reports whether the configuration names an agent, by its folded id.
func (b *Book) HasAgent(id string) bool { return b.agents.Named(id) != nil }
