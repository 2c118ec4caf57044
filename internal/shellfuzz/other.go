//go:build linux

package shellfuzz

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward/command"
)

// Others are the shells besides bash that texts are given to: zsh, which many people have, dash, which is sh, and busybox as ash, which is
// sh on small systems.
var Others = []string{"zsh", "dash", "ash"}

// program is what to look for on this machine. A busybox can be watched if it loads libraries: the variable names one where
// the installed one is static.
func program(name string) string {
	if name != "ash" {
		return name
	}
	return cmp.Or(os.Getenv("TOOLWARD_BUSYBOX"), "busybox")
}

// NewOther is [NewBash] with one of the other shells. Clients give commands to the shell of their person, which reads the same text in its
// own way; how it goes about it (which process waits for which) is not compared, only what it does: see [Bash.Exceeds].
func NewOther(shell, dir string) (*Bash, error) {
	return newShell(&Bash{Root: dir, as: shell, patience: 10 * time.Second, executeEvery: 1})
}

// Exceeds looks for something that a shell did and nobody claimed: a program that it started, with these words or in this
// directory, and a file that it opened. That it did less is no difference: zsh stops where a pattern matches nothing.
func (b *Bash) Exceeds(claim *Claim, trace *Trace) *Difference {
	m := &matching{bash: b, trace: trace}
	stages := claim.stages()
	for i := range trace.Starts {
		s := &trace.Starts[i]
		if !slices.ContainsFunc(stages, func(st *stage) bool { return st.mayStart(s.Argv) && (m.inDir(s.Dir, st.dirs()) || st.below(s.Dir)) }) {
			m.differ("start", "%q was started in %s", s.Argv, s.Dir)
		}
	}
	for i := range trace.Opens {
		o := &trace.Opens[i]
		claimed := slices.ContainsFunc(stages, func(st *stage) bool {
			return slices.ContainsFunc(st.segment.Redirs, func(r command.Redirect) bool {
				return o.Path == r.Target && o.Writes() == r.Writes() && m.inDir(o.Dir, st.dirs())
			})
		})
		if !claimed && !ownFile(o) && !m.byProgram(o) && !shellFile(o) {
			m.differ("file", "%s was opened in %s, flags %#x", o.Path, o.Dir, o.Flags)
		}
	}
	if trace.TimedOut {
		m.differ("endless", "it did not end")
	}
	return m.difference
}

// stages are all of a claim, those of scripts within it, too.
func (c *Claim) stages() (list []*stage) {
	for _, p := range c.pipelines {
		for i := range p.stages {
			st := &p.stages[i]
			if list = append(list, st); st.inner != nil {
				list = append(list, st.inner.stages()...)
			}
		}
	}
	return list
}

// mayStart reports whether the stage starts an argv, or something that it starts does.
func (st *stage) mayStart(argv []string) bool {
	if slices.ContainsFunc(st.chain, func(words []string) bool { return slices.Equal(words, argv) }) {
		return true
	}
	return slices.ContainsFunc(slices.Concat(st.carried, st.run), func(c carried) bool {
		return slices.ContainsFunc(c.chain, func(words []string) bool { return starts(argv, words) })
	})
}

// below reports whether a directory is one in which find runs what it is told to where it finds something.
func (st *stage) below(dir string) bool {
	return slices.Contains(st.segment.Args, "-execdir") && slices.ContainsFunc(st.dirs(), func(d string) bool { return strings.HasPrefix(dir, d+"/") })
}

// shellFile reports whether a shell opens a file for itself: what it reads when it begins, and what holds a here-document.
func shellFile(o *Open) bool {
	return !o.Writes() && (o.Path == "/dev/null" || strings.HasPrefix(o.Path, "/etc/") || strings.HasPrefix(o.Path, "/usr/")) || strings.HasPrefix(o.Path, "/tmp/zsh")
}
