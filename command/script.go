package command

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/envname"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// Texts of several lines, with variables, loops over words, conditions and what commands print are understood where the text
// that was judged is the one that runs: package shell writes them down as what they come to. Whoever has another shell read
// them is asked as before. So is everybody about a part of which anything asks: such a text runs whole, or is shown whole.

// readsScripts reports whether such texts are looked into.
func (v *evaluation) readsScripts() bool {
	return v.e.policy.Preset == Developer && v.r.Getenv != nil && v.r.Places != nil && (!v.r.ByShell || v.r.Enforced)
}

// ofShell reports whether a command that was understood begins with one that only a shell has.
func ofShell(c *shell.Command) bool {
	return slices.ContainsFunc(c.Segments, func(s shell.Segment) bool {
		return slices.Contains([]string{"source", ".", "set", "exit", "wait"}, s.Words[0].Text)
	})
}

// script judges such a text. It changes nothing unless all of it may run, but that a rule which forbids a part forbids it.
func (v *evaluation) script() (ok bool) {
	if !v.readsScripts() {
		return false
	}
	text, err := (&shell.Script{Sets: v.sets, Exported: v.exported, Expand: v.items, Says: v.says}).Analyze(v.r.Command)
	if err != nil {
		return false
	}
	asked := *v.out
	v.out.OK, v.out.Script, v.several, v.environment = true, true, true, ""
	v.out.Segments = v.command(text, []string{v.r.Dir}, 0)
	if slices.ContainsFunc(text.Segments, func(s shell.Segment) bool { return s.Structured() }) {
		// What stands later may run at the same time or before: judged again, all that a part may have done has happened.
		v.bounds, v.environment = bounds{}, ""
		v.out.Findings, v.out.Segments = nil, v.command(text, []string{v.r.Dir}, 0)
	}
	if len(v.out.Findings) == 0 && !slices.ContainsFunc(v.out.Segments, func(s Segment) bool { return s.By == NotSatisfied }) {
		return true
	}
	asked.Forbidden, asked.Network = v.out.Forbidden, v.out.Network
	*v.out, v.environment, v.bounds = asked, "", bounds{}
	return false
}

// settableValue is what a variable may be set to without a question: a word, a number, a list; no address and no file that lies
// elsewhere. What a program makes of it is not known.
var settableValue = regexp.MustCompile(`^[A-Za-z0-9_.,:@%+= *-][A-Za-z0-9_.,:@%+= */-]*$`)

// sets reports whether a variable may get a value that programs see.
func (v *evaluation) sets(name, value string) bool {
	if envname.Dangerous(name) || envname.Runs(name, value) || !envname.Portable(name) || Reach(v.r.Places, v.r.Dir, value).Real != "" {
		return false
	}
	outside := strings.Contains(value, "://") || strings.Contains(value, "..") || strings.Contains(value, ":/") || strings.Contains(value, "=/") || strings.Contains(value, ",/")
	return value == "" || settableValue.MatchString(value) && !outside
}

func (v *evaluation) exported(name string) bool {
	_, set := v.r.Getenv(name)
	return set
}

// items are the words that a pattern stands for where the text starts.
func (v *evaluation) items(w *shell.Word) ([]string, bool) {
	s := shell.Segment{Words: []shell.Word{{Text: "for", Source: "for"}, *w}}
	got, err := s.Expand(shell.Surroundings{Dir: v.r.Dir, Getenv: v.r.Getenv, ReadDir: v.readDir})
	if err != nil || len(got.Findings) > 0 || len(got.Argv) < 2 {
		return nil, false
	}
	return got.Argv[1:], true
}

// says is what a command prints, if that is known without running it: where the text starts, and the top of its repository.
func (v *evaluation) says(argv []string) (string, bool) {
	switch strings.Join(argv, " ") {
	case "pwd":
		return v.r.Dir, true
	case "git rev-parse --show-toplevel":
		for dir := v.r.Dir; place.Within(dir, v.where.Workspace); dir = path.Dir(dir) {
			if _, err := v.look(path.Join(dir, ".git")); err == nil {
				return dir, v.strangeRepository(dir) == ""
			}
		}
	}
	return "", false
}

// own takes a command of the shell itself that does nothing to files.
func (v *evaluation) own(seg *Segment, s *shell.Segment, dirs []string, depth int) {
	seg.Builtin, seg.By = s.Words[0].Text, ByBuiltin
	seg.Variable, seg.Args = s.Variable, seg.Argv[1:]
	if seg.Builtin == "source" || seg.Builtin == "." {
		v.activate(seg, depth)
		return
	}
	if s.Variable != "" {
		seg.Builtin, seg.Args = "=", []string{}
		seg.Argv = []string{s.Variable + "=" + s.Words[0].Text}
		v.printed(seg, s, dirs, depth)
	}
}

// activate judges the script that puts a virtual environment before all other programs: it is code of the project, and what it is
// there for is to find programs of these names below it from now on.
func (v *evaluation) activate(seg *Segment, depth int) {
	seg.Builtin, seg.By, seg.Target = "source", NotSatisfied, absolute(seg.Dir, seg.Args[0])
	seg.effects, seg.profile, seg.loads = []shell.Effect{{Kind: shell.Project, Via: "source"}, {Kind: shell.Enters, Path: seg.Args[0]}}, true, seg.Target
	there := v.moment.real(seg.Target, regular)
	switch {
	case depth > 0 || len(seg.OtherDir) > 0 || there == "" || !place.Within(there, v.where.Workspace):
		seg.found(BlockedWrapper, "it is not known what it runs")
	case v.permits(seg, v.presetPermit(), circumstances{}):
		seg.By, v.environment = ByPreset, path.Dir(seg.Target)
	}
}

// program finds what a word starts: in a virtual environment that a part of the text activated, it has its own first.
func (v *evaluation) program(word string, where Where) Program {
	if v.environment != "" && !strings.Contains(word, "/") {
		if p := v.moment.program(v.environment+"/"+word, where); p.Found() {
			return p
		}
	}
	return v.moment.program(word, where)
}

// dynamic is a word of which a part becomes known only when it runs.
type dynamic struct {
	at    int // in Argv; the words before it are as many as are written
	parts []printedPart
}

// printedPart is a text, a parameter of the shell that runs the text, or what segments print.
type printedPart struct {
	text, raw string
	segments  []Segment
}

// printed judges the commands whose output stands in words. They may do nothing but read: nobody looks at what else they do, and
// in which order.
func (v *evaluation) printed(seg *Segment, s *shell.Segment, dirs []string, depth int) {
	for i := range s.Words {
		w := &s.Words[i]
		if w.Parts == nil {
			continue
		}
		d := dynamic{at: i}
		for _, p := range w.Parts {
			part := printedPart{text: p.Text, raw: p.Raw}
			if p.Command != nil {
				if v.bounds.commands += len(p.Command.Segments); depth >= maxDepth || v.bounds.commands > maxInnerCommands {
					seg.found(BlockedWrapper, "commands lie too deeply in each other")
					seg.By = NotSatisfied
					return
				}
				part.segments = v.command(p.Command, dirs, depth+1)
				seg.Inner = append(seg.Inner, part.segments...)
			}
			d.parts = append(d.parts, part)
		}
		seg.dynamic = append(seg.dynamic, d)
	}
	for i := range seg.Inner {
		if in := &seg.Inner[i]; in.By == NotSatisfied || !onlyPrints(in) {
			seg.found(ArgumentUnknown, "what it gets is printed by a command that does not only read")
			seg.By = NotSatisfied
		}
	}
}

// onlyPrints reports whether a command reads files and does nothing else.
func onlyPrints(s *Segment) bool {
	if s.Builtin == "cd" || s.Builtin == ":" {
		return true
	}
	if s.Builtin != "" || !s.profile && s.By != BySafeBins || s.By == ByInner || s.By == BySafeBins && len(s.Effects) > 0 {
		return false
	}
	if slices.ContainsFunc(s.Redirs, func(r Redirect) bool { return r.Writes() && !r.Harmless() }) {
		return false
	}
	for i := range s.effects {
		if k := s.effects[i].Kind; k != shell.Reads && k != shell.Enters {
			return false
		}
	}
	return true
}

// takesAny reports whether every word of the segment that is not known stands where any text means the same: it is shown, kept as
// the message of a commit, or compared. Elsewhere it could be an option, or the name of a file.
func (s *Segment) takesAny() bool {
	return !slices.ContainsFunc(s.dynamic, func(d dynamic) bool { return !s.takesAnyAt(d.at) })
}

// plainFormat is one of printf that shows words and numbers no other way than as texts.
var plainFormat = regexp.MustCompile(`^([^%\\]|%%|%s|\\[nt])*$`)

func (s *Segment) takesAnyAt(at int) bool {
	args, n := s.Args, at-s.at-1
	if n < 0 || n >= len(args) || len(s.Wrappers) > 0 {
		return false
	}
	switch name := s.Program.names(); {
	case len(name) > 1:
		return false // a link gives it another name
	case name[0] == "echo":
		return true
	case name[0] == "printf":
		return n > 0 && plainFormat.MatchString(args[0]) && !strings.HasPrefix(args[0], "-")
	case name[0] == "git":
		return n > 1 && (args[0] == "commit" || args[0] == "tag") && (args[n-1] == "-m" || args[n-1] == "--message" || args[n-1] == "-am")
	case name[0] == "[" || name[0] == "test":
		if name[0] == "[" && args[len(args)-1] == "]" {
			args = args[:len(args)-1]
		}
		switch {
		case len(args) == 2:
			return n == 1 && (args[0] == "-n" || args[0] == "-z")
		case len(args) == 3:
			return n != 1 && (args[1] == "=" || args[1] == "==" || args[1] == "!=")
		}
	}
	return false
}

// readsText are programs that read a here-document as text, whatever it says.
var readsText = strings.Fields("cat tee wc grep egrep fgrep sort uniq head tail cut tr nl fold column md5sum sha256sum base64 diff")

// readsDocument reports whether the text of a here-document is nothing but data for the segment: what it does stands in its words.
func (v *evaluation) readsDocument(seg *Segment, document *shell.Heredoc) bool {
	if !v.readsScripts() || !document.Literal || seg.By == NotSatisfied || seg.shell || len(seg.Inner) > 0 {
		return false
	}
	name := seg.Program.names()
	if len(name) == 1 && name[0] == "git" {
		return len(seg.Args) > 2 && seg.Args[0] == "commit" && slices.Contains(seg.Args, "-F") && slices.Contains(seg.Args, "-")
	}
	return len(name) == 1 && slices.Contains(readsText, name[0])
}
