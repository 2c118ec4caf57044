package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// discards are the commands of git that lose work in the files of the workspace, or names of commits. Both are kept where calls can be
// taken back. What "git gc --prune", "reflog expire" and "stash drop" lose is not.
var discards = []string{"branch", "checkout", "clean", "reset", "restore", "switch"}

// takenBack reports whether what a segment destroys is work that a person can have back. Only without a stranger's text in the session:
// an agent that was led astray would have people spend their time on taking back. And only in the workspace's own repository: of
// another one, or of a workspace that is a part of one, the rest is not kept.
func (v *evaluation) takenBack(seg *Segment) bool {
	if !v.r.Kept || v.r.Level != toolward.Normal || !seg.obeysRepositories() || len(seg.Args) == 0 || !slices.Contains(discards, seg.Args[0]) {
		return false
	}
	top := v.where.Workspace
	if node, err := v.look(path.Join(top, ".git")); err != nil || !node.Mode.IsDir() {
		return false
	}
	for _, dir := range append([]string{seg.Dir}, seg.OtherDir...) {
		if !v.inOwnRepository(dir) {
			return false
		}
	}
	return seg.Args[0] != "clean" || !cleansRepositories(seg.Args) && !v.guardedBelow(top)
}

// inOwnRepository reports whether git, started in a directory of the workspace, works in the repository that the workspace is.
func (v *evaluation) inOwnRepository(dir string) bool {
	r, err := v.locate("/", dir)
	if err != nil || !place.Within(r.Real, v.where.Workspace) || v.strangeRepository(r.Real) != "" {
		return false
	}
	for at := r.Real; at != v.where.Workspace; at = path.Dir(at) {
		if _, err := v.look(path.Join(at, ".git")); err == nil {
			return false // a submodule, or another working tree
		}
	}
	return true
}

// cleansRepositories reports whether "git clean" takes away repositories in the working tree, too: given -f twice.
func cleansRepositories(args []string) bool {
	forces := 0
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "--f"):
			forces++
		case strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--"):
			forces += strings.Count(a, "f")
		}
	}
	return forces > 1
}

// guardedBelow reports whether files lie below a directory that an agent may not take away, such as the settings of a client in which
// this gateway's hook stands, the repository itself apart. What cannot be looked through counts as such.
func (v *evaluation) guardedBelow(top string) bool {
	pending := []string{top}
	for len(pending) > 0 {
		at := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		entries, err := v.walked(at)
		if err != nil {
			return true
		}
		for _, e := range entries {
			below := path.Join(at, e.Name())
			if e.IsDir() && (slices.Contains(generated, e.Name()) || below == path.Join(top, ".git")) {
				continue
			}
			if zone, err := v.zone(below); err != nil || zone == place.Self || zone == place.Protected {
				return true
			}
			if e.IsDir() {
				pending = append(pending, below)
			}
		}
	}
	return false
}
