package command

import (
	"slices"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// Start is a program that a part of a command starts, by itself or through another one.
type Start struct {
	Program string // its path
	Args    []string
	Network bool // it talks to the network, as far as is known
}

// Starts lists, for each part of what package job runs, the programs that it starts. Of a text that a shell gets there is
// one part.
func (a *Assessment) Starts() [][]Start {
	parts := make([][]Start, 0, len(a.Segments))
	for i := range a.Segments {
		parts = append(parts, startsOf(a.Segments[i:i+1]))
	}
	if a.ByShell != "" {
		return [][]Start{slices.Concat(parts...)}
	}
	return parts
}

func startsOf(segments []Segment) (list []Start) {
	eachSegment(segments, func(s *Segment) {
		for i := range s.Wrappers {
			list = append(list, Start{Program: s.Wrappers[i].Program.Path, Args: s.Wrappers[i].Args})
		}
		if s.Program.Found() {
			list = append(list, Start{s.Program.Path, s.Args, hasEffect(s.effects, shell.Network)})
		}
	})
	return list
}

// Named are the real paths of guarded files that the command names: what is about to run was allowed to use exactly these.
// A directory is not exactly a file.
func (a *Assessment) Named(places Places) (files []string) {
	var paths []judgedPath
	var writes []bool
	eachSegment(a.Segments, func(s *Segment) {
		for i := range s.effects {
			if e := &s.effects[i]; namesPath(e) {
				paths = append(paths, judgedPath{dir: absolute(s.Dir, e.Dir), path: e.Path})
				writes = append(writes, e.Kind == shell.Writes)
			}
		}
	})
	for i := range paths {
		r, err := places.Resolve(paths[i].dir, paths[i].path)
		if err == nil && r.Kind == place.KindRegular && (r.Zone == place.Secret || r.Zone == place.Protected && writes[i]) {
			files = append(files, r.Real)
		}
	}
	return files
}

// Exact reports whether every part of the command is on the list with exactly these arguments: a person has seen it as it
// runs.
func (a *Assessment) Exact() bool {
	if !a.Satisfied || len(a.Segments) == 0 {
		return false
	}
	return !slices.ContainsFunc(a.Segments, func(s Segment) bool {
		return s.Builtin == "" && (s.By != ByAllowlist || s.Entry == nil || s.Entry.Argv == nil)
	})
}
