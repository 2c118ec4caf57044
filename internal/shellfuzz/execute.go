//go:build linux

package shellfuzz

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/shell"
)

// ExecutorRole is the environment variable that makes of a test program the executor of a sandbox: see [Serve].
const ExecutorRole = "TOOLWARD_FUZZ_EXECUTOR"

// Outcome is what a command leaves: what it wrote, how it ended, and the files that are not as they were.
type Outcome struct {
	Out    string
	Status int
	Files  string
}

// executor is our executor in a process of its own, whose root directory is that of the sandbox and that has no
// network: its programs are real processes.
type executor struct {
	process *exec.Cmd
	request *gob.Encoder
	answer  *gob.Decoder
	in      io.Closer
}

// answer is what the executor says of a text.
type answer struct {
	Out    string
	Status int
	Err    string // why it did not run
}

func newExecutor(root string) (*executor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	e := &executor{process: exec.Command(self)}
	e.process.Env = append(os.Environ(), ExecutorRole+"="+root)
	e.process.Stderr = os.Stderr
	e.process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	in, err := e.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := e.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	e.in, e.request, e.answer = in, gob.NewEncoder(in), gob.NewDecoder(out)
	return e, e.process.Start()
}

func (e *executor) run(text string) (answer, error) {
	if err := e.request.Encode(text); err != nil {
		return answer{}, fmt.Errorf("the executor is gone: %w", err)
	}
	var a answer
	if err := e.answer.Decode(&a); err != nil {
		return answer{}, fmt.Errorf("the executor is gone: %w", err)
	}
	return a, nil
}

func (e *executor) close() {
	_ = e.in.Close()
	_ = e.process.Wait() // nothing depends on it any more
}

// Serve is the executor of the sandbox in root: it runs the texts that it reads until there are no more.
func Serve(root string) error {
	if err := enter(root); err != nil {
		return fmt.Errorf("enter the sandbox: %w", err)
	}
	analyst, err := newAnalyst("/")
	if err != nil {
		return err
	}
	requests, answers := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var text string
		if err := requests.Decode(&text); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a, err := analyst.execute(text)
		if err != nil {
			a.Err = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// enter makes the sandbox the root directory, with the /dev/null and the /proc that the executor needs.
func enter(root string) error {
	dev, proc := filepath.Join(root, "dev"), filepath.Join(root, "proc")
	for _, step := range []func() error{
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		func() error { return unix.Mount("tmpfs", dev, "tmpfs", 0, "") },
		func() error { return os.WriteFile(filepath.Join(dev, "null"), nil, 0o600) },
		func() error { return unix.Mount(os.DevNull, filepath.Join(dev, "null"), "", unix.MS_BIND, "") },
		func() error { return os.MkdirAll(proc, 0o755) },
		func() error { return unix.Mount("/proc", proc, "", unix.MS_BIND|unix.MS_REC, "") },
		func() error { return unix.Chroot(root) },
		func() error { return os.Chdir(workDir) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// execute runs a text.
func (a *analyst) execute(text string) (answer, error) {
	claim, refusal := a.Understand(text)
	if refusal != "" {
		return answer{}, fmt.Errorf("refused: %s", refusal)
	}
	linked := links{}
	defer linked.remove()
	if err := linked.make(claim); err != nil {
		return answer{}, err
	}
	plan := job.Plan{Dir: directory(workDir), Env: environment}
	for _, p := range claim.pipelines {
		if n := len(plan.Segments); n > 0 {
			plan.Segments[n-1].Op = job.Operator(p.after)
		}
		for i := range p.stages {
			segment, err := planned(&p.stages[i])
			if err != nil {
				return answer{}, err
			}
			if i+1 < len(p.stages) {
				segment.Op = job.Pipe
			}
			plan.Segments = append(plan.Segments, segment)
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return answer{}, err
	}
	defer read.Close()
	running, err := job.Start(plan, job.Streams{Out: write})
	if err != nil {
		return answer{}, fmt.Errorf("start: %w", err)
	}
	written := make(chan string, 1)
	go func() {
		out, _ := io.ReadAll(read)
		written <- string(out)
	}()
	select {
	case <-running.Done():
	case <-time.After(10 * time.Second):
		running.Stop(syscall.SIGKILL)
		return answer{}, errors.New("the executor does not end")
	}
	running.Release()
	result := running.Result()
	if result.Err != nil {
		return answer{}, result.Err
	}
	return answer{Out: <-written, Status: result.Code}, nil
}

// links are the programs that a claim names, in /bin.
type links struct{ made []string }

func (l *links) make(c *Claim) error {
	for _, p := range c.pipelines {
		for i := range p.stages {
			st := &p.stages[i]
			chains := [][][]string{st.chain}
			for _, carried := range st.carried {
				chains = append(chains, carried.chain)
			}
			for _, argv := range slices.Concat(chains...) {
				if err := l.link(argv[0]); err != nil {
					return err
				}
			}
			if st.inner != nil {
				if err := l.make(st.inner); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (l *links) link(name string) error {
	if !strings.Contains(name, "/") {
		name = "/bin/" + name
	}
	if dir := filepath.Dir(name); dir != "/bin" && dir != "/usr/bin" {
		return nil
	}
	real := "/real/filter"
	if base := filepath.Base(name); slices.Contains(starters, base) || slices.Contains(utilities, base) {
		real = "/real/" + base
	}
	err := os.Symlink(real, name)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	l.made = append(l.made, name)
	return err
}

func (l *links) remove() {
	for _, name := range l.made {
		_ = os.Remove(name) // it is used again otherwise
	}
}

func directory(dir string) job.Directory {
	return job.Directory{Name: dir, Path: dir, Open: func() (*os.File, error) {
		return os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	}}
}

// planned is a stage as the executor runs it: without env, which does nothing, and with the text that a shell is given
// in the place of its script.
func planned(st *stage) (job.Segment, error) {
	s := st.segment
	out := job.Segment{Dir: s.Dir}
	for _, a := range s.Assigns {
		out.Env = append(out.Env, a.Name+"="+a.Value)
	}
	if s.Heredoc != nil {
		out.Redirects = append(out.Redirects, job.Document(*s.Heredoc))
	}
	for _, r := range s.Redirs {
		out.Redirects = append(out.Redirects, redirect(r.Redirect, s.Dir))
	}
	if s.Builtin == "cd" {
		target := directory(s.Target)
		out.Chdir, out.Argv = &target, s.Argv
		return out, nil
	}
	add := func(path string, words ...string) error {
		identity, err := job.Identify(path)
		out.Programs = append(out.Programs, job.Program{Path: path, Identity: identity, At: len(out.Argv)})
		out.Argv = append(out.Argv, words...)
		return err
	}
	at := 0
	for _, w := range s.Wrappers {
		if !w.Dropped {
			if err := add(w.Program.Path, s.Argv[at:at+1+len(w.Args)]...); err != nil {
				return out, err
			}
		}
		at += 1 + len(w.Args)
	}
	words := slices.Clone(s.Argv[at:])
	if st.inner != nil {
		words[s.ScriptArg-at] = s.Script
	}
	return out, add(s.Program.Path, words...)
}

func redirect(r shell.Redirect, dir string) job.Redirect {
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
	path := r.Target // as it is: bash writes no file by a name that ends in a slash
	if !filepath.IsAbs(path) {
		path = dir + "/" + path
	}
	open := func() (*os.File, error) { return os.OpenFile(path, flags, 0o644) }
	if r.Target == os.DevNull {
		open = job.OpenNull
	}
	switch {
	case strings.HasPrefix(r.Op, "&"):
		return job.OutputBoth(r.Target, open)
	case r.Reads():
		return job.Input(fds[0], r.Target, open)
	}
	return job.Output(fds[0], r.Target, open)
}

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

// executes compares our executor with bash, which has just run a text, for a claim that both can run; compared is false
// for others. It puts the files in order again.
func (b *Bash) executes(text string, claim *Claim, trace *Trace) (compared bool, difference *Difference, err error) {
	if trace.TimedOut || !claim.Executable() || claim.messages && slices.ContainsFunc(trace.Opens, func(o Open) bool { return o.Err != 0 }) {
		return false, nil, b.Restore(trace)
	}
	if b.executor == nil {
		if b.executor, err = newExecutor(b.Root); err != nil {
			return false, nil, err
		}
	}
	want := Outcome{Status: trace.Status.ExitStatus(), Files: b.content(claim)}
	if want.Out, err = b.Output(); err != nil {
		return false, nil, err
	}
	if err := b.Restore(trace); err != nil {
		return false, nil, err
	}
	a, err := b.executor.run(text)
	if err != nil {
		return false, nil, err
	}
	got := Outcome{Out: a.Out, Status: a.Status, Files: b.content(claim)}
	switch err := b.restoreFiles(claim); {
	case err != nil:
		return false, nil, err
	case a.Err != "":
		return true, &Difference{"executor", a.Err}, nil
	case got != want:
		return true, &Difference{"executor", fmt.Sprintf("%+v, bash %+v", got, want)}, nil
	}
	return true, nil, nil
}

// content is that of the files that a claim says may change. Others are looked at now and then: see [Bash.Restore].
func (b *Bash) content(c *Claim) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		content, err := os.ReadFile(b.Root + b.physical(name))
		fmt.Fprintf(&text, "%s: %q %t\n", name, content, err == nil)
	}
	return text.String()
}

func (b *Bash) restoreFiles(c *Claim) error {
	for name := range c.files {
		if err := b.fixture.restoreOne(b.physical(name)); err != nil {
			return err
		}
	}
	return b.looked()
}
