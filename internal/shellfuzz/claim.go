//go:build linux

package shellfuzz

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// Claim is what analysis says that a text does: pipelines, one after the other.
type Claim struct{ pipelines []pipeline }

type pipeline struct {
	after  shell.Operator // how it follows what is before it
	stages []stage
}

// stage is one simple command.
type stage struct {
	segment *shell.Segment
	dir     string     // where it runs
	chain   [][]string // argv of what starts: itself, and what wrappers start
	builtin bool       // the shell itself does it
	inner   *Claim     // of a shell's -c
	open    bool       // the last of the chain gets more words when it runs (xargs)
	body    string     // of a here-document
}

// Refusal is why nothing is claimed.
type Refusal string

// harmlessBuiltins are those that a shell does itself and that start nothing and change nothing.
var harmlessBuiltins = []string{":", "true", "false", "echo", "printf", "test", "[", "pwd", "cd"}

// otherBuiltins change the shell or start what their arguments say: nothing that uses them is allowed.
var otherBuiltins = strings.Fields(`. alias bg bind break builtin caller command compgen complete compopt continue
	dirs disown enable eval exec exit fc fg getopts hash help history jobs kill logout mapfile popd pushd read readarray
	return set shift shopt source suspend times trap type ulimit umask unalias unset wait`)

var shells = []string{"bash", "sh", "dash", "zsh", "ksh", "ash", "fish", "cmd", "powershell", "pwsh", "busybox", "toybox"}

// Understand analyses a text and expands it as it would be before it is approved.
func (b *Bash) Understand(text, dir string) (*Claim, Refusal) { return b.understand(text, dir, 0) }

func (b *Bash) understand(text, dir string, depth int) (*Claim, Refusal) {
	command, err := shell.Analyse(text)
	if err != nil {
		reason := err.(*shell.NotAnalysable).Reason
		return nil, Refusal(reason)
	}
	claim := &Claim{}
	op := shell.Sequence
	known := true // the directory is
	written := false
	for i := range command.Segments {
		s := &command.Segments[i]
		if !known {
			return nil, "directory-unknown"
		}
		st, refusal := b.stage(s, dir, depth)
		if refusal != "" {
			return nil, refusal
		}
		if (written || writesBeside(command, i)) && slices.ContainsFunc(s.Words, func(w shell.Word) bool { return w.Glob }) {
			return nil, "glob-after-write" // files that appear between decision and start are not picked up
		}
		written = written || slices.ContainsFunc(s.Redirs, func(r shell.Redirect) bool { return r.Writes() })
		if op == shell.Pipe {
			last := &claim.pipelines[len(claim.pipelines)-1]
			last.stages = append(last.stages, st)
		} else {
			claim.pipelines = append(claim.pipelines, pipeline{after: op, stages: []stage{st}})
		}
		// A directory that was changed is known as long as what follows runs only if the change did.
		if s.Words[0].Text == "cd" && op != shell.Pipe && s.Op != shell.Pipe {
			if op == shell.Or || s.Op != shell.And && i+1 < len(command.Segments) {
				known = false
			}
			dir = join(dir, st.chain[0][1])
		} else if dir != workDir && depth == 0 && (s.Op == shell.Or || s.Op == shell.Sequence) && i+1 < len(command.Segments) {
			known = false
		}
		op = s.Op
	}
	return claim, ""
}

func join(dir, to string) string {
	if path.IsAbs(to) {
		return path.Clean(to)
	}
	return path.Join(dir, to)
}

// Surroundings are those of a directory in the sandbox.
func (b *Bash) Surroundings(dir string) shell.Surroundings {
	return shell.Surroundings{
		Dir: dir, Getenv: Getenv,
		ReadDir: func(dir string) ([]fs.DirEntry, error) { return os.ReadDir(filepath.Join(b.Root, path.Clean(dir))) },
	}
}

func (b *Bash) stage(s *shell.Segment, dir string, depth int) (stage, Refusal) {
	in := b.Surroundings(dir)
	expanded, err := s.Expand(in)
	switch {
	case err != nil:
		return stage{}, "expand-error"
	case len(expanded.Doubts) > 0:
		return stage{}, Refusal(expanded.Doubts[0])
	}
	argv := expanded.Argv
	st := stage{segment: s, dir: dir, chain: [][]string{argv}}
	st.body, _ = s.Body(in)
	if slices.Contains(otherBuiltins, argv[0]) {
		return stage{}, "builtin"
	}
	if slices.Contains(harmlessBuiltins, argv[0]) {
		st.builtin = true
		if argv[0] == "cd" && (len(argv) != 2 || s.Words[1].Expands() || argv[1] == "" || argv[1][0] == '-') {
			return stage{}, "cd"
		}
		return st, harmless(argv)
	}
	u := shell.Unwrap(argv)
	if u.Blocked != "" || slices.ContainsFunc(u.At, func(at int) bool { return !isStarter(argv[at]) }) {
		return stage{}, "wrapper" // the sandbox has no real program for ENV or ./env
	}
	for _, at := range append(u.At[min(1, len(u.At)):], u.Program) {
		if at > 0 {
			st.chain = append(st.chain, argv[at:])
		}
	}
	refusal := b.carried(&st, argv[u.Program:], len(s.Literalized()) > 0, depth)
	return st, refusal
}

// isStarter reports whether a program runs for real in the sandbox.
func isStarter(path string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(path, "/usr"), "/bin/")
	return slices.Contains(starters, name)
}

// harmless asks the profiles of what a shell does itself.
func harmless(argv []string) Refusal {
	effects, known := shell.Effects(argv[0], argv[1:])
	if known && slices.ContainsFunc(effects, func(e shell.Effect) bool { return e.Kind != shell.Reads }) {
		return "builtin-effect"
	}
	return ""
}

// carried looks at programs that carry others in their arguments.
func (b *Bash) carried(st *stage, argv []string, literalized bool, depth int) Refusal {
	name := shell.ProgramName(argv[0])
	switch {
	case slices.Contains(shells, name):
		script, ok := script(argv)
		if !ok || literalized || depth == 3 {
			return "shell"
		}
		if command, err := shell.Analyse(script); argv[0] != "bash" && err == nil && !command.Portable() {
			return "not-portable"
		}
		inner, refusal := b.understand(script, st.dir, depth+1)
		if refusal != "" {
			return refusal
		}
		st.inner = inner
	case name == "xargs":
		effects, known := shell.Effects("xargs", argv[1:])
		if !known || len(effects) != 1 || effects[0].Kind != shell.Runs {
			return "xargs"
		}
		if u := shell.Unwrap(effects[0].Argv); u.Blocked != "" || len(u.At) > 0 || slices.Contains(shells, shell.ProgramName(effects[0].Argv[0])) || isStarter(effects[0].Argv[0]) {
			return "xargs"
		}
		st.chain, st.open = append(st.chain, effects[0].Argv), true
	}
	return ""
}

// script is the text of a shell that gets nothing but a text.
func script(argv []string) (string, bool) {
	if !slices.Contains([]string{"bash", "sh", "dash"}, argv[0]) {
		return "", false
	}
	at := 1
	for at < len(argv) && len(argv[at]) > 1 && argv[at][0] == '-' && strings.Trim(argv[at][1:], "euxv") == "" {
		at++
	}
	if len(argv) != at+2 || argv[at+1] == "" || strings.IndexByte("-+", argv[at+1][0]) >= 0 || !slices.Contains([]string{"-c", "-lc", "-cl", "-ec", "-euc", "-xc"}, argv[at]) {
		return "", false
	}
	return argv[at+1], true
}

func (st *stage) String() string { return fmt.Sprintf("%q in %s", st.chain, st.dir) }

// writesBeside reports whether a redirection in the same pipeline makes files while the words of segment i are expanded.
func writesBeside(command *shell.Command, i int) bool {
	first, last := i, i
	for first > 0 && command.Segments[first-1].Op == shell.Pipe {
		first--
	}
	for last < len(command.Segments)-1 && command.Segments[last].Op == shell.Pipe {
		last++
	}
	return slices.ContainsFunc(command.Segments[first:last+1], func(s shell.Segment) bool {
		return slices.ContainsFunc(s.Redirs, func(r shell.Redirect) bool { return r.Writes() })
	})
}
