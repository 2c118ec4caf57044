//go:build linux

package shellfuzz

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/command"
)

// Comes compares a text of several commands with what analysis says that it comes to, and that runs in its place: bash must
// start the same programs with the same words, in the same directories and environments, open the same files for writing,
// and end in the same way. Programs that are builtins for the one and files for the other are left out.
func (b *Bash) Comes(text string) (compared bool, difference *Difference, err error) {
	a := b.analyst.assess(text)
	if !a.OK || !a.Script || a.Enforced == "" || !comparable(a.Segments) {
		return false, nil, nil
	}
	given, err := b.account(text)
	if err != nil {
		return false, nil, err
	}
	judged, err := b.account(a.Enforced)
	if err != nil {
		return false, nil, err
	}
	if given != judged {
		return true, &Difference{"script", fmt.Sprintf("%s\n\tas given:\n%s\tas judged:\n%s", a.Enforced, given, judged)}, nil
	}
	return true, nil, nil
}

// comparable reports whether what a text does is seen, and is the same every time.
func comparable(segments []command.Segment) bool {
	writes, patterns := false, false
	for i := range segments {
		s := &segments[i]
		st := stage{segment: s}
		for _, r := range s.Redirs {
			if r.Writes() && !st.writable(r.Target) {
				return false
			}
			writes = writes || r.Writes()
		}
		patterns = patterns || len(s.Expanded) > 0
		// Wrappers show the path of what they start; the sandbox has another cat than the one that is taken for known.
		if len(s.Findings) > 0 || len(s.Wrappers) > 0 || s.Builtin == "" && isStarter(s.Program.Path) || !comparable(s.Inner) || slices.Contains(runners, path.Base(s.Program.Path)) {
			return false
		}
		if name := s.Argv[0]; (name == "test" || name == "[") && slices.ContainsFunc(s.Argv, func(w string) bool { return slices.Contains(bashTests, w) }) {
			return false
		}
		if s.Builtin == "" && (slices.Contains(otherBuiltins, s.Argv[0]) || s.Argv[0] == "printf") { // of which the sandbox has no program
			return false
		}
	}
	return !writes || !patterns
}

// account is what bash did with a text.
func (b *Bash) account(text string) (string, error) {
	trace, err := b.Run(text)
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("\tstatus %v, timed out %v\n", trace.Status.ExitStatus(), trace.TimedOut)}
	for i := range trace.Starts {
		s := &trace.Starts[i]
		if name := path.Base(s.Argv[0]); !slices.Contains(harmlessBuiltins, name) {
			env := slices.DeleteFunc(slices.Clone(s.Env), func(v string) bool {
				name, _, _ := strings.Cut(v, "=")
				return slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name) || slices.Contains(environment, v)
			})
			slices.Sort(env)
			lines = append(lines, fmt.Sprintf("\t%s %q in %s with %q\n", name, s.Argv[1:], s.Dir, env))
		}
	}
	for i := range trace.Opens {
		if o := &trace.Opens[i]; o.Writes() && !ownFile(o) {
			lines = append(lines, fmt.Sprintf("\topens %s in %s, flags %#x, error %v\n", o.Path, o.Dir, o.Flags, o.Err))
		}
	}
	slices.Sort(lines[1:])
	return strings.Join(lines, ""), b.Restore(trace)
}

// scripts are the forms that texts of several commands have; @ is a command.
var scripts = []string{
	"@\n@", "@\n\n# c\n@\n", "@ \\\n  -x a", "( @ )", "( @; @ ) | @", "{ @; @; }", "{ @\n@; } 2>&1", "@ && { @; @; }", "@ || ( @ )", "! @", "! @ && @", "time @",
	"if @; then @; fi", "if @; then @; else @; fi; @", "if @; then @; elif @; then @; else @; fi", "if ! @; then @; fi",
	"for f in a 'b c' *.go; do @ \"$f\"; done", "for f in x{1,2}; do @ $f; @; done && @", "for i in 1 2; do for j in a b; do p $i$j; done; done",
	"X=5; @ $X", "Y='a b'; @ \"$Y\" \"x${Y}z\"", "Y=a && @ $Y", "X=5\n@\nX=6\n@ $X", "( X=7; @ $X ); @ $X", "X=9 @", "Z=9 @ $Z", "export Q=1; @", "export Q=1 && ( @ )\n@",
	"@ |& @", "@ & wait", "( cd sub && @ ); @", "( cd sub; @ ) && @", "cd sub\n@", "@; p \"$?\"; @", "p \"$(@)\"", "echo \"$(a b | sort)\"; @", "V=$(sort a); [ -n \"$V\" ] && @",
	"p\n@ || true", "set -e\n@\n@", "@; exit 3", "[ \"$(a)\" = a ] && @", "if [ -f x ]; then @; fi", "{ @; } | { @; @; }", "@ | ( @; @ )", "( @ & )\n@", "N=3; @ $((N * 2 + 1)) x$(($N-1))", "for i in 1 2; do @ \"$((i+1))\"; done", "[[ -f x ]] && @", "if [[ a == b ]]; then @; else @; fi", "A=1 B=$A; @ \"$A\"", "f=x; for f in y; do @ $f; done; @ $f",
	"for i in 1 2; do @ || break; done; @", "for f in a b; do if [ -f x ]; then break; fi; @ $f; done", "for i in 1 2; do for j in a b; do @ && break; @ $j; done; @ $i; done; @",
	"for i in 1 2 3; do @; [ $i = 2 ] && break; @ $i; done || @", "for i in a b; do { @ || break; }; ! @ || break; done && @",
}

// Script makes a text of several commands.
func (g *Generator) Script() string {
	g.tame = true
	text := g.pick(scripts)
	for strings.Contains(text, "@") {
		part := g.pick([]string{"p", "a b", "sort x", "cat a.go", "ls", "grep x a.go", "false-a", "p > new", "q >> out.txt", "true", "false", "test -f x", "p 2>&1", "p *.go"})
		if g.chance(25) {
			d := &docs{}
			if part = g.simple(d, 2); d.bodies.Len() > 0 {
				continue
			}
		}
		if g.chance(10) {
			part = g.pick(scripts)
		}
		text = strings.Replace(text, "@", part, 1)
		if len(text) > 600 {
			return text[:600]
		}
	}
	if g.chance(10) {
		return g.mutate(text)
	}
	return text
}
