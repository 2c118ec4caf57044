package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// npx runs a program of the project where it finds one, and otherwise what anybody has published under that name: "rm -rf node_modules &&
// npx tsc" is a stranger's code. So it counts what an earlier part of the command may have taken away.

// takers are programs that take away or move what they are given.
var takers = strings.Fields("rm grm rmdir grmdir unlink gunlink mv gmv shred gshred trash rsync")

// uninstallers are the commands of package managers after which a program of the project may be gone.
var uninstallers = strings.Fields("uninstall unlink remove rm r un prune dedupe ddp unstable-remove")

// takesAway notes the paths that a segment, and what it runs, may take away.
func (v *evaluation) takesAway(s *Segment) {
	names := s.Program.names()
	has := func(list ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(list, name) })
	}
	if !has("mv", "gmv") && makesRepositories(s) {
		v.emptied = true // it may put something else in the place of the program, a link that leads nowhere
	}
	switch {
	case has("npm", "pnpm", "yarn", "bun"):
		v.emptied = v.emptied || slices.ContainsFunc(s.Args, func(a string) bool { return slices.Contains(uninstallers, a) })
	case has("git") && subcommand(s.Args) == "stash":
		v.emptied = v.emptied || slices.ContainsFunc(s.Args, func(a string) bool { return a == "--all" || strings.HasPrefix(a, "-") && strings.Contains(a, "a") })
	case has(takers...), has("git") && subcommand(s.Args) == "clean":
		for i := range s.effects {
			v.takesPath(s, &s.effects[i])
		}
	}
	for i := range s.Effects {
		if run := s.Effects[i].Runs; run != nil {
			v.takesAway(run)
		}
	}
	for i := range s.Inner {
		v.takesAway(&s.Inner[i])
	}
}

func (v *evaluation) takesPath(s *Segment, e *shell.Effect) {
	if e.Kind != shell.Writes && e.Kind != shell.Destroys {
		return
	}
	if v.r.Places == nil || e.Path == "" || unknownOperand(e.Path) || len(s.OtherDir) >= maxDirs || len(v.gone) >= maxEffects {
		v.emptied = true
		return
	}
	for _, dir := range append([]string{s.Dir}, s.OtherDir...) {
		at := absolute(absolute(dir, e.Dir), e.Path)
		v.gone = append(v.gone, at)
		if r, err := v.locate("/", at); err != nil {
			v.emptied = true
		} else if r.Real != at {
			v.gone = append(v.gone, r.Real)
		}
	}
}

// hasTool reports whether a program of the project's own lies in every directory in which the segment may start, or in
// one above it in the workspace: there npx finds it.
func (v *evaluation) hasTool(seg *Segment, tool string) bool {
	if v.r.Places == nil || v.emptied {
		return false
	}
	for i := -1; i < len(seg.OtherDir); i++ {
		dir := seg.Dir
		if i >= 0 {
			dir = seg.OtherDir[i]
		}
		if !v.toolAbove(dir, tool) {
			return false
		}
	}
	return true
}

func (v *evaluation) toolAbove(dir, tool string) bool {
	for range maxLevels {
		if !place.Within(dir, v.where.Workspace) {
			return false
		}
		r, err := v.locate(dir, tool)
		if err != nil {
			return false
		}
		if r.Kind != place.KindMissing {
			return r.Kind == place.KindRegular && (r.Zone == place.Workspace || r.Zone == place.Instructions) && !v.touched(path.Join(dir, "node_modules")) && !v.touched(r.Real)
		}
		dir = path.Dir(dir)
	}
	return false
}

// touched reports whether a path, what lies below it or what it lies in may have been taken away.
func (v *evaluation) touched(p string) bool {
	return slices.ContainsFunc(v.gone, func(gone string) bool { return place.Within(p, gone) || place.Within(gone, p) })
}
