package command

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// git obeys the configuration of the repository that it finds: core.fsmonitor alone is a command that "git status" runs.
// The repository in which the workspace lies is a person's. One that lies deeper may have come in an archive, or be put
// together by an agent from ordinary files, so that it asks — but for those that git itself keeps in the workspace's own:
// submodules and worktrees.

// maxLevels bounds how many directories are looked at on the way up from where git works.
const maxLevels = 64

// obeysRepositories reports whether a program obeys the configuration of a repository that it finds.
func (s *Segment) obeysRepositories() bool { return slices.Contains(s.Program.names(), "git") }

// strangeRepository says why the repository that git finds from a directory, given by its real path, may be another
// than the workspace's own; "" if it is not.
func (v *evaluation) strangeRepository(dir string) string {
	top := v.where.Workspace
	if !place.Within(dir, top) {
		return "" // whether git may work there at all is decided by the place
	}
	if dir != top && v.unpacked {
		return "what was unpacked or copied before may be a repository"
	}
	for range maxLevels {
		switch {
		case v.looksBare(dir):
			return dir + " looks like a repository itself, whoever made it"
		case dir == top:
			return ""
		}
		node, err := v.look(path.Join(dir, ".git"))
		switch {
		case err != nil:
		case node.Mode.IsRegular() && v.ownPointer(dir):
			return "" // nothing above it is looked at by git
		default:
			return dir + " is a repository of its own, with its own configuration"
		}
		dir = path.Dir(dir)
	}
	return "it lies too deep to see in which repository"
}

// looksBare reports whether git would take the files of a directory for a repository.
func (v *evaluation) looksBare(dir string) bool {
	if _, err := v.look(path.Join(dir, "HEAD")); err != nil {
		return false
	}
	for _, name := range []string{"objects", "commondir"} {
		if _, err := v.look(path.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

func (v *evaluation) look(p string) (Node, error) {
	if v.bounds.elements += lookupCost; v.bounds.elements > maxElements {
		return Node{}, nil // something stands there, for all that is known
	}
	node, err := v.e.resolver.files.Look(p)
	if err != nil && !isMissing(err) {
		return Node{}, nil
	}
	return node, err
}

// ownPointer reports whether the file ".git" of a directory leads into the repository of the workspace: git keeps those
// of submodules and worktrees there, where no agent writes.
func (v *evaluation) ownPointer(dir string) bool {
	target := v.pointsTo(dir)
	for up := v.where.Workspace; target != ""; up = path.Dir(up) {
		node, err := v.look(path.Join(up, ".git"))
		own := path.Join(up, ".git")
		switch {
		case err != nil && up == "/":
			return false
		case err != nil:
			continue
		case node.Mode.IsRegular():
			// The workspace is a worktree, whose repository lies elsewhere, or a submodule.
			own, _, _ = strings.Cut(v.pointsTo(up), "/worktrees/")
		case !node.Mode.IsDir():
			return false
		}
		return own != "" && target != own && place.Within(target, own)
	}
	return false
}

// pointsTo is the real path of the directory that the file ".git" of a directory names; "" if it names none.
func (v *evaluation) pointsTo(dir string) string {
	text, err := v.e.resolver.files.GitPointer(path.Join(dir, ".git"))
	target, ok := strings.CutPrefix(strings.TrimRight(text, "\r\n"), "gitdir: ")
	if err != nil || !ok || target == "" || strings.ContainsAny(target, "\x00\n") {
		return ""
	}
	return v.moment.real(absolute(dir, target), directory)
}

// unpackers make files whose names their arguments do not tell, or move whole directories.
var unpackers = strings.Fields("tar gtar bsdtar unzip z za zr zz 7z 7za 7zr 7zz cpio jar patch gpatch cp gcp mv gmv rsync scp ditto install ginstall")

// makesRepositories reports whether a segment may put a repository together: from an archive, or by making its HEAD.
func makesRepositories(s *Segment) bool {
	for _, r := range s.Redirs {
		if r.Writes() && headOf(r.Target) {
			return true
		}
	}
	for i := range s.effects {
		if s.effects[i].Kind == shell.Writes && headOf(s.effects[i].Path) {
			return true
		}
	}
	for i := range s.Effects {
		if run := s.Effects[i].Runs; run != nil && makesRepositories(run) {
			return true
		}
	}
	for i := range s.Inner {
		if makesRepositories(&s.Inner[i]) {
			return true
		}
	}
	return slices.Contains(unpackers, shell.ProgramName(s.Program.Word)) && hasEffect(s.effects, shell.Writes)
}

func headOf(p string) bool { return strings.EqualFold(path.Base(p), "HEAD") }

// isMissing reports whether nothing stands at a path.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
