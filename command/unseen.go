package command

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// Behind a client's hook its own shell runs the text, and nobody looks at paths again between the parts of it (again.go):
//
//	git stash pop && cat c/a
//
// reads what the link c leads to that the first part makes. So a later part asks about what lies where an earlier one may make links,
// unless that one is known to make none.

// anywhere is where links may come of which nothing is known.
const anywhere = "/"

// unseenPaths objects to paths of a pipeline that lead somewhere else by then, and remembers where its programs may make links.
func (v *evaluation) unseenPaths(pipeline []Segment) {
	if !v.r.ByShell || v.r.Rejudged || v.r.Sandboxed {
		return
	}
	made := make([][]string, len(pipeline))
	for i := range pipeline {
		made[i] = v.linksBelow(&pipeline[i])
	}
	for i := range pipeline {
		s := &pipeline[i]
		below := slices.Clone(v.links)
		for j := range made {
			if j != i {
				below = append(below, made[j]...)
			}
		}
		if len(below) == 0 {
			continue
		}
		if named := v.leadsBelow(s, below); named != "" {
			s.found(ArgumentRead, named+" may be a link by then that another part of the command makes: run it by itself")
			s.By = NotSatisfied
		}
	}
	for i := range made {
		v.links = append(v.links, made[i]...)
	}
}

// leadsBelow is the first path that the segment reads or writes which lies at or below one of the places.
func (v *evaluation) leadsBelow(s *Segment, places []string) string {
	leads := func(dir, p string) bool {
		at := absolute(dir, p)
		r, err := v.locate(dir, p)
		return slices.ContainsFunc(places, func(below string) bool {
			return err != nil || place.Within(at, below) || place.Within(r.Real, below)
		})
	}
	for _, dir := range append([]string{s.Dir}, s.OtherDir...) {
		for i := range s.effects {
			e := &s.effects[i]
			here := e.Path == "." && e.Dir == "" && dir == v.r.Dir
			if (e.Kind == shell.Reads || e.Kind == shell.Writes) && namesPath(e) && !here && e.Path != "/dev/null" && e.Path != "-" && leads(absolute(dir, e.Dir), e.Path) {
				return e.Path
			}
		}
		for i := range s.Redirs {
			if r := &s.Redirs[i]; !r.Harmless() && r.Op != ">&" && leads(dir, r.Target) {
				return r.Target
			}
		}
	}
	for i := range s.Effects {
		if run := s.Effects[i].Runs; run != nil {
			if named := v.leadsBelow(run, places); named != "" {
				return named
			}
		}
	}
	return ""
}

// linksBelow lists the places at or below which links may be after the segment that were not there before. What the project's own code
// does is not asked: it needs no links to read what it likes.
func (v *evaluation) linksBelow(s *Segment) (below []string) {
	for i := range s.Inner {
		below = append(below, v.linksBelow(&s.Inner[i])...)
	}
	for i := range s.Effects {
		if run := s.Effects[i].Runs; run != nil {
			below = append(below, v.linksBelow(run)...)
		}
	}
	if !hasEffect(s.effects, shell.Writes) && !hasEffect(s.effects, shell.Destroys) {
		return below
	}
	has := func(letters string, words ...string) bool { return hasOption(s.Args, letters, words...) }
	switch name := plainName(s.Program.Word); name {
	case "git":
		if keepsFiles(s.Args) || patches(s) && s.By == ByPreset { // its names were read, and no link among them
			return below
		}
		return append(below, v.checkedOut(s))
	case "patch", "gpatch":
		if s.By == ByPreset {
			return below
		}
	case "cp", "gcp":
		if !has("rRadPsl", "--recursive", "--archive", "--no-dereference", "--symbolic-link", "--link") || v.carriesNoLinks(s) {
			return below
		}
	case "mv", "gmv":
		if v.carriesNoLinks(s) {
			return below
		}
	case "rsync":
		if !has("alK", "--archive", "--links") {
			return below
		}
	case "tar", "gtar", "bsdtar", "7z", "7za", "7zr", "7zz", "ar", "gar", "cpio":
		if !unpacks(s) && !(name == "cpio" && has("p", "--pass-through")) {
			return below
		}
	case "ln", "gln", "unzip", "jar", "ditto", "unrar", "unar", "unsquashfs", "dpkg", "dpkg-deb":
	default:
		return below
	}
	return append(below, v.outputs(s)...)
}

// outputs are the places that the segment writes.
func (v *evaluation) outputs(s *Segment) (list []string) {
	for _, dir := range append([]string{s.Dir}, s.OtherDir...) {
		for i := range s.effects {
			e := &s.effects[i]
			if e.Kind != shell.Writes && e.Kind != shell.Destroys {
				continue
			}
			if !namesPath(e) {
				return []string{anywhere}
			}
			list = append(list, absolute(absolute(dir, e.Dir), e.Path))
			if r, err := v.locate(absolute(dir, e.Dir), e.Path); err == nil {
				list = append(list, r.Real)
			}
		}
	}
	return list
}

// checkedOut is where git may make links: in the repository, which nobody has looked for but where it is the workspace.
func (v *evaluation) checkedOut(s *Segment) string {
	inside := place.Within(s.Dir, v.where.Workspace) && len(s.OtherDir) == 0 && !hasOption(s.Args, "C", "--git-dir", "--work-tree")
	if _, err := v.look(path.Join(v.where.Workspace, ".git")); inside && err == nil {
		return v.where.Workspace
	}
	return anywhere
}

// carriesNoLinks reports whether there is no link among, or below, the files that the segment names, nor can have come.
func (v *evaluation) carriesNoLinks(s *Segment) bool {
	if v.linked || len(s.OtherDir) > 0 || len(v.links) > 0 {
		return false
	}
	for i := range s.effects {
		e := &s.effects[i]
		if e.Kind != shell.Reads && e.Kind != shell.Writes {
			continue
		}
		if !namesPath(e) {
			return false
		}
		dir := absolute(s.Dir, e.Dir)
		r, err := v.locate(dir, e.Path)
		if err != nil || r.ViaLink || r.Real != absolute(dir, e.Path) || r.Kind == place.KindDirectory && !v.holdsNoLinks(r.Real) {
			return false
		}
	}
	return true
}

func (v *evaluation) holdsNoLinks(dir string) bool {
	for pending := []string{dir}; len(pending) > 0; {
		at := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		entries, err := v.walked(at)
		if err != nil {
			return false
		}
		for _, e := range entries {
			switch {
			case e.Type()&fs.ModeSymlink != 0:
				return false
			case e.IsDir():
				pending = append(pending, path.Join(at, e.Name()))
			}
		}
	}
	return true
}

// keepsFiles reports whether git leaves the files of the working tree as they are, or only takes some away.
func keepsFiles(args []string) bool {
	does := subcommand(args)
	rest := args[min(slices.Index(args, does)+1, len(args)):]
	words := slices.DeleteFunc(slices.Clone(rest), func(a string) bool { return strings.HasPrefix(a, "-") })
	switch does {
	case "checkout", "switch": // a branch that begins where one is
		return len(rest) == 2 && len(words) == 1 && slices.Contains([]string{"-b", "-c", "--create"}, rest[0])
	case "stash":
		return len(words) > 0 && slices.Contains([]string{"list", "show", "drop", "clear"}, words[0])
	case "reset":
		return !hasOption(rest, "", "--hard", "--merge", "--keep")
	case "restore":
		return hasOption(rest, "", "--staged", "-S") && !hasOption(rest, "W", "--worktree")
	case "worktree", "submodule":
		return len(words) > 0 && slices.Contains([]string{"list", "prune", "remove", "status", "summary"}, words[0])
	}
	return slices.Contains(fileKeepers, does)
}

var fileKeepers = strings.Fields(`add commit push fetch status log diff show branch tag remote config rev-parse describe blame grep ls-files ls-tree
	ls-remote shortlog reflog cat-file rev-list name-rev for-each-ref notes gc fsck count-objects init help version var check-ignore archive bundle
	format-patch merge-base symbolic-ref update-ref write-tree hash-object rm clean diff-tree diff-index diff-files show-ref whatchanged maintenance`)

// hasOption reports whether one of the options is among the arguments, also as one of a cluster or with the beginning of its name.
func hasOption(args []string, letters string, words ...string) bool {
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		switch {
		case a == "--":
			return false
		case strings.HasPrefix(a, "--"):
			if len(name) > 3 && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, name) }) {
				return true
			}
		case strings.HasPrefix(a, "-"):
			if strings.ContainsAny(a[1:], letters) || slices.Contains(words, a) {
				return true
			}
		}
	}
	return false
}
