package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/shell"
)

// always is the entry that "always" would save for a segment that nothing says yes to; not ok if there must be none,
// because the entry would say yes to more than people saw.
func (s *Segment) always(isShell bool) (entry Always, ok bool) {
	file := s.Program.Path
	if isShell {
		file = s.loads
	}
	switch {
	case file == "", s.Blocked != "", s.refuses(InlineCode), len(s.Findings) > 0, s.refuses(Expansion):
		return Always{}, false
	case !isShell && slices.ContainsFunc(s.Program.names(), func(n string) bool { return carriesCode(n) || isMultiplexer(n) && len(s.Program.names()) == 1 }):
		return Always{}, false
	case slices.Contains(shellBuiltins, s.Program.Word), s.Builtin != "", strings.ContainsAny(file, "*?"):
		return Always{}, false
	case slices.ContainsFunc(s.Redirs, func(r Redirect) bool { return !r.Harmless() }):
		return Always{}, false
	}
	entry = Always{Pattern: file, Effects: []string{allowlist.EffectRead}}
	for i := range s.Effects {
		switch e := &s.Effects[i]; {
		case e.Kind == shell.Writes, e.Kind == shell.Project:
			entry.add(allowlist.EffectWrite)
		case e.Kind == shell.Network:
			entry.add(allowlist.EffectNetwork)
		}
		if e := &s.Effects[i]; entry.Argv == nil && e.Verdict != toolward.Allow && e.Kind != shell.Runs {
			// No entry for the program covers it: only this very command.
			entry.Argv = append([]string{file}, s.Args...)
		}
	}
	return entry, true
}

func (a *Always) add(e string) {
	if !slices.Contains(a.Effects, e) {
		a.Effects = append(a.Effects, e)
	}
}

// loaded lists the files that the segment runs or obeys, as given. Of a program that nothing is known of, the first
// operand may be one.
func (s *Segment) loaded() (files []string) {
	if s.loads != "" {
		return []string{s.loads}
	}
	for _, e := range s.effects {
		if e.Kind == shell.Enters && e.Via != "working directory" {
			files = append(files, path.Join(e.Dir, e.Path))
		}
	}
	if !s.profile && s.Builtin == "" {
		for _, arg := range s.Args {
			if arg != "" && !strings.HasPrefix(arg, "-") {
				return append(files, arg)
			}
		}
	}
	return files
}

// position finds the word of the segment that names an absolute path.
func (s *Segment) position(p string) int {
	return slices.IndexFunc(s.Argv, func(word string) bool { return word != "" && absolute(s.Dir, word) == p })
}
