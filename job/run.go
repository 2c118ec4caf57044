//go:build unix

package job

import (
	"errors"
	"fmt"
	"os"
	"slices"
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

// follow waits for a pipeline, starts the next that is due, and so on to the end.
func (j *Job) follow(members []member) {
	for members != nil {
		j.settle(members)
		members = j.advance()
	}
	j.end()
}

// advance starts the next pipeline that is due and returns its members, some of which are running. What needs no
// waiting is done on the way: cd, and pipelines that do not start. nil: nothing is left.
//
// A list of "&&" and "||" is read from the left; both bind equally.
func (j *Job) advance() (members []member) {
	defer func() {
		if r := recover(); r != nil { // in an Open function: nothing more may run
			j.Stop(syscall.SIGKILL)
			j.refused(fmt.Errorf("internal error: %v", r))
			members = nil
		}
	}()
	for len(j.rest) > 0 {
		n := 1
		for j.rest[n-1].Op == Pipe {
			n++
		}
		pipeline, op := j.rest[:n], j.op
		j.rest, j.op = j.rest[n:], pipeline[n-1].Op
		if op == And && j.result.Code != 0 || op == Or && j.result.Code == 0 {
			continue
		}
		if j.isStopped() { // not even a file is emptied then
			j.refused(ErrStopped)
			return nil
		}
		members, err := j.launch(pipeline)
		if err != nil {
			j.settle(members)
			j.refused(err)
			return nil
		}
		if slices.ContainsFunc(members, func(m member) bool { return m.runs() }) {
			return members
		}
		j.settle(members)
	}
	return nil
}

// settle waits until all members have ended. The status of a pipeline is that of its last.
func (j *Job) settle(members []member) {
	if len(members) == 0 {
		return
	}
	j.wait(members)
	last := &members[len(members)-1]
	if !last.status.known {
		return
	}
	j.result.Code, j.result.Signal = last.status.code, last.status.signal
	if s := last.status.signal; s != 0 && s != syscall.SIGPIPE && s != syscall.SIGINT && len(j.rest) > 0 && !j.isStopped() {
		complain(j.streams.Err, fmt.Errorf("%s: %v", last.name(), s)) // the end of the very last is in the result
	}
}

// end lets go of what the runner holds.
func (j *Job) end() {
	j.streams.close()
	_ = j.dir.Close() // nothing was written
	j.result.Dir = j.path
	close(j.done)
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

// launch starts segments joined by "|". Everything is opened and compared before anything starts: a refusal in the third
// must not come after the first has run. After an error the members that run have been told to end.
func (j *Job) launch(segments []Segment) ([]member, error) {
	members := make([]member, len(segments))
	defer func() {
		for i := range members {
			members[i].close()
		}
	}()
	if err := j.prepare(members, segments); err != nil {
		return nil, err
	}
	for i := range members {
		m := &members[i]
		var err error
		switch {
		case m.status.known: // its redirections failed
		case m.Chdir != nil:
			m.status = exited(0)
			if len(members) == 1 { // as one of several it changes nothing for the others
				j.move(m)
			}
		default:
			err = j.start(m)
		}
		if err != nil {
			j.Stop(syscall.SIGKILL)
			return members, err
		}
		m.closeStreams()
	}
	if len(j.rest) == 0 {
		j.streams.close() // who reads the output then sees its end
	}
	return members, nil
}

// prepare opens what the members need.
func (j *Job) prepare(members []member, segments []Segment) error {
	for i := range members {
		m := &members[i]
		m.Segment = &segments[i]
		m.streams = [3]*os.File{j.streams.In, j.streams.Out, j.streams.Err}
		if m.Dir != j.path {
			return &Refusal{What: m.name(), Err: ErrElsewhere}
		}
		if m.Again != nil {
			if err := m.Again(); err != nil {
				return &Refusal{What: m.name(), Err: err}
			}
		}
		if err := m.openPrograms(); err != nil {
			return err
		}
	}
	if err := connect(members); err != nil {
		return err
	}
	for i := range members {
		if err := members[i].redirect(); err != nil {
			return err
		}
		if err := members[i].openDirectory(); err != nil {
			return err
		}
	}
	return nil
}

// start starts the program of a member. An error means that the job must not go on; what a shell would report is a
// status.
func (j *Job) start(m *member) error {
	err := j.startProgram(m)
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

// startProgram starts the program of a member in the process group of the job.
func (j *Job) startProgram(m *member) error {
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
	if m.Elsewhere != nil {
		return j.startElsewhere(m, argv)
	}
	attributes.Sys = j.attributes(m)
	start := func() (*os.Process, error) { return m.programs[0].start(argv, attributes, j.dir) }
	starting := j.plan.Starting
	if starting == nil {
		starting = func(start func() (*os.Process, error)) (*os.Process, error) { return start() }
	}
	process, err := starting(start)
	if err != nil {
		return err
	}
	m.process = process
	if j.first == 0 {
		j.first = process.Pid
	}
	if j.leader == nil {
		j.leader = process
	} else {
		j.members = append(j.members, process)
	}
	// Somebody may have written into the file, or exchanged one that is opened by name, since the comparison.
	return m.compare()
}

// attributes puts a program into the process group of the job, or on the terminal. The caller holds mu.
func (j *Job) attributes(m *member) *syscall.SysProcAttr {
	if j.streams.Terminal {
		fd := j.terminal(m)
		return &syscall.SysProcAttr{Setsid: true, Setctty: fd >= 0, Ctty: max(fd, 0)}
	}
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if j.leader != nil {
		attributes.Pgid = j.leader.Pid
	}
	return attributes
}

// terminal is which of the streams of a program is the terminal of the job; -1 if none is.
func (j *Job) terminal(m *member) int {
	return slices.IndexFunc(m.streams[:], func(f *os.File) bool { return f == j.streams.In || f == j.streams.Out || f == j.streams.Err })
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

// move makes the directory of a cd that of what follows.
func (j *Job) move(m *member) {
	_ = j.dir.Close() // nothing was written
	j.moved = []string{"PWD=" + m.Chdir.Path, "OLDPWD=" + j.path}
	j.dir, j.path = m.target, m.Chdir.Path
	m.target = nil
}

// wait follows all members to their end.
func (j *Job) wait(members []member) {
	leads := -1
	for i := range members {
		m := &members[i]
		switch {
		case m.away != nil:
			m.status = endOf(m.away.Wait())
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
