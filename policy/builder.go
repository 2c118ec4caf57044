package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/glob"
	"github.com/toolward/toolward/policy/report"
)

// builder collects what Compile finds.
type builder struct {
	config   Config
	snapshot *Snapshot
	sorted   []*toolward.Tool // registered tools by name
	plugins  map[string]bool
	rules    *ruleBook
	*report.Collector
}

// hasTool reports whether a key is the whole name of a tool.
func (b *builder) hasTool(name string) bool { return b.snapshot.tools[name] != nil || reserved(name) }

// entries checks the entries of one list.
func (b *builder) entries(entries []string, at report.Path, label string) {
	for i, entry := range entries {
		// The matcher drops blank entries; a list of blanks would silently mean "everything".
		if strings.TrimSpace(entry) == "" {
			b.Fail(at.At(i), "the entry is blank; name a tool, a glob or a group, or remove it")
		}
	}
	b.warnUnknown(entries, at, label)
}

// isChannel reports whether an entry is the id of a channel, which lists may name without there being such a tool.
func (b *builder) isChannel(entry string) bool {
	return slices.Contains(b.channelIDs(), NormalizeName(entry))
}

// channelIDs are the ids of the channels that are registered.
func (b *builder) channelIDs() []string {
	if b.config.Around.Channels == nil {
		return builtInChannels[:]
	}
	return b.config.Around.Channels
}

// warnUnknown reports entries of a list that match nothing there is: probably a slip of the pen, and in a deny list
// a restriction that does not restrict.
func (b *builder) warnUnknown(entries []string, at report.Path, label string) {
	for i, raw := range entries {
		entry := NormalizeName(raw)
		if entry == "" || b.matchesAnything(entry) {
			continue
		}
		b.Warn(report.Warning{
			Path: at.At(i), Code: report.CheckUnknownEntries,
			Text: fmt.Sprintf("%s: %q matches no tool, group or plug-in%s", label, raw, report.DidYouMean(entry, b.knownNames())),
		})
	}
}

// noteUnavailable reports the tools of Toolward that a scope allows by name and that are not there. The entries are known,
// so that the list stays a restriction; they bring nothing yet.
func (b *builder) noteUnavailable(entries []string, at report.Path, label string) {
	var missing []string
	for _, raw := range entries {
		name := NormalizeName(raw)
		if reserved(name) && !isInternal(name) && b.snapshot.tools[name] == nil && !slices.Contains(b.config.Around.ClientTools, name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		b.Note(report.Warning{Path: at, Code: report.CheckUnavailableTools, Text: label + ": allows tools that are not available here: " + strings.Join(missing, ", ")})
	}
}

func (b *builder) matchesAnything(entry string) bool {
	if _, isGroup := group(entry); isGroup || entry == pluginsGroup || b.plugins[entry] || b.isChannel(entry) {
		return true
	}
	if !glob.Is(entry) {
		return b.knows(entry)
	}
	return slices.ContainsFunc(b.knownNames(), func(name string) bool { return glob.Match(entry, name) })
}

func (b *builder) knows(name string) bool {
	return b.snapshot.tools[name] != nil || reserved(name) || slices.Contains(b.config.Around.ClientTools, name)
}

func (b *builder) knownNames() []string {
	names := slices.Concat(CoreTools(), beyondCore[:], channelTools[:], groupNames(), b.config.Around.ClientTools)
	for _, t := range b.sorted {
		names = append(names, t.Name)
	}
	for id := range b.plugins {
		names = append(names, id)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
