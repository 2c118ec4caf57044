//go:build linux

package shellfuzz

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
	"github.com/toolward/toolward/shell/profiles"
)

// Claim is what analysis says that a text does: pipelines, one after the other.
type Claim struct {
	pipelines []pipeline
	files     map[string]bool // that it writes or reads, for the executor
	messages  bool            // standard error goes where it is compared
}

type pipeline struct {
	after  shell.Operator // how it follows what is before it
	stages []stage
}

// stage is one simple command.
type stage struct {
	segment *command.Segment
	chain   [][]string // argv of what starts: itself, and what wrappers start
	builtin bool       // the shell itself does it
	inner   *Claim     // of a shell's -c
	dash    bool       // that shell is dash, or may be
	errexit bool       // that shell ends with the first command that fails
	carried []carried  // what xargs and find start, again and again
	run     []carried  // one of which a runner starts
}

// carried is a command that gets operands nobody knows: at the end, or where "{}" stands.
type carried struct{ chain [][]string }

// Refusal is why nothing is claimed.
type Refusal string

// harmlessBuiltins are those that a shell does itself and that start nothing and change nothing.
var harmlessBuiltins = []string{":", "true", "false", "echo", "printf", "test", "[", "pwd", "cd"}

// otherBuiltins change the shell or start what their arguments say: nothing that uses them is allowed.
var otherBuiltins = strings.Fields(`. alias bg bind break builtin caller command compgen complete compopt continue
	dirs disown enable eval exec exit fc fg getopts hash help history jobs kill logout mapfile popd pushd read readarray
	return set shift shopt source suspend times trap type ulimit umask unalias unset wait`)

var shells = []string{"bash", "sh", "dash", "zsh", "ksh", "ash", "fish", "cmd", "powershell", "pwsh", "busybox", "toybox"}

// analyst judges commands as the gateway does, in a sandbox where every program is there and every file may be used:
// what is left of its objections are those about the command itself.
type analyst struct {
	root      string // of the sandbox, as seen from here
	foreign   bool   // the text is run by a shell of somebody else's
	enforced  bool   // and that shell gets the text that was judged
	evaluator *command.Evaluator
}

func newAnalyst(root string, foreign bool) (*analyst, error) {
	policy := command.Policy{
		Preset: command.Developer, Writes: true, LooseInlineEval: true,
		Entries: []allowlist.Listed{{Entry: allowlist.Entry{Pattern: "*"}}},
	}
	evaluator, _, err := command.New(policy, homeDir, command.NewResolver(sandboxFiles{root}))
	return &analyst{root: root, foreign: foreign, evaluator: evaluator}, err
}

func (a *analyst) assess(text string) *command.Assessment {
	return a.evaluator.Evaluate(&command.Request{
		Command: text, Dir: workDir, Getenv: Getenv, Level: toolward.Normal, Places: everywhere{}, ByShell: a.foreign, Enforced: a.enforced,
	})
}

// Understand analyzes a text and expands it as it would be before it is approved.
func (a *analyst) Understand(text string) (*Claim, Refusal) {
	assessment := a.assess(text)
	switch {
	case !assessment.OK:
		return nil, Refusal(assessment.Reason)
	case assessment.Script:
		return nil, "script" // compared by what it comes to: see [Bash.Comes]
	}
	if a.foreign && slices.ContainsFunc(assessment.Segments, func(s command.Segment) bool { return matchesPrograms(&s) }) {
		return nil, "matches-programs"
	}
	return understand(assessment.Segments, new([]string))
}

// matchesPrograms reports whether a pattern may match programs, of which the sandbox says for every name that it is there.
func matchesPrograms(s *command.Segment) bool {
	return len(s.Expanded) > 0 && slices.ContainsFunc(s.Written, func(w string) bool {
		return strings.HasPrefix(w, "/") && strings.ContainsAny(strings.Split(w, "/")[1], "*?[")
	})
}

// Accepts reports whether something is claimed of a text.
func (a *analyst) Accepts(text string) bool {
	_, refusal := a.Understand(text)
	return refusal == ""
}

// understand makes a claim of segments. written are the files that may have been written before.
func understand(segments []command.Segment, written *[]string) (*Claim, Refusal) {
	claim := &Claim{}
	op := shell.Sequence
	for i := range segments {
		s := &segments[i]
		before := append(slices.Clone(*written), writtenBeside(segments, i)...)
		if len(s.Expanded) > 0 && slices.ContainsFunc(s.Written, func(w string) bool { return mayMatch(w, before) }) {
			return nil, "glob-after-write" // files that appear between decision and start are not picked up
		}
		for _, r := range s.Redirs {
			if r.Writes() {
				before = append(before, r.Target) // before a script of this segment begins
			}
		}
		st, refusal := newStage(s, before)
		if refusal != "" {
			return nil, refusal
		}
		*written = append(*written, writtenBy(s)...)
		if op == shell.Pipe {
			last := &claim.pipelines[len(claim.pipelines)-1]
			last.stages = append(last.stages, st)
		} else {
			claim.pipelines = append(claim.pipelines, pipeline{after: op, stages: []stage{st}})
		}
		op = s.Op
	}
	return claim, ""
}

// mayMatch reports whether a word, without its quotes, may be a pattern that matches one of some files.
func mayMatch(word string, files []string) bool {
	if len(files) == 0 || !strings.ContainsAny(word, "*?[") {
		return false
	}
	for pattern := range strings.SplitSeq(word, "/") {
		if !strings.ContainsAny(pattern, "*?[") {
			continue
		}
		if strings.ContainsAny(pattern, `{\$`) {
			return true
		}
		for _, file := range files {
			for name := range strings.SplitSeq(file, "/") {
				if matched, err := path.Match(pattern, name); matched || err != nil {
					return true
				}
			}
		}
	}
	return false
}

func newStage(s *command.Segment, written []string) (stage, Refusal) {
	st := stage{segment: s, chain: [][]string{s.Argv}}
	switch {
	case len(s.Findings) > 0:
		return st, Refusal(s.Findings[0])
	case s.By == command.NotSatisfied && len(s.Asks) > 0:
		return st, Refusal(s.Asks[0].Code)
	case s.By == command.NotSatisfied:
		return st, "not satisfied"
	case slices.ContainsFunc(s.Redirs, func(r command.Redirect) bool { return r.Writes() && !st.writable(r.Target) }):
		return st, "elsewhere" // it would break the sandbox
	case slices.Contains(otherBuiltins, s.Argv[0]), s.Argv[0] == "cd" && s.Builtin != "cd":
		return st, "builtin"
	case slices.Contains(harmlessBuiltins, s.Argv[0]):
		st.builtin = true
		return st, harmless(s.Argv)
	}
	at := 0
	for _, w := range s.Wrappers {
		if !isStarter(w.Program.Word) {
			return st, "wrapper" // the sandbox has no real program for ENV
		}
		at += 1 + len(w.Args)
		st.chain = append(st.chain, s.Argv[at:])
	}
	return st, st.carries(s.Argv[at:], written)
}

// shIsDash tells what "sh" is on this machine.
var shIsDash = sync.OnceValue(func() bool {
	path, _ := exec.LookPath("sh")
	real, err := filepath.EvalSymlinks(path)
	return err == nil && filepath.Base(real) == "dash"
})

// writable reports whether a file lies where the sandbox is put in order again.
func (st *stage) writable(file string) bool {
	return !slices.ContainsFunc(st.dirs(), func(dir string) bool {
		at := join(dir, file)
		return !slices.ContainsFunc([]string{workDir + "/", homeDir + "/", "/tmp/"}, func(top string) bool { return strings.HasPrefix(at, top) }) && file != os.DevNull
	})
}

// isStarter reports whether a program runs for real in the sandbox.
func isStarter(path string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(path, "/usr"), "/bin/")
	return slices.Contains(starters, name)
}

// harmless asks the profiles of what a shell does itself.
func harmless(argv []string) Refusal {
	effects, known := profiles.Effects(argv[0], argv[1:])
	if known && slices.ContainsFunc(effects, func(e shell.Effect) bool { return e.Kind != shell.Reads }) {
		return "builtin-effect"
	}
	return ""
}

// carries looks at programs that carry others in their arguments.
func (st *stage) carries(argv []string, written []string) Refusal {
	switch name := shell.ProgramName(argv[0]); {
	case slices.Contains(shells, name):
		if st.segment.Script == "" || !isStarter(argv[0]) {
			return "shell"
		}
		inner, refusal := understand(st.segment.Inner, &written)
		if refusal != "" {
			return refusal
		}
		st.inner, st.dash = inner, name == "dash" || name == "sh" && shIsDash()
		st.errexit = slices.ContainsFunc(argv[1:len(argv)-1], func(w string) bool { return strings.Contains(w, "e") && !strings.HasPrefix(w, "--") })
	case slices.Contains(runners, name):
		return st.runs(argv)
	case isStarter(argv[0]):
		effects, _ := profiles.Effects(name, argv[1:])
		for _, e := range effects {
			switch e.Kind {
			case shell.Reads:
			case shell.Runs:
				c, ok := newCarried(e.Argv)
				if !ok {
					return "carried"
				}
				st.carried = append(st.carried, c)
			default:
				return "carrier" // what it does itself nobody watches
			}
		}
	}
	return ""
}

// runners are programs of which the sandbox starts what stands in their arguments. They are those of trace.c.
var runners = strings.Fields("git uv bundle poetry pipenv pnpm rustup")

// runs looks at what a runner runs: nothing is claimed if its profile does not know.
func (st *stage) runs(argv []string) Refusal {
	effects, _ := profiles.Effects(shell.ProgramName(argv[0]), argv[1:])
	for _, e := range effects {
		switch e.Kind {
		case shell.Evaluates, shell.Unknown:
			return "runner"
		case shell.Runs:
			c, ok := newCarried(e.Argv)
			if !ok || e.Open {
				return "carried"
			}
			st.run = append(st.run, c)
		}
	}
	if len(st.run) == 0 && shell.ProgramName(argv[0]) != "git" {
		return "runner" // what the project says may run, or a program whose effects are told as its own
	}
	return ""
}

func newCarried(argv []string) (carried, bool) {
	u := shell.Unwrap(argv)
	if u.Blocked != "" || u.Program >= len(argv) || slices.ContainsFunc(u.At, func(at int) bool { return !isStarter(argv[at]) }) || isStarter(argv[u.Program]) || slices.Contains(runners, shell.ProgramName(argv[u.Program])) || slices.Contains(shells, shell.ProgramName(argv[u.Program])) {
		return carried{}, false
	}
	c := carried{}
	for _, at := range append(u.At, u.Program) {
		c.chain = append(c.chain, argv[at:])
	}
	return c, true
}

// starts reports whether an argv is that of a carried command with some operands.
func starts(got, carried []string) bool {
	for i, word := range carried {
		if word != "{}" {
			if i >= len(got) || got[i] != word {
				return false
			}
			continue
		}
		for n := i + 1; n <= len(got); n++ {
			if rest := carried[i+1:]; len(rest) == 0 || starts(got[n:], rest) {
				return true
			}
		}
		return false
	}
	return true
}

func (st *stage) String() string { return fmt.Sprintf("%q in %q", st.chain, st.dirs()) }

// dirs are the directories in which the stage may start.
func (st *stage) dirs() []string { return append([]string{st.segment.Dir}, st.segment.OtherDir...) }

// writtenBy lists the files that a segment writes, in scripts, too.
func writtenBy(s *command.Segment) (files []string) {
	for _, r := range s.Redirs {
		if r.Writes() {
			files = append(files, r.Target)
		}
	}
	for i := range s.Inner {
		files = append(files, writtenBy(&s.Inner[i])...)
	}
	return files
}

// writtenBeside lists what the others of a pipeline write while the words of segment i are expanded.
func writtenBeside(segments []command.Segment, i int) (files []string) {
	first, last := i, i+1
	for first > 0 && segments[first-1].Op == shell.Pipe {
		first--
	}
	for last < len(segments) && segments[last-1].Op == shell.Pipe {
		last++
	}
	for j := first; j < last; j++ {
		if j != i {
			files = append(files, writtenBy(&segments[j])...)
		}
	}
	return files
}

func join(dir, to string) string {
	if path.IsAbs(to) {
		return path.Clean(to)
	}
	return path.Join(dir, to)
}

// sandboxFiles is the file system of the sandbox, where every name in /bin and /usr/bin is a program.
type sandboxFiles struct{ root string }

func (f sandboxFiles) Look(name string) (command.Node, error) {
	switch dir := path.Dir(name); {
	case dir == "/bin" || dir == "/usr/bin":
		return command.Node{Mode: 0o755, Stamp: command.Stamp{Inode: 1}}, nil
	case name == "/bin" || name == "/usr/bin":
		return command.Node{Mode: fs.ModeDir | 0o755, Stamp: command.Stamp{Inode: 2}}, nil
	}
	return command.Disk{}.Look(filepath.Join(f.root, name))
}

// GitPointer finds none: the sandbox has no repositories.
func (sandboxFiles) GitPointer(string) (string, error) { return "", fs.ErrNotExist }

func (f sandboxFiles) ReadDir(dir string) ([]fs.DirEntry, error) {
	return os.ReadDir(filepath.Join(f.root, path.Clean(dir)))
}

// everywhere calls every place the workspace: which files a command may use is not compared here.
type everywhere struct{}

func (everywhere) Resolve(dir, asked string) (place.Resolved, error) {
	return place.Resolved{Asked: asked, Real: join(dir, asked), Zone: place.Workspace, Kind: place.KindMissing}, nil
}
func (everywhere) InRoots(string, bool) bool { return true }
func (everywhere) Layout() place.Layout      { return place.Layout{Workspace: workDir, Home: homeDir} }
