package visible

import (
	"slices"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/glob"
)

// Vocabulary is the words that entries of lists may use: names of tools, groups, and ids of plug-ins and channels.
type Vocabulary struct {
	tools       map[string]*toolward.Tool // registered ones by name
	plugins     map[string]bool           // ids of those that brought a tool
	clientTools []string
	channels    []string
}

// HasTool reports whether a key is the whole name of a tool.
func (v *Vocabulary) HasTool(name string) bool { return v.tools[name] != nil || reserved(name) }

// Knows reports whether a name is that of a tool, or of one that clients bring along.
func (v *Vocabulary) Knows(name string) bool {
	return v.HasTool(name) || slices.Contains(v.clientTools, name)
}

// IsPlugin reports whether an id is that of a plug-in which brought a tool.
func (v *Vocabulary) IsPlugin(id string) bool { return v.plugins[id] }

// Matches reports whether an entry in normal form matches anything there is.
func (v *Vocabulary) Matches(entry string) bool {
	// A channel may stand in a list without there being such a tool.
	if _, isGroup := group(entry); isGroup || entry == pluginsGroup || v.IsPlugin(entry) || slices.Contains(v.channels, entry) {
		return true
	}
	if !glob.Is(entry) {
		return v.Knows(entry)
	}
	return slices.ContainsFunc(v.Names(), func(name string) bool { return glob.Match(entry, name) })
}

// Names lists every word but the channels.
func (v *Vocabulary) Names() []string {
	names := slices.Concat(CoreTools(), beyondCore[:], channelTools[:], groupNames(), v.clientTools, sortedKeys(v.tools), sortedKeys(v.plugins))
	slices.Sort(names)
	return slices.Compact(names)
}
