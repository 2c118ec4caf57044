package command

import (
	"path"
	"slices"

	"github.com/toolward/toolward/place"
)

// "rm -rf /ws" takes away what "rm -rf /ws/.git" asks about: of a directory that goes, all that lies below goes with it.

// generated are directories whose contents a tool makes again; nobody looks for guarded files in them, of which packages
// bring many.
var generated = []string{
	"node_modules", "target", "dist", "build", "out", "coverage", "__pycache__", ".venv", "venv", ".next", ".nuxt", ".turbo",
	".cache", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".gradle", ".parcel-cache", ".svelte-kit", "bin", "obj", "tmp",
}

// takesTrees are programs that take away directories, or move them, with all that lies below.
var takesTrees = []string{"rm", "grm", "mv", "gmv"}

// mayTake reports whether nothing is lost or moved with a directory that the segment could not touch by itself: the
// workspace, a repository, guarded files. What is more than anybody looks through asks.
func (v *evaluation) mayTake(seg *Segment, r place.Resolved, p permit) bool {
	if r.Kind != place.KindDirectory || !takesDirectories(seg) || slices.Contains(generated, path.Base(r.Real)) {
		return true
	}
	if place.Within(v.where.Workspace, r.Real) {
		return false
	}
	pending := []string{r.Real}
	for len(pending) > 0 {
		at := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		entries, err := v.walked(at)
		if err != nil {
			return false
		}
		for _, e := range entries {
			below := path.Join(at, e.Name())
			if e.IsDir() && slices.Contains(generated, e.Name()) {
				continue
			}
			zone, err := v.zone(below)
			if err != nil || !v.mayWrite(place.Resolved{Real: below, Zone: zone, Kind: place.KindRegular}, p) {
				return false
			}
			if e.IsDir() {
				pending = append(pending, below)
			}
		}
	}
	return true
}

// zone is that of a name in a directory whose real path is known.
func (v *evaluation) zone(real string) (place.Zone, error) {
	if c, ok := v.r.Places.(interface{ Classify(real string) place.Zone }); ok {
		return c.Classify(real), nil
	}
	r, err := v.locate("/", real)
	return r.Zone, err
}

// mayLock reports whether a lock file of the workspace is written by a program that makes one, or just goes: it is made anew then, of
// what the project's own list names.
func mayLock(seg *Segment, r place.Resolved) bool {
	if r.Zone != place.Instructions || r.Kind == place.KindDirectory || !place.IsLockFile(path.Base(r.Real)) {
		return false
	}
	names := seg.Program.names()
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool {
		return name != "rm" && name != "grm" && (name == "git" || !fetches(name))
	})
}

func takesDirectories(seg *Segment) bool {
	return slices.ContainsFunc(seg.Program.names(), func(name string) bool { return slices.Contains(takesTrees, name) })
}
