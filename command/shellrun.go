package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// shellRun looks into what a shell is told to run: a script in its arguments, or a file. An entry for the shell itself
// says yes to nothing.
func (v *evaluation) shellRun(seg *Segment, words []argument, c circumstances) {
	if seg.Blocked != "" || !seg.Program.Found() {
		return
	}
	at := 1
	if isMultiplexer(shell.ProgramName(words[0].text)) {
		at = 2
	} else if !slices.Contains(posixShells, plainName(seg.Program.Word)) {
		seg.found(BlockedWrapper, seg.Program.Word+" runs code that is not looked into")
		return
	}
	script, file := scriptOf(words[at:])
	if only := words[at:]; len(only) == 2 && only[0].text == "-n" && !strings.HasPrefix(only[1].text, "-") && !strings.HasPrefix(only[1].text, "+") {
		v.checksSyntax(seg, only[1].text, c)
		return
	}
	switch {
	case !v.trusts(&seg.Program):
		seg.found(BlockedWrapper, seg.Program.Word+" is not in a trusted directory")
	case c.open:
		seg.found(BlockedWrapper, "operands are added to a script that are not known")
	case script >= 0 && slices.ContainsFunc(words, func(w argument) bool { return w.expand }):
		seg.found(BlockedWrapper, "the script depends on what is expanded")
	case script >= 0:
		v.inner(seg, at+script, c)
	case file >= 0:
		v.scriptFile(seg, words[at+file].text, c)
	default:
		seg.found(BlockedWrapper, "this is not a way to start "+seg.Program.Word+" that is looked into")
	}
}

// checksSyntax judges a shell that reads a script and runs nothing of it.
func (v *evaluation) checksSyntax(seg *Segment, file string, c circumstances) {
	seg.effects, seg.profile = []shell.Effect{{Kind: shell.Reads, Path: file, Via: "-n"}}, true
	if v.trusts(&seg.Program) && v.e.policy.Preset == Developer && v.permits(seg, v.presetPermit(), c) {
		seg.By = ByPreset
	} else if len(seg.Asks) == 0 {
		seg.found(NotListed, "nothing says yes to "+seg.Program.Path)
	}
}

// scriptOf finds the script among the arguments of a POSIX shell: the position of its text, or of its file; -1 if they
// are of any other form. Options that load files or read standard input are none that we know.
func scriptOf(args []argument) (script, file int) {
	for i, w := range args {
		switch {
		case slices.Contains([]string{"-c", "-lc", "-cl", "-ec", "-euc", "-xc", "--command"}, w.text):
			if len(args) == i+2 && args[i+1].text != "" && strings.IndexByte("-+", args[i+1].text[0]) < 0 {
				return i + 1, -1
			}
			// Words after the script become $0, $1, …: it can run them. And what begins like an option is one, even here.
			return -1, -1
		case len(w.text) > 1 && w.text[0] == '-' && strings.Trim(w.text[1:], "euxv") == "":
			continue
		case w.text == "" || w.text[0] == '-' || w.text[0] == '+':
			return -1, -1
		}
		return -1, i
	}
	return -1, -1
}

// inner judges a script in the arguments of a shell.
func (v *evaluation) inner(seg *Segment, script int, c circumstances) {
	if c.depth >= maxDepth {
		seg.found(BlockedWrapper, "shells lie too deeply in each other")
		return
	}
	seg.ScriptArg = seg.at + script
	command, err := shell.Analyze(seg.Argv[seg.ScriptArg])
	if err != nil {
		seg.found(ArgumentUnknown, "the script is not understood: "+err.Error())
		return
	}
	outer := v.locale
	v.locale = outer || slices.ContainsFunc(seg.Assigns, func(a shell.Assign) bool { return strings.HasPrefix(a.Name, "L") })
	defer func() { v.locale = outer }()
	if (v.locale || plainName(seg.Program.Word) != "bash") && !command.Portable() {
		seg.found(ArgumentUnknown, "the script has something that only bash understands")
		return
	}
	if name, unset := v.unset(command); unset && endsAtUnset(seg.Argv[seg.at+1:seg.ScriptArg]) {
		seg.found(ArgumentUnknown, "with -u the shell ends where it finds $"+name+", which is not set")
		return
	}
	if v.bounds.commands += len(command.Segments); v.bounds.commands > maxInnerCommands {
		seg.found(BlockedWrapper, "its scripts run more commands than anybody reads")
		return
	}
	dirs := append([]string{seg.Dir}, seg.OtherDir...)
	seg.Inner = v.command(command, dirs, c.depth+1)
	satisfied := !seg.refuses(Expansion) // then nobody knows what the script is
	for i := range seg.Inner {
		in := &seg.Inner[i]
		satisfied = satisfied && in.By != NotSatisfied
		if in.refuses(InlineCode) {
			seg.found(InlineCode, "the script")
		}
		if in.Blocked != "" {
			seg.block(in.Blocked)
		}
	}
	if satisfied && len(seg.Inner) > 0 {
		seg.By, seg.Script = ByInner, render(seg.Inner)
	} else if len(seg.Asks) == 0 {
		seg.found(NotListed, "nothing says yes to all of the script")
	}
}

// endsAtUnset reports whether a shell has the option -u.
func endsAtUnset(options []string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return !strings.HasPrefix(o, "--") && strings.Contains(o, "u") })
}

// unset finds a parameter that has no value.
func (v *evaluation) unset(c *shell.Command) (name string, found bool) {
	for _, name := range c.Parameters() {
		if v.r.Getenv == nil {
			return name, true
		}
		if _, set := v.r.Getenv(name); !set && name != "PWD" {
			return name, true
		}
	}
	return "", false
}

// scriptFile judges a script in a file: the file is the program.
func (v *evaluation) scriptFile(seg *Segment, file string, c circumstances) {
	if len(seg.OtherDir) > 0 && relativeFile(file) || c.loose && relativeFile(file) {
		seg.found(BlockedWrapper, "it depends on an earlier cd which script this is")
		return
	}
	script := Program{Word: file, Path: absolute(seg.Dir, file)}
	if script.Real = v.moment.real(script.Path, regular); script.Real == "" {
		seg.found(NotFound, "there is no script "+file)
		return
	}
	seg.loads = script.Path
	for entry := range v.e.entries.matching(&script, v.real) {
		if entry.Argv == nil && v.r.Level == toolward.Normal {
			seg.By, seg.Entry = ByAllowlist, &entry.Listed
			return
		}
	}
	seg.effects = []shell.Effect{{Kind: shell.Project}, {Kind: shell.Enters, Path: file}}
	seg.profile = true
	if v.e.policy.Preset == Developer && place.Within(script.Path, v.where.Workspace) && v.permits(seg, v.presetPermit(), c) {
		seg.By = ByPreset
		return
	}
	seg.found(NotListed, "nothing says yes to "+path.Base(script.Path))
}
