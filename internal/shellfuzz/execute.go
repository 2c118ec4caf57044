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
	analyst, err := newAnalyst("/", false)
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
