//go:build linux

package serve

import (
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/sandbox/inside/wire"
	"github.com/toolward/toolward/sandbox/task"
)

// runJob runs understood programs without a shell.
func (st *stream) runJob(command *task.Command, env environment, dir, warning string) (wire.Type, []byte) {
	if command.Terminal != nil {
		return wire.Error, wire.EncodeError(task.Errorf(task.CodeFailed, "%v", job.ErrTerminal))
	}
	s := st.server
	var pids pidList
	plan, err := s.plan(command.Segments, env, dir)
	if err != nil {
		return wire.Error, wire.EncodeError(err)
	}
	plan.Starting = func(start func() (*os.Process, error)) (process *os.Process, err error) {
		_, err = s.kids.start(func() (int, error) {
			if process, err = start(); err != nil {
				return 0, err
			}
			pids.add(process.Pid)
			return process.Pid, nil
		})
		return process, err
	}
	streams, child, err := st.open(command)
	if err != nil {
		return wire.Error, wire.EncodeError(err)
	}
	in, err := unix.FcntlInt(child[0], unix.F_DUPFD_CLOEXEC, 3) // the job closes what it gets
	if err != nil {
		s.closeChild(child)
		streams.close()
		return wire.Error, wire.EncodeError(err)
	}
	if int(child[0]) != s.null {
		_ = unix.Close(int(child[0])) // there is a copy
	}
	kills := s.oom.count()
	running, err := job.Start(plan, job.Streams{
		In:  os.NewFile(uintptr(in), "stdin"),
		Out: os.NewFile(child[1], "stdout"),
		Err: os.NewFile(child[2], "stderr"),
	})
	if err != nil {
		streams.close()
		return wire.Error, wire.EncodeError(task.Errorf(task.CodeFailed, "%v", err))
	}
	started := wire.Started{PID: uint32(max(running.Process(), 0)), Warning: warning}
	_ = s.out.send(wire.Response, st.id, started.Encode()) // the receiver notices
	streams.begin()
	follow := &jobRun{job: running, stdio: streams}
	st.runs(follow)
	<-running.Done()
	leftover := running.Process() > 0 && groupLives(running.Process())
	running.Release()
	follow.release()
	s.kids.waited(pids.all()...)
	streams.finish(false)
	result := running.Result()
	status := task.ExitStatus{Code: result.Code & 0xff, Signal: result.Signal, Leftover: leftover}
	if status.Signal != 0 {
		status.Code = -1
	}
	status.OOM = status.Code != 0 && s.oom.count() > kills
	return wire.Exit, wire.EncodeExit(status)
}

// pidList is what a job has started.
type pidList struct {
	mu   sync.Mutex
	pids []int
}

func (l *pidList) add(pid int) {
	l.mu.Lock()
	l.pids = append(l.pids, pid)
	l.mu.Unlock()
}

func (l *pidList) all() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pids
}

// jobRun is a running job.
type jobRun struct {
	job   *job.Job
	stdio *pumps

	mu       sync.Mutex
	released bool
	timer    *time.Timer
}

func (r *jobRun) signal(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.released {
		return
	}
	signal := syscall.Signal(number)
	switch signal {
	case unix.SIGTERM, unix.SIGKILL, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT:
		r.job.Stop(signal) // and no further program
	default:
		if group := r.job.Process(); group > 1 {
			_ = unix.Kill(-group, signal) // it may have ended
		}
	}
}

func (r *jobRun) stop() {
	r.signal(int(unix.SIGTERM))
	r.stdio.abandon()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.released && r.timer == nil {
		r.timer = time.AfterFunc(stopDelay, func() { r.signal(int(unix.SIGKILL)) })
	}
}

func (r *jobRun) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

func (r *jobRun) resize(uint16, uint16) {}

// plan makes a job of understood programs. Every program is looked up here, inside.
func (s *server) plan(segments []task.Segment, env environment, dir string) (job.Plan, error) {
	plan := job.Plan{Dir: directory(dir, dir), Env: env.list}
	before := dir
	for i := range segments {
		from := &segments[i]
		if i > 0 && segments[i-1].Operator == "||" && isChdir(&segments[i-1]) {
			dir = before // it runs if the cd has failed
		}
		to := job.Segment{Dir: dir, Argv: from.Argv, Env: from.Env, Op: job.Operator(from.Operator)}
		for _, r := range from.Redirects {
			redirect, err := redirection(r, dir)
			if err != nil {
				return plan, err
			}
			to.Redirects = append(to.Redirects, redirect)
		}
		switch {
		case len(from.Argv) == 0:
			return plan, task.Errorf(task.CodeFailed, "a program without a name")
		case isChdir(from):
			target, err := chdirTarget(from.Argv, dir, env)
			if err != nil {
				return plan, err
			}
			there := directory(from.Argv[len(from.Argv)-1], target)
			to.Chdir = &there
			if from.Operator != "|" && (i == 0 || segments[i-1].Operator != "|") {
				before, dir = dir, target
			}
		default:
			if err := s.findProgram(&to, env.with(from.Env), dir, i == 0); err != nil {
				return plan, err
			}
		}
		plan.Segments = append(plan.Segments, to)
	}
	return plan, nil
}

func isChdir(s *task.Segment) bool { return len(s.Argv) > 0 && s.Argv[0] == "cd" }

func chdirTarget(argv []string, dir string, env environment) (string, error) {
	words := argv[1:]
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	switch {
	case len(words) == 0:
		for _, variable := range env.list {
			if home, ok := strings.CutPrefix(variable, "HOME="); ok && path.IsAbs(home) {
				return path.Clean(home), nil
			}
		}
	case len(words) == 1 && path.IsAbs(words[0]):
		return path.Clean(words[0]), nil
	case len(words) == 1 && words[0] != "" && !strings.HasPrefix(words[0], "-"):
		return path.Join(dir, words[0]), nil
	}
	return "", task.Errorf(task.CodeFailed, "cd with these words is a matter for a shell")
}

func directory(name, target string) job.Directory {
	return job.Directory{Name: name, Path: target, Open: func() (*os.File, error) {
		return os.OpenFile(target, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	}}
}

// findProgram looks a program up. One that is not there must fail when its turn comes, as in a shell, and not keep the
// others from running; and what runs before it may make it, or make it anew: "go build -o out && ./out". This program
// stands in for it and looks again.
func (s *server) findProgram(to *job.Segment, env environment, dir string, first bool) error {
	name := to.Argv[0]
	file, status := env.find(name, dir)
	if status != 0 || !first && !slices.Contains(strings.Split(task.DefaultPath, ":"), path.Dir(file)) {
		file = "/proc/self/exe"
		to.Argv = slices.Concat([]string{name}, subcommand(), []string{lateName}, to.Argv)
	}
	identity, err := job.Identify(file)
	if err != nil {
		return task.Errorf(task.CodeFailed, "look at %.200q: %v", name, err)
	}
	to.Programs = []job.Program{{Path: file, Identity: identity}}
	return nil
}

// subcommand is what stands before the arguments when the big program stands in for this one.
func subcommand() []string {
	if len(os.Args) > 1 && os.Args[1] == "inside" {
		return os.Args[1:2]
	}
	return nil
}

// redirection opens what a shell would.
func redirection(r task.Redirect, dir string) (job.Redirect, error) {
	file := r.Path
	if !path.IsAbs(file) {
		file = path.Join(dir, file)
	}
	open := func(flags int) func() (*os.File, error) {
		return func() (*os.File, error) {
			// Without O_NONBLOCK a FIFO would hold everything up. The program gets an ordinary file.
			fd, err := unix.Open(file, flags|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0o666)
			if err != nil {
				return nil, &os.PathError{Op: "open", Path: r.Path, Err: err}
			}
			_ = unix.SetNonblock(fd, false) // a regular file does not care
			return os.NewFile(uintptr(fd), r.Path), nil
		}
	}
	switch r.Kind {
	case task.RedirectIn:
		return job.Input(r.FD, r.Path, open(unix.O_RDONLY)), nil
	case task.RedirectOut:
		return job.Output(r.FD, r.Path, open(unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)), nil
	case task.RedirectAppend:
		return job.Output(r.FD, r.Path, open(unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND)), nil
	case task.RedirectCopy:
		return job.Copy(r.FD, r.From), nil
	case task.RedirectText:
		return job.Document(r.Text), nil
	}
	return job.Redirect{}, task.Errorf(task.CodeFailed, "an unknown redirection")
}
