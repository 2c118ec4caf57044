//go:build linux

package shellfuzz

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// utilities are programs that do the same as the builtins of their names.
var utilities = []string{"true", "false", "echo", "pwd", "test", "["}

// Executable reports whether what our executor and bash leave can be compared: the same every time, and not told by
// messages that each words in its own way.
func (c *Claim) Executable() bool {
	c.files = map[string]bool{}
	if !c.executable(c, false) {
		return false
	}
	return !slices.ContainsFunc(fixturePrograms, func(name string) bool { return c.files[name] })
}

func (c *Claim) executable(whole *Claim, noisy bool) bool {
	for _, p := range c.pipelines {
		for i := range p.stages {
			st := &p.stages[i]
			if !st.repeats() {
				return false
			}
			noisy := noisy || st.builtin || len(st.chain) > 1 || isStarter(st.chain[0][0])
			for _, r := range st.segment.Redirs {
				if r.Target == "2" || r.FD == "2" || strings.HasPrefix(r.Op, "&") {
					if noisy {
						return false // standard error holds messages
					}
					whole.messages = true
				}
				if r.Op == ">&" || r.Target == os.DevNull {
					continue
				}
				// A file that is used twice has a content that depends on who is faster.
				at := strings.Replace(join(st.segment.Dir, r.Target), workDir+"/link/", workDir+"/sub/", 1)
				if whole.files[at] || r.FD == "0" && r.Writes() || !st.writable(r.Target) {
					return false
				}
				whole.files[at] = true
			}
			if st.inner != nil && !st.inner.executable(whole, true) {
				return false
			}
		}
	}
	return true
}

// bashTests are what the builtin test knows and the program does not, or not as well.
var bashTests = strings.Fields("-v -R -o -a -N -G -O == =~ < > ( )")

// repeats reports whether the stage does the same whoever starts it.
func (st *stage) repeats() bool {
	words := st.chain[len(st.chain)-1]
	switch name := words[0]; {
	case len(st.segment.OtherDir) > 0, name == ":", name == "printf", name == "find" || strings.HasSuffix(name, "/find"):
		// The program printf has options that the builtin has not, the program pwd follows links, find lists files in
		// no order.
		return false
	case slices.ContainsFunc(st.chain, func(argv []string) bool { return slices.Contains(runners, shell.ProgramName(argv[0])) }):
		return false // what is real here starts nothing
	case name == "echo" && (len(words) > 1 && strings.HasPrefix(words[1], "-") || strings.ContainsAny(strings.Join(words, ""), `\`)), name == "pwd" && (len(words) > 1 || st.segment.Dir != workDir):
		return false
	case name == "[" && words[len(words)-1] != "]":
		return false
	case (name == "test" || name == "[") && slices.ContainsFunc(words[1:], func(w string) bool { return slices.Contains(bashTests, w) }):
		return false
	case name == "xargs" && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-P") || strings.HasPrefix(w, "--max-p") }):
		return false // who is faster?
	case len(st.segment.Expanded) > 0 && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "/") || strings.Contains(w, "..") || !st.writable(w) }):
		return false // the executor sees other files in its root directory
	case st.inner != nil && slices.ContainsFunc(words, func(w string) bool { return w == "-lc" || w == "-cl" }):
		return false // login shells may set another PATH
	}
	chains := slices.Clone(st.chain)
	for _, c := range slices.Concat(st.carried, st.run) {
		chains = append(chains, c.chain...)
	}
	for _, argv := range chains {
		if !isProgram(argv[0]) && (len(chains) > 1 || !slices.Contains(fixturePrograms, st.segment.Program.Real)) {
			return false
		}
	}
	return true
}

// isProgram reports whether the sandbox has a program of that name, or gets it.
func isProgram(name string) bool {
	if dir := filepath.Dir(name); strings.Contains(name, "/") && dir != "/bin" && dir != "/usr/bin" {
		return false
	}
	return name != "" && !strings.HasSuffix(name, "/") && len(name) < 200 && name != "." && name != ".."
}
