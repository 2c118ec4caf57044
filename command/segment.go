package command

import (
	"path"
	"slices"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/shell"
)

// judge finds out what a command is and whether anything says yes to it.
func (v *evaluation) judge(seg *Segment, words []argument, c circumstances) {
	u := shell.Unwrap(seg.Argv)
	seg.Args = []string{}
	if u.Blocked != "" || u.Program >= len(words) {
		seg.block(u.Blocked + " starts another program in a way that is not looked into")
		return
	}
	v.wrappers(seg, &u)
	where := v.where
	where.Dir = seg.Dir
	seg.Args = seg.Argv[u.Program+1 : len(seg.Argv) : len(seg.Argv)]
	seg.Program = v.program(seg.Argv[u.Program], where)
	seg.at = u.Program
	if relative(seg.Program.Word) && (c.loose || len(seg.OtherDir) > 0) {
		seg.block("it depends on an earlier cd which program this is")
	}
	if name := plainName(seg.Program.Real); seg.Program.Found() && shell.IsWrapper(name) {
		// Unwrap looked at the name; a link gave it another.
		seg.block(name + " is called by another name")
	}
	seg.shell = slices.ContainsFunc(seg.Program.names(), isShell) || isMultiplexer(shell.ProgramName(seg.Program.Word))
	v.optionsByNames(seg)
	v.applyRules(seg)
	if isMultiplexer(shell.ProgramName(seg.Program.Word)) && (len(seg.Args) == 0 || !slices.Contains(posixShells, seg.Args[0])) {
		seg.block("only a shell of " + seg.Program.Word + " is looked into")
	}
	v.known(seg)
	v.inlineCode(seg, c)
	if seg.shell {
		v.shellRun(seg, words[u.Program:], c)
	}
	v.satisfy(seg, words[u.Program+1:], c)
}

// wrappers resolves the programs that only start the one that is meant. They run, so they must be what they seem.
func (v *evaluation) wrappers(seg *Segment, u *shell.Unwrapped) {
	where := v.where
	where.Dir = seg.Dir
	for i, at := range u.At {
		end := u.Program
		if i+1 < len(u.At) {
			end = u.At[i+1]
		}
		w := Wrapper{Name: u.Wrappers[i], Program: v.moment.program(seg.Argv[at], where), Args: seg.Argv[at+1 : end]}
		w.Dropped = w.Name == "env"
		if !v.trusts(&w.Program) {
			seg.block(seg.Argv[at] + " is not in a trusted directory")
		}
		seg.Wrappers = append(seg.Wrappers, w)
	}
}

// applyRules applies the rules for argument prefixes.
func (v *evaluation) applyRules(seg *Segment) {
	rule := decide(v.e.policy.Rules, seg.Argv[seg.at:], &seg.Program)
	if rule == nil {
		return
	}
	switch seg.Rule = rule; rule.Decision {
	case Allow:
		return
	case Forbidden:
		v.out.Forbidden = rule.reason()
	}
	v.mustAsk(modes.FindingRule)
	seg.block(rule.reason())
}

// satisfy looks for what says yes to the segment: an entry for everything, the allowlist, a safe program, the preset, in
// this order (docs/commands.md).
func (v *evaluation) satisfy(seg *Segment, args []argument, c circumstances) {
	if seg.Blocked != "" || len(seg.Findings) > 0 || seg.refuses(Expansion) ||
		seg.refuses(InlineCode) && !v.e.policy.LooseInlineEval {
		v.explain(seg, c)
		return
	}
	if v.e.entries.star != nil && v.r.Level == toolward.Normal {
		seg.By, seg.Entry = ByAllowlist, &v.e.entries.star.Listed
		seg.toMachine = seg.Entry.Host == allowlist.OnMachine
		return
	}
	name := path.Base(seg.Program.Word)
	switch {
	case seg.Program.Word == name && slices.Contains(shellBuiltins, name):
		seg.found(BlockedWrapper, name+" is a command of the shell itself")
		return
	case !seg.Program.Found():
		seg.found(NotFound, "there is no program "+seg.Program.Word)
		return
	case seg.shell:
		return // shellRun has looked for what can satisfy it
	}
	switch {
	case v.byEntry(seg, c):
	case v.bySafeBin(seg, args):
	case v.byPreset(seg, c):
	case len(seg.Asks) == 0:
		seg.found(NotListed, "nothing says yes to "+seg.Program.Path)
	}
}

// byEntry tries the entries of the allowlist, and rules that allow.
func (v *evaluation) byEntry(seg *Segment, c circumstances) bool {
	for entry := range v.e.entries.matching(&seg.Program, v.real) {
		if entry.Argv != nil && !entry.exactly(seg) {
			continue
		}
		seg.toMachine = seg.toMachine || entry.Host == allowlist.OnMachine
		// An entry that names the program exactly means this one, wherever it lies; but not what it looks up itself.
		if seg.Program.Hijack != "" && (leadsHere(v.where.Path) || !entry.pattern.names(&seg.Program)) {
			seg.found(PathHijack, seg.Program.Hijack)
			continue
		}
		if v.permits(seg, v.permitOf(entry), c) {
			seg.By, seg.Entry = ByAllowlist, &entry.Listed
			return true
		}
	}
	if seg.Rule != nil && seg.Program.Hijack == "" && v.permits(seg, permit{everything: true}, c) {
		seg.By = ByRule
		return true
	}
	return false
}

// bySafeBin tries the stream filters that may read their standard input without an entry.
func (v *evaluation) bySafeBin(seg *Segment, args []argument) bool {
	bin := v.e.bins[path.Base(seg.Program.Word)]
	if bin == nil || !v.trusts(&seg.Program) {
		return false
	}
	given := make([]safeBinArgument, len(args))
	for i, w := range args {
		given[i] = safeBinArgument{w.text, w.glob, w.expand}
	}
	if !bin.allows(given) {
		return false
	}
	seg.By = BySafeBins
	return true
}
