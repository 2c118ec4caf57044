package command

import (
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/command/allowlist"
)

// entryIndex is the compiled allowlist of an agent.
type entryIndex struct {
	star   *entry // "*", if it is among them
	byName map[string][]*entry
	globs  []*entry
	fold   bool
}

type entry struct {
	allowlist.Listed
	pattern pattern
}

func compileEntries(entries []allowlist.Listed, home string, fold bool) entryIndex {
	list := entryIndex{byName: map[string][]*entry{}, fold: fold}
	for _, e := range entries {
		compiled := &entry{Listed: e, pattern: compilePattern(e.Pattern, home, fold)}
		switch p := &compiled.pattern; {
		case p.never, e.ArgPattern != "": // a restriction that we cannot read
		case p.all && e.Argv == nil && e.Effects == nil:
			list.star = compiled
			list.globs = append(list.globs, compiled)
		case p.all, p.glob:
			list.globs = append(list.globs, compiled)
		default:
			list.byName[path.Base(p.text)] = append(list.byName[path.Base(p.text)], compiled)
		}
	}
	return list
}

// matching lists the entries whose pattern stands for the program.
func (l *entryIndex) matching(p *Program, real func(string) string) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		try := func(entries []*entry) bool {
			for _, e := range entries {
				if e.pattern.matches(p, real) && !yield(e) {
					return false
				}
			}
			return true
		}
		// A literal pattern has the base name of the program, or of the file behind it.
		name, other := path.Base(p.Path), path.Base(p.Real)
		if try(l.named(name)) && (other == name || try(l.named(other))) {
			try(l.globs)
		}
	}
}

func (l *entryIndex) named(base string) []*entry {
	if l.fold {
		base = strings.ToLower(base)
	}
	return l.byName[base]
}

// exactly reports whether the entry names this very command.
func (e *entry) exactly(seg *Segment) bool {
	return len(e.Argv) > 0 && (e.Argv[0] == seg.Program.Path || e.Argv[0] == seg.Program.Word) && slices.Equal(e.Argv[1:], seg.Args)
}
