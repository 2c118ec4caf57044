package command

import (
	"slices"

	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/place"
)

// conclude says of the whole command what follows from its segments.
func (v *evaluation) conclude() {
	a := v.out
	a.Satisfied = a.OK && len(a.Segments) > 0
	for i := range a.Segments {
		a.Satisfied = a.Satisfied && a.Segments[i].By != NotSatisfied
	}
	if len(a.Hidden) > 0 {
		v.mustAsk(modes.FindingObfuscation)
	}
	slices.Sort(a.Findings)
	if !v.files() && a.Forbidden == "" {
		a.Forbidden = "it loads more files than can be held to what was approved"
	}
	if a.Forbidden == "" && v.touchesGate(a.Segments) {
		a.Forbidden = "it would start, read or change Toolward itself"
	}
	if !a.Satisfied {
		if a.OK && len(a.Hidden) == 0 {
			v.always(a.Segments)
		}
	} else if !heredocs(a.Segments) || v.readsScripts() && !slices.Contains(a.Findings, modes.FindingHeredoc) {
		a.Enforced = render(a.Segments)
	}
	a.ByShell = a.byShell()
}

// touchesGate reports whether the command is aimed at Toolward's own programs and files. An agent that could start or
// change them would answer its own questions; the file tools refuse the same.
func (v *evaluation) touchesGate(segments []Segment) bool {
	if v.r.Places == nil {
		return false
	}
	own := v.r.Places.Layout().Own
	for i := range segments {
		s := &segments[i]
		if s.Program.Found() && (slices.Contains(own, s.Program.Path) || slices.Contains(own, s.Program.Real)) || v.touchesGate(s.Inner) {
			return true
		}
		for i := range s.Redirs {
			if r := &s.Redirs[i]; r.File.Real != "" && r.File.Zone == place.Self {
				return true
			}
		}
		for j := range s.Effects {
			if e := &s.Effects[j]; e.Place == place.Self.String() || e.Runs != nil && v.touchesGate([]Segment{*e.Runs}) {
				return true
			}
		}
	}
	return false
}

func heredocs(segments []Segment) bool {
	for i := range segments {
		if segments[i].Heredoc != nil || heredocs(segments[i].Inner) {
			return true
		}
	}
	return false
}

// always lists what "always" would save: for every segment that nothing says yes to, its program.
func (v *evaluation) always(segments []Segment) {
	for i := range segments {
		s := &segments[i]
		if s.By != NotSatisfied {
			continue
		}
		if len(s.Inner) > 0 && s.ScriptArg >= 0 && s.Blocked == "" {
			v.always(s.Inner)
			continue
		}
		if entry, ok := s.always(s.shell); ok && !slices.ContainsFunc(v.out.Always, func(a Always) bool { return sameEntry(a, entry) }) {
			v.out.Always = append(v.out.Always, entry)
		}
	}
}

func sameEntry(a, b Always) bool {
	return a.Pattern == b.Pattern && (a.Argv == nil) == (b.Argv == nil) && slices.Equal(a.Argv, b.Argv) && slices.Equal(a.Effects, b.Effects)
}

// files lists the files whose contents decide what runs; not if they are too many to look at.
func (v *evaluation) files() bool {
	for i := range v.out.Segments {
		s := &v.out.Segments[i]
		for _, p := range once(s.loaded()) {
			if v.bounds.loaded++; v.bounds.loaded > maxLoaded {
				return false
			}
			p = absolute(s.Dir, p)
			if real := v.moment.real(p, regular); real != "" {
				v.out.Files = append(v.out.Files, LoadedFile{i, s.position(p), p, real})
			}
		}
	}
	return true
}

// once leaves out what stands in a list before.
func once(list []string) []string {
	if len(list) < 2 {
		return list
	}
	before := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s string) bool {
		again := before[s]
		before[s] = true
		return again
	})
}
