package visible

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/report"
)

// binder makes a Book.
type binder struct {
	*report.Collector
	config Config
	book   Book
	sorted []*toolward.Tool // registered tools by name
	rules  *ruleBook
}

// entries checks the entries of one list.
func (b *binder) entries(entries []string, at report.Path, label string) {
	for i, entry := range entries {
		// The matcher drops blank entries; a list of blanks would silently mean "everything".
		if strings.TrimSpace(entry) == "" {
			b.Fail(at.At(i), "the entry is blank; name a tool, a glob or a group, or remove it")
		}
	}
	b.warnUnknown(entries, at, label)
}

// warnUnknown reports entries of a list that match nothing there is: probably a slip of the pen, and in a deny list
// a restriction that does not restrict.
func (b *binder) warnUnknown(entries []string, at report.Path, label string) {
	for i, raw := range entries {
		entry := NormalizeName(raw)
		if entry == "" || b.book.words.Matches(entry) {
			continue
		}
		b.Warn(report.Warning{
			Path: at.At(i), Code: report.CheckUnknownEntries,
			Text: fmt.Sprintf("%s: %q matches no tool, group or plug-in%s", label, raw, report.DidYouMean(entry, b.book.words.Names())),
		})
	}
}

// noteUnavailable reports the tools of Toolward that a scope allows by name and that are not there. The entries are known,
// so that the list stays a restriction; they bring nothing yet.
func (b *binder) noteUnavailable(entries []string, at report.Path, label string) {
	var missing []string
	for _, raw := range entries {
		name := NormalizeName(raw)
		if reserved(name) && !isInternal(name) && b.book.tools[name] == nil && !slices.Contains(b.book.words.clientTools, name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		b.Note(report.Warning{Path: at, Code: report.CheckUnavailableTools, Text: label + ": allows tools that are not available here: " + strings.Join(missing, ", ")})
	}
}
