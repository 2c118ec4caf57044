package command

import (
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// Where somebody else's shell runs the text, it expands the words once more, in an environment of its own and after
// whatever ran before them. What was judged is what runs only for words whose meaning cannot have changed since.

// knownParameters mean the same to every shell that runs for the person in this directory.
var knownParameters = []string{"HOME", "PWD"}

// foreignWords objects to words that the other shell may read in another way.
func (v *evaluation) foreignWords(s *shell.Segment, seg *Segment) {
	for _, a := range s.Assigns {
		// zsh evaluates what a number is wanted for, and what that names: LANG='path[$(id)]' printf %d LANG.
		if strings.ContainsAny(a.Value, "[]$`()") {
			seg.found(Expansion, "a shell may evaluate the value of "+a.Name)
		}
	}
	for i := range s.Words {
		w := &s.Words[i]
		for _, name := range w.Params() {
			if !slices.Contains(knownParameters, name) {
				seg.found(Expansion, "the shell that runs the command may have another $"+name)
			}
		}
		if strings.HasPrefix(w.Source, "=") && len(w.Source) > 1 {
			seg.found(Expansion, w.Source+" is a program to zsh") // "=id" is /usr/bin/id
		}
		if w.Disguised() {
			seg.found(Expansion, w.Source+" is a home directory or a program to zsh")
		}
		if w.Modified() {
			seg.found(Expansion, w.Source+" is changed by what follows the parameter for zsh: write it with braces")
		}
		if w.Dollar() {
			seg.found(Expansion, "zsh may see a parameter in "+w.Source+": write $ in single quotes")
		}
		if w.OddBraces() {
			seg.found(Expansion, w.Source+" means other words to zsh than to bash")
		}
		if w.Descends() {
			seg.found(Expansion, w.Source+" matches directories of any depth for some shells")
		}
		if w.MatchesDots() {
			seg.found(Expansion, "some shells match the directory above with "+w.Source) // bash did up to 5.1
		}
		seg.globs = seg.globs || w.Glob
		if w.Glob && !beginsPlain(w.Source) && !slices.ContainsFunc(s.Words[:i], func(w shell.Word) bool { return w.Source == "--" }) {
			seg.loose = append(seg.loose, w.Source)
		}
	}
}

// otherWords objects to what shells besides bash and zsh read otherwise, where they get the text as it is written: dash knows neither
// braces nor "&>", nor the same characters in patterns, and fish has escapes of its own, for which \x2eenv is .env.
func otherWords(s *shell.Segment, seg *Segment) {
	for i := range s.Words {
		if w := &s.Words[i]; w.Brace || w.Glob && strings.ContainsAny(w.Source, "?[") || w.Escapes() {
			seg.found(Expansion, w.Source+" means other words to some shells")
		}
	}
	for _, r := range s.Redirs {
		if strings.HasPrefix(r.Op, "&") {
			seg.found(Expansion, r.Op+" is something else to some shells: write > and 2>&1")
		}
	}
}

// beginsPlain reports whether whatever a word stands for begins with something other than a dash. HOME and PWD begin
// with a slash, and so does what "~" stands for.
func beginsPlain(source string) bool {
	c := source[0]
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("./~_$", c) >= 0
}

// Programs whose options do no more than change what is shown of the operands; and those that have options to read other
// files, whose names a pattern that ends in plain text limits.
var (
	showOperands = strings.Fields("ls cat head tail echo printf stat cmp od cksum md5sum sha1sum sha256sum sha512sum basename dirname realpath")
	readOperands = strings.Fields("wc du grep egrep fgrep diff")
)

// optionsByNames objects to patterns that another shell may match with a name that is an option. A command in the
// background can make that file between the judgment and the run, where no part of this command does: "sleep 1; touch
// -- --checkpoint-action=exec=sh\ x" and then "sleep 2; tar cf x *".
func (v *evaluation) optionsByNames(seg *Segment) {
	name := seg.Program.names()[0]
	for _, source := range seg.loose {
		last := source[len(source)-1]
		ends := last >= 'a' && last <= 'z' || last >= 'A' && last <= 'Z' || last >= '0' && last <= '9'
		if !slices.Contains(showOperands, name) && !(ends && slices.Contains(readOperands, name)) {
			seg.found(Expansion, source+" may match a name that is an option by then: write ./"+source)
		}
	}
}

// afterwards notes that a pipeline may have written files. It objects to patterns that another shell matches when files
// may have come or gone since they were judged: "touch -- --checkpoint-action=exec=sh; tar cf x *". Programs of one
// pipeline run at the same time, and a script's in a shell: where links may come, nobody looks at their paths in between.
func (v *evaluation) afterwards(pipeline []Segment, depth int) {
	writers := others{found: v.written}
	linkers := others{found: v.linked}
	for i := range pipeline {
		writers.note(i, mayWriteFiles(&pipeline[i]))
		linkers.note(i, mayMakeLinks(&pipeline[i]))
	}
	unseen := others{found: v.linked && depth > 0, at: linkers.at}
	for i := range pipeline {
		s := &pipeline[i]
		// The file of a redirection is there before a script begins.
		opened := len(s.Inner) > 0 && s.ScriptArg >= 0 && slices.ContainsFunc(s.Redirs, func(r Redirect) bool { return r.Writes() && !r.Harmless() })
		if s.matchesFiles() && (writers.besides(i) || opened) {
			s.found(Expansion, "another part of the command may write files that a pattern matches when it runs")
			s.By = NotSatisfied
		}
		if s.followsLinks() && linkers.besides(i) {
			s.found(ArgumentRead, "it follows links that another part of the command may make")
			s.By = NotSatisfied
		}
		if unseen.besides(i) && s.namesPaths() {
			s.found(ArgumentWrite, "its files are where a part of the command that runs beside it may make links")
			s.By = NotSatisfied
		}
	}
	v.unseenPaths(pipeline)
	v.written = writers.any()
	v.filled = v.filled || slices.ContainsFunc(pipeline, func(s Segment) bool { return mayWriteFiles(&s) && plainName(s.Program.Word) != "mkdir" })
	v.strangers = v.strangers || slices.ContainsFunc(pipeline, func(s Segment) bool { return bringsCode(&s) })
	v.linked = linkers.any()
	for i := range pipeline {
		v.takesAway(&pipeline[i])
	}
	v.unpacked = v.unpacked || slices.ContainsFunc(pipeline, func(s Segment) bool { return makesRepositories(&s) })
}

// others tells which programs of a pipeline do something that matters to those beside them.
type others struct {
	found bool // something before the pipeline did
	at    []int
}

func (o *others) note(i int, does bool) {
	if does {
		o.at = append(o.at, i)
	}
}

func (o *others) any() bool { return o.found || len(o.at) > 0 }

// besides reports whether something does that is not the one at i itself.
func (o *others) besides(i int) bool {
	return o.found || len(o.at) > 1 || len(o.at) == 1 && o.at[0] != i
}

// matchesFiles reports whether the segment, or what it gives a shell, has patterns for files.
func (s *Segment) matchesFiles() bool {
	if s.globs {
		return true
	}
	for i := range s.Inner {
		if s.Inner[i].matchesFiles() {
			return true
		}
	}
	return false
}

// mayWriteFiles reports whether a segment may do more than read: create files, or change where links lead.
func mayWriteFiles(s *Segment) bool {
	for _, r := range s.Redirs {
		if r.Writes() && !r.Harmless() {
			return true
		}
	}
	if s.Builtin != "" && s.Builtin != "source" || s.By == BySafeBins {
		return false
	}
	if len(s.Inner) > 0 && s.ScriptArg >= 0 {
		for i := range s.Inner {
			if mayWriteFiles(&s.Inner[i]) {
				return true
			}
		}
		return false
	}
	return !s.profile || writesAny(s.Effects, s.effects)
}

// writesAny looks through the effects of a program, and through those of what it runs.
func writesAny(judged []Judged, effects []shell.Effect) bool {
	for i := range judged {
		if run := judged[i].Runs; judged[i].Kind == shell.Runs && (run == nil || mayWriteFiles(run)) {
			return true
		}
	}
	for i := range effects {
		switch effects[i].Kind {
		case shell.Reads, shell.Network, shell.Environment, shell.Enters:
		case shell.Runs:
			if len(judged) == 0 {
				return true
			}
		case shell.Writes:
			if effects[i].Path != "/dev/null" {
				return true
			}
		default:
			return true
		}
	}
	return false
}
