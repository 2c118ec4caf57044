package command

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// Taken is a file or directory that a command would delete, move away or write over, as far as its words tell.
type Taken struct {
	Path string // as the command names it
	Real string // absolute; "" if nobody knows where that is
	Tree bool   // with all that lies below
	Name string // only what has a name that matches this pattern, or lies below it; "": all
	Git  string // only what git has in its index (GitTracked), or only what it has not (GitUntracked); "": both
}

// The words of Taken.Git.
const (
	GitTracked   = "tracked"
	GitUntracked = "untracked"
)

// maxTaken bounds how many are looked for one by one; of more, all of the workspace counts.
const maxTaken = 200

// keepsContent are programs that change a file and lose nothing of what is in it.
var keepsContent = strings.Fields("touch chmod chown chgrp mkdir gtouch gchmod gchown gmkdir setfacl")

// deletesEntries are programs that take the name away, not what a link of that name leads to.
var deletesEntries = append([]string{"find", "gfind", "fd", "fdfind", "unlink", "gunlink", "rmdir", "shred"}, takesTrees...)

// Takes lists what the command would delete or write over. Code and what nobody understands says nothing about that.
func (a *Assessment) Takes(places *place.Classifier) []Taken {
	t := &taking{places: places}
	segments := a.Segments
	if text := strings.TrimLeft(a.Command, " \t\n"); !a.OK && strings.HasPrefix(text, ">") {
		segments = onlyRedirected(text, a.Dir) // "> file" is no command of which anything is run, and empties the file
	}
	t.segments(segments, nil)
	if len(t.list) > maxTaken {
		top := places.Layout().Workspace
		return []Taken{{Path: top, Real: top, Tree: true}}
	}
	return t.list
}

// onlyRedirected reads the redirections of a text in front of which there is no program.
func onlyRedirected(text, dir string) []Segment {
	command, err := shell.Analyze("true " + text)
	if err != nil {
		return nil
	}
	segments := make([]Segment, 0, len(command.Segments))
	for _, s := range command.Segments {
		one := Segment{Dir: dir}
		for _, r := range s.Redirs {
			one.Redirs = append(one.Redirs, Redirect{Redirect: r})
		}
		segments = append(segments, one)
	}
	return segments
}

// taking is one search for what a command takes.
type taking struct {
	places *place.Classifier
	list   []Taken
}

// segments looks at commands, at scripts in them, and at what programs run on what they find or are given: "find -exec rm {} +",
// "find | xargs rm". feeding is what comes before the first of them.
func (t *taking) segments(list, feeding []Segment) {
	before := feeding
	for i := range list {
		s := &list[i]
		t.segment(s, before)
		t.segments(s.Inner, nil)
		given := before
		if s.finds() {
			given = list[i : i+1]
		}
		for j := range s.Effects {
			if run := s.Effects[j].Runs; run != nil {
				t.segments([]Segment{*run}, given)
			}
		}
		switch {
		case s.Op != shell.Pipe:
			before = nil
		case len(before) == 0:
			before = list[i : i+1]
		}
	}
}

// finds reports whether the program is one that lists files below the directories that it is given.
func (s *Segment) finds() bool {
	return slices.ContainsFunc(s.Program.names(), func(name string) bool { return name == "find" || name == "gfind" })
}

func (t *taking) segment(s *Segment, feeding []Segment) {
	for _, r := range s.Redirs {
		if r.Writes() && !r.Harmless() && !strings.Contains(r.Op, ">>") {
			t.path(s, shell.Effect{Path: r.Target}, Taken{})
		}
	}
	names := s.Program.names()
	has := func(list []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(list, name) })
	}
	switch {
	case slices.Contains(names, "git"):
		t.git(s)
	case has(keepsContent), has([]string{"tee", "gtee"}) && (slices.Contains(s.Args, "-a") || slices.Contains(s.Args, "--append")):
	default:
		like := Taken{Tree: has(deletesEntries) || hasEffect(s.effects, shell.Destroys)}
		if s.finds() {
			like.Name = onlyNamed(s.Args)
		}
		for _, e := range s.effects {
			switch {
			case e.Kind != shell.Writes && e.Kind != shell.Destroys || e.Path == "":
			case unknownOperand(e.Path):
				t.listed(s, feeding, like)
			default:
				t.path(s, e, like)
			}
		}
	}
}

// listed takes what a program is given that another one has listed.
func (t *taking) listed(s *Segment, feeding []Segment, like Taken) {
	roots := []string{"."}
	if len(feeding) > 0 && feeding[0].finds() {
		roots = roots[:0]
		for _, e := range feeding[0].effects {
			if e.Kind == shell.Reads && e.Path != "" {
				roots = append(roots, e.Path)
			}
		}
		like.Name = onlyNamed(feeding[0].Args)
	}
	like.Tree = true
	for _, root := range roots {
		t.path(s, shell.Effect{Path: root}, like)
	}
}

// onlyNamed is the one pattern that all that find finds must match; "" if there is more to it.
func onlyNamed(args []string) (pattern string) {
	for i, a := range args {
		switch a {
		case "-o", "-or", "!", "-not", ",", "(", ")", "-iname":
			return ""
		case "-name":
			if i+1 == len(args) || pattern != "" {
				return ""
			}
			pattern = args[i+1]
		}
	}
	return pattern
}

// git takes files of the working tree. What it does in the repository is kept whatever it is.
func (t *taking) git(s *Segment) {
	does := subcommand(s.Args)
	like := Taken{Tree: true, Git: GitTracked}
	switch does {
	case "clean":
		like.Git = GitUntracked
	case "rm", "checkout", "restore", "switch", "reset":
	default:
		return
	}
	own := 0 // every one of these writes to "." because it changes the repository
	for _, e := range s.effects {
		if e.Kind == shell.Writes && e.Path == "." {
			own++
		}
	}
	for _, e := range s.effects {
		switch {
		case e.Kind == shell.Destroys && e.Path == "": // "reset --hard" is about all of it, wherever it stands
			t.path(s, shell.Effect{Path: t.places.Layout().Workspace}, like)
		case e.Kind == shell.Destroys,
			e.Kind == shell.Writes && e.Path != "." && e.Path != "",
			e.Kind == shell.Writes && does == "rm" && own > 1:
			t.path(s, e, like)
		}
	}
}

// path takes one path, in every directory in which the segment may start.
func (t *taking) path(s *Segment, e shell.Effect, like Taken) {
	for _, dir := range append([]string{s.Dir}, s.OtherDir...) {
		if len(t.list) > maxTaken {
			return
		}
		one := like
		one.Path = e.Path
		from := absolute(dir, e.Dir)
		if up, err := t.places.Resolve(from, path.Dir(e.Path)); e.IfIn && (err != nil || up.Kind != place.KindDirectory) {
			continue // "cp a b" makes b/a only if b is a directory
		}
		r, err := t.resolve(s, from, e.Path)
		if errors.Is(err, place.ErrNotMounted) {
			continue // it is nothing of this machine
		}
		if one.Real = r.Real; err != nil {
			one.Real = ""
		}
		if at := strings.IndexAny(e.Path, "*?["); err == nil && r.Kind == place.KindMissing && at >= 0 {
			// Only a shell that is not here says which files these are.
			up, last := path.Split(e.Path)
			if before, _ := path.Split(e.Path[:at]); before != up {
				up, last = before, ""
			}
			one = Taken{Path: e.Path, Tree: true, Name: last, Git: like.Git}
			if r, err := t.places.Resolve(from, path.Join(".", up)); err == nil {
				one.Real = r.Real
			}
		}
		if !slices.Contains(t.list, one) {
			t.list = append(t.list, one)
		}
	}
}

func (t *taking) resolve(s *Segment, dir, p string) (place.Resolved, error) {
	if slices.ContainsFunc(s.Program.names(), func(name string) bool { return slices.Contains(deletesEntries, name) }) {
		return t.places.ResolveEntry(dir, p)
	}
	return t.places.Resolve(dir, p)
}
