//go:build linux

package shellfuzz

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/shell"
)

// Outcome is what a command leaves: what it wrote, how it ended, and the files that are not as they were.
type Outcome struct {
	Out    string
	Status int
	Files  string
}

// Executable reports whether our executor and bash can be compared: programs are names, no builtins but cd, and no file
// is used twice, whose content would depend on who is faster.
func (c *Claim) Executable() bool {
	used := map[string]bool{}
	for _, p := range c.pipelines {
		for _, st := range p.stages {
			if st.open || st.builtin && st.chain[0][0] != "cd" || st.inner != nil && !st.inner.Executable() {
				return false
			}
			shell := st.chain[len(st.chain)-1]
			if st.inner != nil && slices.ContainsFunc(shell, func(word string) bool { return word == "-lc" || word == "-cl" }) {
				return false // login shells read the profile of this machine, which sets PATH
			}
			for _, argv := range st.chain {
				if strings.Contains(argv[0], "/") || len(argv[0]) > 200 || argv[0] == "." || argv[0] == ".." {
					return false
				}
			}
			for _, r := range st.segment.Redirs {
				at := join(st.dir, r.Target)
				if r.Op != ">&" && r.Target != os.DevNull && (used[at] || strings.HasPrefix(r.Target, "/") || strings.Contains(r.Target, "/..") || r.FD == "2" || r.FD == "0" && r.Writes() || strings.HasPrefix(r.Op, "&")) {
					return false
				}
				// Standard error is not compared: bash writes messages of its own.
				if r.Op == ">&" && (r.Target == "2" || r.FD == "2") {
					return false
				}
				used[at] = true
			}
		}
	}
	return true
}

// Execute runs what is claimed by our executor, with real programs that do what those in the sandbox seem to do.
func (b *Bash) Execute(c *Claim) (Outcome, error) {
	env := slices.Clone(environment)
	for i, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			env[i] = "PATH=" + b.Root + value
		}
	}
	plan := job.Plan{Dir: b.directory(workDir), Env: env}
	for _, p := range c.pipelines {
		if n := len(plan.Segments); n > 0 {
			plan.Segments[n-1].Op = job.Operator(p.after)
		}
		for i := range p.stages {
			segment, err := b.segment(&p.stages[i])
			if err != nil {
				return Outcome{}, err
			}
			if i+1 < len(p.stages) {
				segment.Op = job.Pipe
			}
			plan.Segments = append(plan.Segments, segment)
		}
	}
	if err := b.link(c); err != nil {
		return Outcome{}, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return Outcome{}, err
	}
	defer read.Close()
	running, err := job.Start(plan, job.Streams{Out: write})
	if err != nil {
		return Outcome{}, fmt.Errorf("start: %w", err)
	}
	select {
	case <-running.Done():
	case <-time.After(10 * time.Second):
		running.Stop(syscall.SIGKILL)
		return Outcome{}, errors.New("the executor does not end")
	}
	running.Release()
	out, err := io.ReadAll(read)
	return Outcome{Out: strings.ReplaceAll(string(out), b.Root, ""), Status: running.Result().Code, Files: b.Files()}, err
}

// Files lists what is not as it was, and its content.
func (b *Bash) Files() string {
	var text strings.Builder
	for _, name := range b.fixture.changed() {
		content, _ := os.ReadFile(b.Root + name)
		fmt.Fprintf(&text, "%s: %q\n", name, strings.ReplaceAll(string(content), b.Root, ""))
	}
	return text.String()
}

func (b *Bash) directory(dir string) job.Directory {
	path := b.Root + dir
	return job.Directory{Name: dir, Path: path, Open: func() (*os.File, error) {
		return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	}}
}

// link makes every program that is named: a starter, or a filter.
func (b *Bash) link(c *Claim) error {
	for _, p := range c.pipelines {
		for _, st := range p.stages {
			for _, argv := range st.chain {
				real := "filter"
				if slices.Contains(starters, argv[0]) {
					real = argv[0]
				}
				err := os.Symlink(filepath.Join(b.Root, "real", real), filepath.Join(b.Root, "bin", argv[0]))
				if err != nil && !errors.Is(err, os.ErrExist) {
					return err
				}
			}
			if st.inner != nil {
				if err := b.link(st.inner); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *Bash) segment(st *stage) (job.Segment, error) {
	out := job.Segment{Dir: b.Root + st.dir, Argv: slices.Clone(st.chain[0])}
	for _, a := range st.segment.Assigns {
		out.Env = append(out.Env, a.Name+"="+a.Value)
	}
	if st.segment.Heredoc != nil {
		out.Redirects = append(out.Redirects, job.Document(st.body))
	}
	for _, r := range st.segment.Redirs {
		out.Redirects = append(out.Redirects, b.redirect(r, st.dir))
	}
	if out.Argv[0] == "cd" {
		target := b.directory(join(st.dir, out.Argv[1]))
		out.Chdir = &target
		return out, nil
	}
	if err := b.link(&Claim{pipelines: []pipeline{{stages: []stage{*st}}}}); err != nil {
		return out, err
	}
	for _, argv := range st.chain {
		path := filepath.Join(b.Root, "bin", argv[0])
		identity, err := job.Identify(path)
		if err != nil {
			return out, err
		}
		out.Programs = append(out.Programs, job.Program{Path: path, Identity: identity, At: len(out.Argv) - len(argv)})
	}
	return out, nil
}

func (b *Bash) redirect(r shell.Redirect, dir string) job.Redirect {
	fds, from := descriptors(r)
	if from >= 0 {
		return job.Copy(fds[0], from)
	}
	flags := os.O_RDONLY
	switch {
	case strings.HasSuffix(r.Op, ">>"):
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	case r.Writes():
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	path := b.Root + join(dir, r.Target)
	if strings.HasSuffix(r.Target, "/") {
		path += "/" // bash writes no file by such a name
	}
	open := func() (*os.File, error) { return os.OpenFile(path, flags, 0o644) }
	if r.Target == os.DevNull {
		open = job.OpenNull
	}
	if r.Reads() {
		return job.Input(fds[0], r.Target, open)
	}
	return job.Output(fds[0], r.Target, open)
}

// TryExecutor compares our executor with bash for a text that both can run; compared is false for others.
func (b *Bash) TryExecutor(text string) (compared bool, difference *Difference, err error) {
	claim, refusal := b.Understand(text, workDir)
	if refusal != "" || !claim.Executable() {
		return false, nil, nil
	}
	trace, err := b.Run(text)
	if err != nil {
		return false, nil, err
	}
	want := Outcome{Status: trace.Status.ExitStatus(), Files: b.Files()}
	if want.Out, err = b.Output(); err != nil {
		return false, nil, err
	}
	if err := b.fixture.restore(); err != nil {
		return false, nil, err
	}
	got, err := b.Execute(claim)
	if restored := b.fixture.restore(); restored != nil {
		return false, nil, restored
	}
	switch {
	case err != nil:
		return true, &Difference{"executor", err.Error()}, nil
	case got != want:
		return true, &Difference{"executor", fmt.Sprintf("%+v, bash %+v", got, want)}, nil
	}
	return true, nil, nil
}
