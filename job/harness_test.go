//go:build unix

package job_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// bench is a directory in which command texts are run, by a job and by bash.
type bench struct {
	testing.TB
	dir string
	env []string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &bench{TB: t, dir: dir, env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "PWD=" + dir}}
}

func (b *bench) write(name, content string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o644); err != nil {
		b.Fatal(err)
	}
}

// script writes an executable.
func (b *bench) script(name, content string) string {
	b.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		b.Fatal(err)
	}
	return path
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// outcome is what is left of a run.
type outcome struct {
	out, err string
	result   job.Result
}

// plan makes a plan of a command text, as the tool will do it after its judgment.
func (b *bench) plan(text string) job.Plan {
	b.Helper()
	plan, err := planFor(text, b.dir, b.env)
	if err != nil {
		b.Fatal(err)
	}
	return plan
}

func planFor(text, dir string, env []string) (job.Plan, error) {
	command, err := shell.Analyze(text)
	if err != nil {
		return job.Plan{}, fmt.Errorf("analyse %q: %w", text, err)
	}
	plan := job.Plan{Dir: directory(".", dir), Env: env}
	for i := range command.Segments {
		piped := i > 0 && command.Segments[i-1].Op == shell.Pipe
		segment, err := segmentFor(&command.Segments[i], &dir, env, piped)
		if err != nil {
			return job.Plan{}, fmt.Errorf("%q: %w", text, err)
		}
		plan.Segments = append(plan.Segments, segment)
	}
	return plan, nil
}

// segmentFor makes a segment. A cd that is no part of a pipeline moves dir for the segments that follow, if it is there
// or they are only due if it was.
func segmentFor(s *shell.Segment, dir *string, env []string, piped bool) (job.Segment, error) {
	surroundings := shell.Surroundings{Dir: *dir, ReadDir: os.ReadDir, Getenv: func(name string) (string, bool) {
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}}
	expanded, err := s.Expand(surroundings)
	if err != nil {
		return job.Segment{}, err
	}
	out := job.Segment{Dir: *dir, Argv: expanded.Argv, Op: job.Operator(s.Op)}
	for _, a := range s.Assigns {
		out.Env = append(out.Env, a.Name+"="+a.Value)
	}
	if body, ok := s.Body(surroundings); ok {
		out.Redirects = append(out.Redirects, job.Document(body))
	}
	for _, r := range s.Redirs {
		out.Redirects = append(out.Redirects, redirect(r, *dir))
	}
	if out.Argv[0] == "cd" {
		target := directory(out.Argv[1], at(*dir, out.Argv[1]))
		out.Chdir = &target
		info, err := os.Stat(target.Path)
		if s.Op != shell.Pipe && !piped && (s.Op == shell.And || err == nil && info.IsDir()) {
			*dir = target.Path
		}
		return out, nil
	}
	unwrapped := shell.Unwrap(out.Argv)
	for _, at := range append(unwrapped.At, unwrapped.Program) {
		p, err := program(out.Argv[at], *dir)
		if err != nil {
			return job.Segment{}, err
		}
		p.At = at
		out.Programs = append(out.Programs, p)
	}
	return out, nil
}

func program(name, dir string) (job.Program, error) {
	path := at(dir, name)
	if !strings.Contains(name, "/") {
		var err error
		if path, err = exec.LookPath(name); err != nil {
			return job.Program{}, err
		}
	}
	identity, err := job.Identify(path)
	return job.Program{Path: path, Identity: identity}, err
}

func at(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

func directory(name, path string) job.Directory {
	return job.Directory{Name: name, Path: path, Open: func() (*os.File, error) { return openDirectory(path) }}
}

func openDirectory(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
}

func redirect(r shell.Redirect, dir string) job.Redirect {
	fd := 1
	if r.Op == "<" {
		fd = 0
	}
	if r.FD != "" {
		fd = int(r.FD[0] - '0')
	}
	path := at(dir, r.Target)
	// The real place check, as the tool will use it.
	judged := place.Resolved{Real: filepath.Clean(path), Kind: place.KindMissing}
	open := func() (*os.File, error) { return place.OpenOutput(judged, strings.HasSuffix(r.Op, ">>")) }
	if r.Target == os.DevNull {
		open = job.OpenNull
	}
	switch r.Op {
	case ">&":
		return job.Copy(fd, int(r.Target[0]-'0'))
	case "<":
		if r.Target != os.DevNull {
			open = func() (*os.File, error) { return place.OpenInput(judged) }
		}
		return job.Input(fd, r.Target, open)
	case "&>", "&>>":
		return job.OutputBoth(r.Target, open)
	}
	return job.Output(fd, r.Target, open)
}

// run runs a plan to its end.
func (b *bench) run(plan job.Plan) outcome {
	b.Helper()
	got, err := runPlan(plan, nil)
	if err != nil {
		b.Fatal(err)
	}
	return got
}

func runPlan(plan job.Plan, in *os.File) (outcome, error) {
	running, out, errs, err := startPlan(plan, in)
	if err != nil {
		return outcome{out: <-out, err: <-errs}, err
	}
	select {
	case <-running.Done():
	case <-time.After(30 * time.Second):
		return outcome{}, errors.New("the job does not end")
	}
	running.Release()
	return outcome{out: <-out, err: <-errs, result: running.Result()}, nil
}

func startPlan(plan job.Plan, in *os.File) (running *job.Job, out, errs <-chan string, err error) {
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	out, errs = collect(outRead), collect(errRead)
	running, err = job.Start(plan, job.Streams{In: in, Out: outWrite, Err: errWrite})
	return running, out, errs, err
}

func collect(f *os.File) <-chan string {
	text := make(chan string, 1)
	go func() {
		var all bytes.Buffer
		io.Copy(&all, f)
		f.Close()
		text <- all.String()
	}()
	return text
}

// bash runs a text as bash does.
func (b *bench) bash(text string) (out, errs string, code int) {
	b.Helper()
	cmd := exec.Command("bash", "-c", text)
	cmd.Dir, cmd.Env = b.dir, b.env
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.Fatal(err)
	}
	code = cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(interface{ Signaled() bool }); ok && status.Signaled() {
		code = 128 + signalNumber(cmd.ProcessState)
	}
	return stdout.String(), stderr.String(), code
}
