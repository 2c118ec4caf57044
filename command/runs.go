package command

import (
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/shell"
	"github.com/toolward/toolward/shell/profiles"
)

// placeholder stands for an operand that becomes known only when the command runs.
const placeholder = "{}"

func unknownOperand(p string) bool { return strings.Contains(p, placeholder) }

// runs judges a command that a program runs, by the same rules as if it stood alone.
func (v *evaluation) runs(seg *Segment, j *Judged, c circumstances) bool {
	if v.bounds.runs++; c.depth >= maxDepth || len(j.Argv) == 0 || v.bounds.runs > maxRunsInAll {
		return false
	}
	argv := slices.Clone(j.Argv)
	inner := circumstances{fed: c.fed, loose: c.loose, depth: c.depth + 1}
	if j.Open {
		if !slices.ContainsFunc(argv, unknownOperand) {
			argv = append(argv, placeholder)
		}
		inner.open = true
		inner.options = !slices.Contains(seg.Program.names(), "find") && !slices.Contains(argv, "--") && v.mayListOptions(seg, c.feeding)
		inner.listed = slices.Contains(seg.Program.names(), "find") || !c.fed || listing(c.feeding) && !hasEffect(seg.effects, shell.Reads)
	}
	run := &Segment{Written: argv, Argv: argv, Dir: seg.Dir, OtherDir: seg.OtherDir, ScriptArg: -1}
	words := make([]argument, len(argv))
	for i, text := range argv {
		words[i] = argument{text: text}
	}
	v.judge(run, words, inner)
	j.Runs = run
	return run.By != NotSatisfied && (!inner.open || v.openly(run, inner))
}

// openly reports whether a command may get operands that are not known: only if it does nothing but read, whatever
// they are.
func (v *evaluation) openly(run *Segment, c circumstances) bool {
	if run.profile && len(run.Effects) == 0 && len(run.Wrappers) == 0 && slices.Contains(showsAnything, run.Program.names()[0]) {
		return true
	}
	if run.By == BySafeBins || !run.profile || len(run.Inner) > 0 {
		return false
	}
	for i := range run.Effects {
		e := &run.Effects[i]
		if e.Verdict != toolward.Allow || e.Kind != shell.Reads {
			return false
		}
	}
	// "ls | xargs sort" reads a file named "-o…" as an option.
	return !c.options || readsOnly(profiles.Of(run.Program.Path))
}

// showsAnything are programs that show their operands, or a part of them, whatever they are.
var showsAnything = []string{"echo", "basename", "dirname"}

// readsOnly reports whether no option of the program does anything but read.
func readsOnly(p *profiles.Profile) bool {
	if p == nil || p.Style == profiles.Raw || len(p.Sections) != 1 {
		return false
	}
	section := p.Sections[""]
	if !section.ChecksOnlyRead() || len(section.Does) > 0 {
		return false
	}
	for _, o := range section.Options {
		if o.Role.Name != "text" && o.Role.Name != "reads" || o.Operands != nil && !harmlessRoles(o.Operands) || len(o.Does) > 0 {
			return false
		}
	}
	return harmlessRoles(section.Operands)
}

func harmlessRoles(roles []profiles.Role) bool {
	return !slices.ContainsFunc(roles, func(r profiles.Role) bool { return r.Name != "text" && r.Name != "reads" })
}

// listing reports whether what a pipeline prints are names of files below what it was judged to read. "echo
// ~/.ssh/id_rsa | xargs cat" would read what nobody has looked at.
func listing(pipeline []Segment) bool {
	if len(pipeline) == 0 {
		return false
	}
	for i := range pipeline {
		s := &pipeline[i]
		if s.By == NotSatisfied || s.Heredoc != nil {
			return false
		}
		names := s.Program.names()
		if i == 0 {
			if !lists(names[0], s.Args) {
				return false
			}
			continue
		}
		filters := []string{"sort", "uniq", "head", "tail", "grep", "egrep", "fgrep", "rg"}
		if !slices.Contains(filters, names[0]) || hasEffect(s.effects, shell.Reads) {
			return false
		}
	}
	return true
}

// lists reports whether a program prints names of files and nothing else.
func lists(name string, args []string) bool {
	has := func(options ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(options, a) })
	}
	switch name {
	case "ls", "fd", "fdfind":
		return true
	case "find":
		return !slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "-printf") || strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok")
		})
	case "grep", "egrep", "fgrep":
		return has("-l", "-rl", "-lr", "-L", "--files-with-matches", "--files-without-match")
	case "rg":
		return has("-l", "--files", "--files-with-matches", "--files-without-match")
	case "git":
		return len(args) > 0 && (args[0] == "ls-files" || args[0] == "diff" && has("--name-only") || args[0] == "grep" && has("-l", "--name-only", "--files-with-matches"))
	}
	return false
}
