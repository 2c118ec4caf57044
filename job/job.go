//go:build unix

package job

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Result is how a job ended.
type Result struct {
	Code   int            // as a shell reports it: 128+n if signal n ended the last program
	Signal syscall.Signal // that ended the last program; 0 if it exited
	Err    error          // why segments that were due did not run: a *Refusal, or ErrStopped; nil otherwise
	Dir    string         // where it stood at its end
}

// Job is a running or finished plan. Its programs are one process group (on systems other than Linux one for each
// pipeline).
type Job struct {
	plan    Plan
	streams Streams
	dir     *os.File // where programs start; only the runner uses it
	path    string   // its path
	moved   []string // PWD and OLDPWD after a cd
	rest    []Segment
	op      Operator // before the rest
	done    chan struct{}
	result  Result // valid once done is closed

	mu      sync.Mutex
	stopped bool
	first   int           // process id of the first program
	leader  *os.Process   // whose process group the job is; nil if there is none now
	members []*os.Process // programs that run now, without the leader
	escaped []*os.Process // descendants that left the process group
	places  []Elsewhere   // where programs were started that the job did not start itself
}

// Start runs a plan. It returns when the first program has started or everything is over. An error means that
// nothing was started.
func Start(plan Plan, streams Streams) (*Job, error) {
	if err := plan.check(streams); err != nil {
		streams.close()
		return nil, fmt.Errorf("run the command: %w", err)
	}
	// What the gateway itself was started with (a supervisor's pipe, a terminal multiplexer's socket) may lack the mark.
	if err := keepDescriptors(); err != nil {
		streams.close()
		return nil, fmt.Errorf("run the command: %w", err)
	}
	dir, err := plan.Dir.Open()
	if err != nil {
		streams.close()
		return nil, fmt.Errorf("run the command: the working directory: %w", err)
	}
	if err := fillStreams(&streams); err != nil {
		_ = dir.Close() // nothing was done with it
		return nil, fmt.Errorf("run the command: %w", err)
	}
	j := &Job{
		plan: plan, streams: streams, dir: dir, path: plan.Dir.Path, rest: plan.Segments, done: make(chan struct{}),
	}
	running := j.advance()
	if running != nil {
		go j.follow(running)
		return j, nil
	}
	j.end()
	if j.first == 0 && j.result.Err != nil {
		return nil, fmt.Errorf("run the command: %w", j.result.Err)
	}
	return j, nil
}

func fillStreams(s *Streams) error {
	if s.In != nil && s.Out != nil && s.Err != nil {
		return nil
	}
	null, err := OpenNull()
	if err != nil {
		s.close()
		return err
	}
	for _, f := range []**os.File{&s.In, &s.Out, &s.Err} {
		if *f == nil {
			*f = null
		}
	}
	return nil
}

// Process is the id of the first program, which is also the id of the process group; 0 if none was started.
func (j *Job) Process() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.first
}

// Done is closed when all programs of the job have ended and no more will start.
func (j *Job) Done() <-chan struct{} { return j.done }

// Result is how the job ended; valid once Done is closed.
func (j *Job) Result() Result { return j.result }

// Stop sends a signal to all processes of the job and sees to it that no more segments start. It does not wait. It can
// be called again with a stronger signal.
func (j *Job) Stop(signal syscall.Signal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stopped = true
	j.signal(signal)
}

// Signal hands a signal to all processes of the job, as a terminal does. Those that end a shell keep further segments from starting.
func (j *Job) Signal(signal syscall.Signal) {
	switch signal {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL:
		j.Stop(signal)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, place := range j.places {
		place.Signal(signal)
	}
	if j.leader != nil && j.leader.Pid > 1 { // 0 and 1 would be our own group and everybody
		_ = syscall.Kill(-j.leader.Pid, signal) // a group without members is what we want
	}
}

// signal reaches the process group, the programs that left it, and their descendants that did. The caller holds mu.
func (j *Job) signal(signal syscall.Signal) {
	for _, place := range j.places {
		place.Signal(signal)
	}
	roots := j.members
	if j.leader != nil {
		roots = append(roots[:len(roots):len(roots)], j.leader)
		j.escaped = append(j.escaped, descendants(roots, j.leader.Pid)...)
		signalGroup(j.leader.Pid, signal)
	}
	for _, p := range append(j.escaped, roots...) {
		// A program may have made a group of its own, as timeout does. Who gets a signal twice dies once.
		if group, err := syscall.Getpgid(p.Pid); err == nil && j.leader != nil && group == j.leader.Pid {
			continue
		}
		_ = p.Signal(signal)          // it may have ended
		_ = p.Signal(syscall.SIGCONT) // a stopped process could not notice
	}
}

func signalGroup(group int, signal syscall.Signal) {
	if group > 1 { // 0 and 1 would be our own group and everybody
		_ = syscall.Kill(-group, signal)          // a group without members is what we want
		_ = syscall.Kill(-group, syscall.SIGCONT) // a stopped process could not notice
	}
}

// Release waits until the job is done, ends what its programs left behind in its process group, and lets go of the
// group. It must be called once, when the output has been read.
func (j *Job) Release() {
	<-j.done
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.leader != nil {
		// The leader is still a zombie: that keeps the group's id from being given to somebody else, who would be hit.
		signalGroup(j.leader.Pid, syscall.SIGKILL)
		_, _ = j.leader.Wait() // its status is known
		j.leader = nil
	}
	for _, place := range j.places {
		place.End()
	}
	for _, p := range j.escaped {
		_ = p.Kill()    // it may have ended
		_ = p.Release() // nothing depends on it
	}
	j.escaped = nil
}
