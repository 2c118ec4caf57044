package command

import (
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
	"github.com/toolward/toolward/shell/profiles"
)

// inlineFlags are the options by which programs take code in their arguments: letters of short options, and long ones.
var inlineFlags = map[string]struct {
	letters string
	long    []string
	exact   bool // the letters never stand in clusters
}{
	"python": {letters: "c"}, "pypy": {letters: "c"},
	"node": {letters: "ep", long: []string{"--eval", "--print"}}, "nodejs": {letters: "ep", long: []string{"--eval", "--print"}},
	"bun": {letters: "ep", long: []string{"--eval", "--print"}}, "deno": {letters: "ep", long: []string{"--eval", "--print"}},
	"ruby": {letters: "e"}, "perl": {letters: "eE"}, "php": {letters: "r"}, "lua": {letters: "e"},
	"osascript": {letters: "e", exact: true},
	"make":      {letters: "f", long: []string{"--file", "--makefile"}}, "gmake": {letters: "f", long: []string{"--file", "--makefile"}},
	"sed": {letters: "f", long: []string{"--file"}}, "gsed": {letters: "f", long: []string{"--file"}},
	"rg": {long: []string{"--pre", "--hostname-bin"}, exact: true},
}

// findActions are the words by which find does more than find.
var findActions = strings.Fields("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls")

// inlineCode finds code in the arguments: nobody who listed a program has seen it.
func (v *evaluation) inlineCode(seg *Segment, c circumstances) {
	if seg.Blocked != "" {
		return
	}
	hit := ""
	for _, name := range seg.Program.names() {
		if hit == "" {
			hit = v.inlineArgument(seg, name, c)
		}
	}
	if hit == "" {
		return
	}
	seg.Inline = hit
	seg.found(InlineCode, hit)
	if !v.e.policy.LooseInlineEval {
		v.mustAsk(modes.FindingInlineEval)
	}
}

func (v *evaluation) inlineArgument(seg *Segment, name string, c circumstances) string {
	switch name {
	case "awk", "gawk", "mawk", "nawk":
		return v.awkProgram(seg)
	case "find":
		return v.findAction(seg, c)
	case "xargs":
		return v.xargsCommand(seg, c)
	case "sed", "gsed":
		if !seg.profile || v.unprovenScript(seg) {
			return "its script"
		}
	case "deno":
		if len(seg.Args) > 0 && (seg.Args[0] == "eval" || seg.Args[0] == "repl") {
			return seg.Args[0]
		}
	}
	flags, ok := inlineFlags[name]
	if !ok {
		return ""
	}
	operand := false
	for _, arg := range seg.Args {
		if arg == "--" {
			break
		}
		if !strings.HasPrefix(arg, "-") {
			operand = true
			continue
		}
		if inlineOption(arg, flags.letters, flags.long, flags.exact) && (!operand || !understood(seg)) {
			return arg
		}
	}
	return ""
}

// understood reports whether the profile says that no code stands in the arguments: options after a script are the
// script's own.
func understood(seg *Segment) bool {
	return seg.profile && !hasEffect(seg.effects, shell.Evaluates) && !hasEffect(seg.effects, shell.Unknown) &&
		hasEffect(seg.effects, shell.Project) && !slices.Contains([]string{"make", "gmake", "sed", "gsed", "rg"}, seg.Program.names()[0])
}

// inlineOption reports whether an argument is one of the options. A word with one dash counts if any of its letters
// is one of them.
func inlineOption(arg, letters string, long []string, exact bool) bool {
	if strings.HasPrefix(arg, "--") {
		name, _, _ := strings.Cut(arg, "=")
		return slices.ContainsFunc(long, func(l string) bool {
			return name == l || !exact && len(name) > 3 && strings.HasPrefix(l, name) // abbreviated
		})
	}
	if exact || len(arg) == 2 {
		return len(arg) == 2 && strings.Contains(letters, arg[1:])
	}
	return len(arg) > 2 && strings.ContainsAny(arg[1:], letters)
}

// awkProgram reports a program in the arguments that the profile does not prove harmless.
func (v *evaluation) awkProgram(seg *Segment) string {
	if seg.profile {
		if v.unprovenScript(seg) {
			return "its program"
		}
		return ""
	}
	if slices.ContainsFunc(seg.Args, func(a string) bool { return strings.HasPrefix(a, "-f") || strings.HasPrefix(a, "--file") }) &&
		!slices.ContainsFunc(seg.Args, func(a string) bool { return strings.HasPrefix(a, "-e") || strings.HasPrefix(a, "--so") }) {
		return "" // the program is a file
	}
	return "its program"
}

// unprovenScript reports whether the profile of a program with a language of its own found more in it than reading
// and printing.
func (v *evaluation) unprovenScript(seg *Segment) bool {
	inPlace := slices.ContainsFunc(seg.Args, func(a string) bool {
		return strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "i") || strings.HasPrefix(a, "--i")
	})
	return slices.ContainsFunc(seg.effects, func(e shell.Effect) bool {
		switch e.Kind {
		case shell.Evaluates, shell.Runs, shell.Network, shell.Environment:
			return true
		case shell.Writes:
			return !inPlace
		case shell.Reads: // by a command of the script, not by an operand or an option
			return e.Via != "" && e.Via[0] != '-' && !v.inWorkspace(seg, e)
		}
		return false
	})
}

// inWorkspace reports whether the path of an effect lies in the workspace.
func (v *evaluation) inWorkspace(seg *Segment, e shell.Effect) bool {
	if v.r.Places == nil {
		return false
	}
	r, err := v.locate(absolute(seg.Dir, e.Dir), e.Path)
	return err == nil && (r.Zone == place.Workspace || r.Zone == place.Instructions)
}

// findAction reports a word by which find does more than find, unless all that it runs only reads.
func (v *evaluation) findAction(seg *Segment, c circumstances) string {
	runs := ""
	for _, arg := range seg.Args {
		if !slices.Contains(findActions, arg) {
			continue
		}
		if !strings.HasPrefix(arg, "-exec") {
			return arg
		}
		runs = arg
	}
	if runs != "" && v.runsReadOnly(seg, c) {
		return ""
	}
	return runs
}

// xargsCommand reports what xargs runs, unless it only reads, whatever operands it gets.
func (v *evaluation) xargsCommand(seg *Segment, c circumstances) string {
	if v.runsReadOnly(seg, c) {
		return ""
	}
	return "the command that it runs"
}

// runsReadOnly reports whether every command that the segment runs is known to do nothing but read.
func (v *evaluation) runsReadOnly(seg *Segment, c circumstances) bool {
	if !seg.profile || hasEffect(seg.effects, shell.Unknown) || c.depth >= maxDepth {
		return false
	}
	n := 0
	for _, e := range seg.effects {
		if e.Kind != shell.Runs {
			continue
		}
		if n++; n > maxRuns || !v.readOnly(seg, e, c) {
			return false
		}
	}
	return true
}

// maxRuns bounds the commands that are judged within one command.
const maxRuns = 8

// readOnly reports whether a command only reads, whether anything says yes to it or not.
func (v *evaluation) readOnly(seg *Segment, e shell.Effect, c circumstances) bool {
	j := Judged{Effect: e, Verdict: toolward.Ask}
	forced := slices.Clone(v.out.Findings)
	v.runs(seg, &j, c)
	v.out.Findings = forced // what it forces is forced when it is judged
	run := j.Runs
	if run == nil || !run.profile || run.Blocked != "" || run.refuses(InlineCode) {
		return false
	}
	for _, e := range run.effects {
		if e.Kind != shell.Reads {
			return false
		}
	}
	if len(run.effects) == 0 && slices.Contains(showsAnything, run.Program.names()[0]) {
		return true
	}
	return !e.Open || slices.Contains(seg.Program.names(), "find") || slices.Contains(run.Argv, "--") || readsOnly(profiles.Of(run.Program.Path)) || !v.mayListOptions(seg, c.feeding)
}
