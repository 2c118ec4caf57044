package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/shell"
)

// maxDirs bounds in how many directories a segment may start before nobody can tell any more.
const maxDirs = 8

// maxWords bounds what is judged of one command.
const maxWords = 4096

// state is where a shell would stand between two commands, and whether the last one succeeded.
type state struct {
	dir string
	ok  bool
}

// command judges the segments of a command line, one after the other, as a shell would reach them. dirs are the
// directories in which it may start.
func (v *evaluation) command(c *shell.Command, dirs []string, depth int) []Segment {
	states := make([]state, 0, 4)
	for _, dir := range dirs {
		states = append(states, state{dir, true})
	}
	segments := make([]Segment, len(c.Segments))
	loose := false // a cd was followed by something else than "&&"
	ran := false   // a program: it may have removed the directory that a cd behind it names
	before := shell.Sequence
	var outer [][]state // of the shells around: what moves in "( )" moves nobody else
	structured := depth
	if slices.ContainsFunc(c.Segments, func(s shell.Segment) bool { return s.Structured() }) {
		structured = max(depth, 1) // a shell runs it, and nobody looks again in between
	}
	for i := 0; i < len(segments); {
		end := i + 1
		for end < len(segments) && c.Segments[end-1].Op == shell.Pipe && c.Segments[end-1].After == "" && c.Segments[end].Before == "" {
			end++
		}
		for range strings.Count(c.Segments[i].Before, "( ") {
			outer = append(outer, states)
		}
		runs, skips := reach(states, before)
		starts := directories(runs)
		lost := len(directories(states)) > maxDirs
		if lost {
			starts = directories(states) // and it stays so: nobody can tell any more
		}
		for j := i; j < end; j++ {
			v.segment(&segments[j], &c.Segments[j], segments[i:j], starts, loose, depth)
			if op := c.Segments[j].Op; segments[j].Builtin == "cd" && op != shell.And && op != shell.None {
				loose = true
			}
		}
		v.afterwards(segments[i:end], structured)
		if last := &segments[end-1]; v.r.ByShell && end > i+1 && last.Builtin == "cd" {
			// zsh runs the last part of a pipeline itself: what follows would start in another directory than with bash.
			last.found(Expansion, "shells differ in where a pipeline that ends in cd leaves them")
			last.By = NotSatisfied
		}
		// Every program of a pipeline runs in a shell of its own: a cd among them moves nobody else.
		switch cd := end == i+1 && segments[i].Builtin == "cd"; {
		case lost:
		case cd:
			states = distinct(append(v.moved(runs, &segments[i], ran), skips...))
		default:
			states = distinct(append(either(starts), skips...))
		}
		for range strings.Count(c.Segments[end-1].After, " )") {
			n := len(outer) - 1
			states, outer = distinct(either(directories(outer[n]))), outer[:n]
		}
		ran = ran || segments[i].Builtin != "cd"
		before, i = c.Segments[end-1].Op, end
	}
	return segments
}

// reach divides states into those in which the next command runs and those in which it is skipped.
func reach(states []state, op shell.Operator) (runs, skips []state) {
	for _, s := range states {
		if op == shell.And && !s.ok || op == shell.Or && s.ok {
			skips = append(skips, s)
		} else {
			runs = append(runs, s)
		}
	}
	if len(runs) == 0 {
		// It cannot run by what we know; judge it as if it could, and what follows as if it had not.
		return states, states
	}
	return runs, skips
}

func distinct(states []state) []state {
	var list []state
	for _, s := range states {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func directories(states []state) (dirs []string) {
	for _, s := range states {
		if !slices.Contains(dirs, s.dir) {
			dirs = append(dirs, s.dir)
		}
	}
	return dirs
}

// either is what is after a program: it may succeed or fail.
func either(dirs []string) []state {
	after := make([]state, 0, 2*len(dirs))
	for _, dir := range dirs {
		after = append(after, state{dir, true}, state{dir, false})
	}
	return after
}

// moved is what is after cd: it fails only where the directory is not there, or may not be there any more.
func (v *evaluation) moved(states []state, cd *Segment, ran bool) (after []state) {
	for _, dir := range directories(states) {
		target := absolute(dir, cd.Args[0])
		after = append(after, state{target, true})
		if ran || v.moment.real(target, directory) == "" {
			after = append(after, state{dir, false})
		}
	}
	return after
}

// segment judges one simple command. feeding are those of its pipeline before it.
func (v *evaluation) segment(seg *Segment, s *shell.Segment, feeding []Segment, dirs []string, loose bool, depth int) {
	seg.Written, seg.Assigns, seg.Op = s.Argv(), s.Assigns, s.Op
	seg.Dir, seg.OtherDir, seg.ScriptArg = dirs[0], dirs[1:], -1
	seg.Before, seg.After = s.Before, s.After
	words := v.expanded(s, seg)
	seg.Argv = argvOf(words, seg.Written)
	if s.Heredoc != nil {
		text, _ := s.Body(shell.Surroundings{Dir: seg.Dir, Getenv: v.lookup})
		seg.Heredoc = &text
		if other := seg.OtherDir; len(other) > 0 {
			if there, _ := s.Body(shell.Surroundings{Dir: other[0], Getenv: v.lookup}); there != text {
				seg.found(Expansion, "it depends on an earlier cd what $PWD is")
			}
		}
	}
	if len(dirs) > maxDirs {
		seg.found(Expansion, "it is not known in which directory it starts")
	}
	if len(words) > maxWords {
		seg.found(Expansion, "it has more words than anybody reads")
		return
	}
	if s.Own {
		v.own(seg, s, dirs, depth)
		return
	}
	v.printed(seg, s, dirs, depth)
	plain := len(seg.Asks) == 0 && len(seg.dynamic) == 0 && len(s.Redirs) == 0 && s.Heredoc == nil && len(s.Assigns) == 0
	if seg.Argv[0] == "cd" && plain && changesDirectory(words) {
		seg.Builtin, seg.By, seg.Args = "cd", ByBuiltin, seg.Argv[1:]
		seg.Target = absolute(seg.Dir, seg.Args[0])
		return
	}
	if seg.Argv[0] == "cd" {
		// A shell changes the directory, whatever program has that name; what follows would be judged in another one.
		seg.Args, seg.Program = seg.Argv[1:], Program{Word: "cd"}
		seg.block("cd is not followed as it is written here")
		v.redirections(seg, s.Redirs)
		return
	}
	c := circumstances{feeding: feeding, fed: len(feeding) > 0 || s.Fed, loose: loose, depth: depth}
	if s.Fed {
		c.feeding = nil // not all of it
	}
	unsure := len(seg.Asks) > 0
	v.judge(seg, words, c)
	if len(seg.dynamic) > 0 && (unsure || len(words) != len(s.Words) || !seg.takesAny()) {
		seg.found(Expansion, "a command prints what it gets, which may be an option or the name of any file")
		seg.By = NotSatisfied
	}
	v.redirections(seg, s.Redirs)
	v.patched(seg)
	v.archived(seg)
	if s.Heredoc != nil && !v.readsDocument(seg, s.Heredoc) {
		v.mustAsk(modes.FindingHeredoc)
	}
}

func (v *evaluation) lookup(name string) (string, bool) { return v.getenv(name), true }

// changesDirectory reports whether the words are cd with one literal directory.
func changesDirectory(words []argument) bool {
	return len(words) == 2 && !words[1].expand && words[1].text != "" && !strings.HasPrefix(words[1].text, "-") && !oddDirectory(words[1].text)
}

// oddDirectory reports whether shells do something else than to enter the directory that the path means: "cd a/.." fails
// if there is no a, and without links it leads elsewhere than with them; "cd //a" makes PWD "//a".
func oddDirectory(dir string) bool {
	if strings.HasPrefix(dir, "//") {
		return true
	}
	named := false
	for part := range strings.SplitSeq(dir, "/") {
		if part == ".." && named {
			return true
		}
		named = named || part != ".." && part != "." && part != ""
	}
	return false
}

// relative reports whether a path depends on the working directory.
func relative(p string) bool {
	return strings.Contains(p, "/") && !path.IsAbs(p) && !strings.HasPrefix(p, "~/")
}
