//go:build unix

package job

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Statuses of a shell for what could not be started.
const (
	statusFailed        = 1   // a redirection or cd
	statusNotExecutable = 126 // the system does not execute the file
	statusNotFound      = 127 // nor finds the interpreter that a script names
)

// ErrStopped says that segments did not run because the job was stopped.
var ErrStopped = errors.New("the job was stopped")

// ErrElsewhere says that a segment would have run in another directory than it was judged for: a cd before it failed,
// or was passed over.
var ErrElsewhere = errors.New("it was judged for another directory than it would run in")

// Refusal says that something was not what had been judged. The job ended there.
type Refusal struct {
	What string // program, file or directory
	Err  error
}

func (r *Refusal) Error() string { return r.What + ": " + r.Err.Error() }

// Unwrap gives the reason.
func (r *Refusal) Unwrap() error { return r.Err }

// run goes through the pipelines. A list of "&&" and "||" is read from the left; both bind equally.
func (j *Job) run() {
	defer close(j.done)
	defer func() { j.dir.Close() }() //nolint:errcheck // nothing was written
	defer j.streams.close()
	defer func() {
		if r := recover(); r != nil { // in an Open function: nothing more may run
			j.Stop(syscall.SIGKILL)
			j.result = Result{Code: statusNotExecutable, Err: fmt.Errorf("internal error: %v", r)}
		}
	}()
	op := None
	for rest := j.plan.Segments; len(rest) > 0; {
		n := 1
		for rest[n-1].Op == Pipe {
			n++
		}
		pipeline := rest[:n]
		rest = rest[n:]
		due := op != And && op != Or || (op == And) == (j.result.Code == 0)
		op = pipeline[n-1].Op
		if !due {
			continue
		}
		if j.isStopped() { // not even a file is emptied then
			j.refused(ErrStopped)
			return
		}
		status, err := j.pipeline(pipeline, len(rest) == 0)
		if status.known {
			j.result.Code, j.result.Signal = status.code, status.signal
		}
		if err != nil {
			j.refused(err)
			return
		}
		if end := status.signal; end != 0 && end != syscall.SIGPIPE && end != syscall.SIGINT && len(rest) > 0 {
			complain(j.streams.Err, fmt.Errorf("%s: %v", pipeline[n-1].name(), end)) // the end of the last is in the result
		}
	}
}

func (j *Job) refused(err error) {
	j.result.Err = err
	if errors.Is(err, ErrStopped) {
		return
	}
	j.result.Code, j.result.Signal = statusNotExecutable, 0
	complain(j.streams.Err, err)
}

func (j *Job) isStopped() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stopped
}

// status is how a member of a pipeline ended.
type status struct {
	known  bool
	code   int
	signal syscall.Signal
}

func exited(code int) status { return status{known: true, code: code} }

func signalled(signal syscall.Signal) status {
	return status{known: true, code: 128 + int(signal), signal: signal}
}

// member is a segment of a running pipeline.
type member struct {
	*Segment
	programs []*program // opened and compared; none for a cd
	streams  [3]*os.File
	owned    []*os.File // to be closed once it has started
	process  *os.Process
	status   status // known if it has ended or did not start
}

func (m *member) close() {
	for _, p := range m.programs {
		p.close()
	}
	m.closeStreams()
}

func (m *member) closeStreams() {
	for _, f := range m.owned {
		f.Close() //nolint:errcheck // the program has its own; nothing was written through ours
	}
	m.owned = nil
}

// pipeline runs segments joined by "|" and returns the status of the last. Everything is checked before anything
// starts: a refusal in the third must not come after the first has run.
func (j *Job) pipeline(segments []Segment, last bool) (status, error) {
	members := make([]member, len(segments))
	defer func() {
		for i := range members {
			members[i].close()
		}
	}()
	for i := range members {
		m := &members[i]
		m.Segment = &segments[i]
		if m.Dir != j.path {
			return status{}, &Refusal{What: m.name(), Err: ErrElsewhere}
		}
		m.streams = [3]*os.File{j.streams.In, j.streams.Out, j.streams.Err}
		if err := m.openPrograms(); err != nil {
			return status{}, err
		}
	}
	if err := connect(members); err != nil {
		return status{}, err
	}
	for i := range members {
		if err := members[i].redirect(); err != nil {
			return status{}, err
		}
	}
	var failure error
	for i := range members {
		if failure = j.launch(&members[i], len(members) == 1); failure != nil {
			break
		}
	}
	for i := range members {
		members[i].closeStreams() // ends the input of those that wait for one that did not start
	}
	if last && failure == nil {
		j.streams.close()
	}
	if failure != nil {
		j.Stop(syscall.SIGKILL)
	}
	j.wait(members)
	return members[len(members)-1].status, failure
}

// connect joins neighbours by pipes.
func connect(members []member) error {
	for i := range members[1:] {
		var ends [2]int
		// Blocking ends: they are for programs, not for us.
		if err := pipe(&ends); err != nil {
			return fmt.Errorf("open a pipe: %w", err)
		}
		read, write := os.NewFile(uintptr(ends[0]), "pipe"), os.NewFile(uintptr(ends[1]), "pipe")
		members[i].streams[1] = write
		members[i].owned = append(members[i].owned, write)
		members[i+1].streams[0] = read
		members[i+1].owned = append(members[i+1].owned, read)
	}
	return nil
}

// launch starts a member, or does the cd. alone: it is no part of a larger pipeline, where a cd changes nothing for
// the others. An error means that the job must not go on.
func (j *Job) launch(m *member, alone bool) error {
	defer m.closeStreams()
	switch {
	case m.status.known: // its redirections failed
		return nil
	case m.Chdir != nil:
		return j.chdir(m, alone)
	}
	err := j.start(m)
	var code syscall.Errno
	switch {
	case errors.Is(err, ErrStopped) || errors.As(err, new(*Refusal)):
		return err
	case errors.As(err, &code) && code != unix.EAGAIN && code != unix.ENOMEM:
		complain(m.streams[2], fmt.Errorf("%s: %w", m.name(), code))
		m.status = exited(statusNotExecutable)
		if code == unix.ENOENT {
			m.status = exited(statusNotFound)
		}
		return nil
	case err != nil:
		return fmt.Errorf("start %s: %w", m.name(), err)
	}
	return nil
}

// start starts the program of a member in the process group of the job.
func (j *Job) start(m *member) error {
	argv := append([]string(nil), m.Argv...)
	for _, p := range m.Programs {
		argv[p.At] = p.Path // a wrapper must not look for it once more
	}
	attributes := &os.ProcAttr{Env: j.environment(m.Env), Files: m.streams[:]}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped {
		return ErrStopped
	}
	if err := m.compare(); err != nil {
		return err
	}
	attributes.Sys = j.attributes(m)
	process, err := m.programs[0].start(argv, attributes, j.dir)
	if err != nil {
		return err
	}
	m.process = process
	if j.first == 0 {
		j.first = process.Pid
		close(j.started)
	}
	if j.leader == nil {
		j.leader = process
	} else {
		j.members = append(j.members, process)
	}
	// Somebody may have written into the file, or exchanged one that is opened by name, since the comparison.
	return m.compare()
}

func (m *member) compare() error {
	for _, p := range m.programs {
		if err := p.compare(); err != nil {
			return err
		}
	}
	return nil
}

// attributes puts a program into the process group of the job, or on the terminal. The caller holds mu.
func (j *Job) attributes(m *member) *syscall.SysProcAttr {
	if j.streams.Terminal {
		for fd, f := range m.streams {
			if f == j.streams.In || f == j.streams.Out || f == j.streams.Err {
				return &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: fd}
			}
		}
		return &syscall.SysProcAttr{Setsid: true}
	}
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if j.leader != nil {
		attributes.Pgid = j.leader.Pid
	}
	return attributes
}

// environment is the environment of one program. A name stands once: programs disagree about which of two counts. It
// is never nil, which would mean the gateway's own.
func (j *Job) environment(own []string) []string {
	if len(own) == 0 && len(j.moved) == 0 && j.plan.Env != nil {
		return j.plan.Env
	}
	changes := append(append([]string(nil), j.moved...), own...)
	changed := make(map[string]int, len(changes))
	for i, v := range changes {
		changed[variableName(v)] = i
	}
	list := []string{}
	for _, v := range j.plan.Env {
		if _, ok := changed[variableName(v)]; !ok {
			list = append(list, v)
		}
	}
	for i, v := range changes {
		if changed[variableName(v)] == i {
			list = append(list, v)
		}
	}
	return list
}

func variableName(v string) string {
	name, _, _ := strings.Cut(v, "=")
	return name
}

// chdir does what cd does: alone it changes the directory of what follows.
func (j *Job) chdir(m *member, alone bool) error {
	dir, err := m.Chdir.Open()
	if err != nil {
		reported, refusal := report(m.Chdir.Name, err)
		if refusal != nil {
			return refusal
		}
		complain(m.streams[2], fmt.Errorf("cd: %w", reported))
		m.status = exited(statusFailed)
		return nil
	}
	m.status = exited(0)
	if !alone {
		dir.Close() //nolint:errcheck // it was opened only to see whether that is possible
		return nil
	}
	j.dir.Close() //nolint:errcheck // nothing was written
	j.moved = []string{"PWD=" + m.Chdir.Path, "OLDPWD=" + j.path}
	j.dir, j.path = dir, m.Chdir.Path
	return nil
}

// wait follows all members to their end.
func (j *Job) wait(members []member) {
	leads := -1
	for i := range members {
		m := &members[i]
		switch {
		case m.process == nil:
		case m.process == j.leader: // only we change it before Release
			leads = i
		default:
			m.status = statusOf(m.process.Wait())
		}
	}
	if leads >= 0 {
		members[leads].status = j.awaitLeader()
	}
	j.mu.Lock()
	j.members = nil
	j.mu.Unlock()
}

func statusOf(state *os.ProcessState, err error) status {
	if err != nil {
		return exited(statusNotExecutable)
	}
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return signalled(s.Signal())
	}
	return exited(state.ExitCode())
}

// complain writes a message where the program's own would go. Nobody may be reading any more.
func complain(to *os.File, err error) {
	fmt.Fprintf(to, "toolward: %v\n", err) //nolint:errcheck // see above
}
