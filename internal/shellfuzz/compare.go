//go:build linux

package shellfuzz

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolward/toolward/shell"
)

// Difference is something that bash did and analysis did not say, or the other way round.
type Difference struct {
	Class  string // in one word, for minimizing
	Detail string
}

func (d *Difference) Error() string { return d.Class + ": " + d.Detail }

// Compare looks for a difference between what is claimed of a text and what bash did with it.
func (b *Bash) Compare(claim *Claim, trace *Trace) *Difference {
	switch {
	case trace.TimedOut:
		return &Difference{"endless", "bash did not end"}
	case trace.Left:
		return &Difference{"left", "bash left processes running"}
	}
	var choices []status
	var first *Difference
	for range maxChoices {
		m := &matching{bash: b, trace: trace, done: map[uint32]int{}, choices: choices}
		m.all(claim)
		if m.difference == nil {
			return nil
		}
		if first == nil {
			first = m.difference
		}
		// Nobody sees how a builtin ended. The last one that was taken to have succeeded may have failed.
		choices = m.choices
		for len(choices) > 0 && choices[len(choices)-1] == failed {
			choices = choices[:len(choices)-1]
		}
		if len(choices) == 0 {
			break
		}
		choices[len(choices)-1] = failed
	}
	return first
}

// maxChoices bounds how often a claim is compared with other guesses of how builtins ended.
const maxChoices = 256

// matching goes through a claim as a shell would, and through what its processes did, step by step. Which process is
// whose, and how each ended, is known: nothing is guessed but the status of builtins.
type matching struct {
	bash       *Bash
	trace      *Trace
	done       map[uint32]int // how many steps of a process are accounted for
	choices    []status       // how builtins ended, in order
	chosen     int
	inherited  []shell.Assign // variables of the shells around
	buffered   bool           // by stdbuf, which sets variables of its own
	difference *Difference
}

// process is one that runs a shell.
type process struct {
	pid  uint32
	dash bool
	base [3]file // its standard streams
}

func (m *matching) differ(class, format string, args ...any) {
	if m.difference == nil {
		m.difference = &Difference{class, fmt.Sprintf(format, args...)}
	}
}

func (m *matching) all(claim *Claim) {
	m.claim(claim, process{pid: m.trace.Process, base: m.bash.base}, false)
	for i := range m.trace.Starts {
		if s := &m.trace.Starts[i]; !m.accounted(s.PID, Started, i) {
			m.differ("start", "%q was started in %s, standard streams %v", s.Argv, s.Dir, s.Files)
		}
	}
	for pid, steps := range m.trace.Steps {
		for i, e := range steps {
			if e.Kind == Forked && i >= m.done[pid] {
				m.differ("fork", "process %d made another one", pid)
			}
		}
	}
	m.files()
}

// accounted reports whether a step of a process has been passed.
func (m *matching) accounted(pid uint32, kind EventKind, index int) bool {
	at := slices.IndexFunc(m.trace.Steps[pid], func(e Event) bool { return e.Kind == kind && e.Index == index })
	return at < m.done[pid]
}

// next is the next step of a process; files that shells open for themselves are passed over.
func (m *matching) next(pid uint32) (Event, bool) {
	steps := m.trace.Steps[pid]
	for m.done[pid] < len(steps) {
		e := steps[m.done[pid]]
		if e.Kind != Opened || !ownFile(&m.trace.Opens[e.Index]) {
			return e, true
		}
		m.done[pid]++
	}
	return Event{}, false
}

// pass takes the next step of a process, if it is of a kind.
func (m *matching) pass(pid uint32, kind EventKind) (Event, bool) {
	e, ok := m.next(pid)
	if !ok || e.Kind != kind {
		return Event{}, false
	}
	m.done[pid]++
	return e, true
}

// status is how a command ended.
type status int

const (
	succeeded status = iota
	failed
	left // the shell itself ended
)

func statusOf(ok bool) status {
	if ok {
		return succeeded
	}
	return failed
}

// ended is how a process ended; what nobody waited for was the last, whose status nothing depends on.
func (m *matching) ended(pid uint32) status {
	s, waited := m.trace.Ended[pid]
	return statusOf(!waited || s.Exited() && s.ExitStatus() == 0)
}

// choose is the next guess of how a builtin ended.
func (m *matching) choose() status {
	if m.chosen == len(m.choices) {
		m.choices = append(m.choices, succeeded)
	}
	m.chosen++
	return m.choices[m.chosen-1]
}

// claim follows a shell through its pipelines.
func (m *matching) claim(c *Claim, in process, errexit bool) {
	last := succeeded
	for i := range c.pipelines {
		p := &c.pipelines[i]
		if m.cutOff(in.pid) {
			return
		}
		if p.after == shell.And && last == failed || p.after == shell.Or && last == succeeded {
			continue
		}
		if len(p.stages) > 1 {
			last = m.pipeline(p, in)
		} else {
			last = m.single(&p.stages[0], in)
		}
		ends := i+1 == len(c.pipelines) || c.pipelines[i+1].after == shell.Sequence
		if m.difference != nil || last == left || errexit && last == failed && ends {
			return
		}
	}
}

// cutOff reports whether a shell does nothing more because it wrote to somebody who had gone: whether it did is a
// matter of who is faster.
func (m *matching) cutOff(pid uint32) bool {
	if _, more := m.next(pid); more {
		return false
	}
	status, waited := m.trace.Ended[pid]
	return waited && status.Signaled() && status.Signal() == syscall.SIGPIPE
}

// single follows a command that is not part of a pipeline.
func (m *matching) single(st *stage, in process) status {
	if st.builtin || in.dash {
		if m.redirects(st, in.pid) == failed {
			if in.dash && st.builtin && st.chain[0][0] == ":" {
				return left // dash ends where the redirection of one of its special builtins fails
			}
			return failed
		}
	}
	if st.builtin {
		switch st.chain[0][0] {
		case "true", ":":
			return succeeded
		case "false":
			return failed
		}
		return m.choose()
	}
	runs := in.pid
	if e, ok := m.pass(in.pid, Forked); ok {
		runs = e.PID
	} // else it is the last command, for which the shell does not fork
	return m.external(st, runs, in, streams{base: in.base})
}

// pipeline follows every stage in a process of its own.
func (m *matching) pipeline(p *pipeline, in process) (last status) {
	var before *file // pipe from the stage before, if it is known
	for i := range p.stages {
		st := &p.stages[i]
		e, ok := m.pass(in.pid, Forked)
		if !ok {
			m.differ("missing", "%s did not start", st)
			return failed
		}
		want := streams{base: in.base, pipeIn: i > 0, pipeOut: i+1 < len(p.stages), in: before}
		before = nil
		if st.builtin {
			m.redirects(st, e.PID)
			last = m.ended(e.PID)
			continue
		}
		if first := m.trace.firstStart(e.PID); first != nil && want.pipeOut && first.Files[1].pipe() {
			before = &first.Files[1]
		}
		if in.dash && m.redirects(st, e.PID) == failed {
			last = failed
			continue
		}
		last = m.external(st, e.PID, in, want)
	}
	return last
}

func (t *Trace) firstStart(pid uint32) *Start {
	for _, e := range t.Steps[pid] {
		if e.Kind == Started {
			return &t.Starts[e.Index]
		}
	}
	return nil
}

// external follows a process that becomes a program.
func (m *matching) external(st *stage, pid uint32, in process, want streams) status {
	if !in.dash && m.redirects(st, pid) == failed {
		return failed
	}
	e, ok := m.pass(pid, Started)
	if !ok {
		m.differ("missing", "%s did not start", st)
		return failed
	}
	first := &m.trace.Starts[e.Index]
	switch {
	case !slices.Equal(first.Argv, st.chain[0]):
		m.differ("argv", "%q was started, not %q", first.Argv, st.chain[0])
	case !m.inDir(first.Dir, st.dirs()):
		m.differ("directory", "%q was started in %s, not in %q", first.Argv, first.Dir, st.dirs())
	default:
		m.connected(first, st, want)
	}
	m.started(st, first)
	return m.ended(pid)
}

// started follows a program to what it starts.
func (m *matching) started(st *stage, first *Start) {
	outer, buffered := m.inherited, m.buffered
	defer func() { m.inherited, m.buffered = outer, buffered }()
	m.inherited = append(slices.Clone(outer), st.segment.Assigns...)
	m.environment(first)
	end := first
	for i := 1; i < len(st.chain); i++ {
		if end = m.wrapped(end, func(s *Start) bool { return slices.Equal(s.Argv, st.chain[i]) && s.Files[0].is(end.Files[0]) }); end == nil {
			return
		}
	}
	switch {
	case st.inner != nil:
		m.claim(st.inner, process{pid: end.PID, dash: st.dash, base: end.Files}, st.errexit)
	case len(st.carried) > 0:
		m.carried(st.carried, end)
	case m.runs(st, end):
	case st.segment.Heredoc != nil && end.Read && end.Input != *st.segment.Heredoc:
		m.differ("body", "%q read %q, its here-document is %q", end.Argv, end.Input, *st.segment.Heredoc)
	}
}

// wrapped is what a wrapper started, in its own process or another; nil if it started nothing.
func (m *matching) wrapped(wrapper *Start, is func(*Start) bool) *Start {
	m.buffered = m.buffered || shell.ProgramName(wrapper.Argv[0]) == "stdbuf"
	pid := wrapper.PID
	if e, ok := m.pass(pid, Forked); ok {
		pid = e.PID
	}
	e, ok := m.pass(pid, Started)
	if !ok {
		// Did it find something wrong with its own arguments?
		status, known := m.trace.Ended[wrapper.PID]
		if wrapper.PID == m.trace.Process {
			status, known = m.trace.Status, true
		}
		if known && status.Exited() && status.ExitStatus() != statusWrapper {
			m.differ("missing", "%q started nothing", wrapper.Argv)
		}
		return nil
	}
	s := &m.trace.Starts[e.Index]
	if !is(s) || s.Dir != wrapper.Dir || !s.Files[1].is(wrapper.Files[1]) || !s.Files[2].is(wrapper.Files[2]) {
		m.differ("wrapped", "%q started %q in %s, standard streams %v", wrapper.Argv, s.Argv, s.Dir, s.Files)
		return nil
	}
	m.environment(s)
	return s
}

// statusWrapper is the status of env, nice, nohup, stdbuf and timeout that fail themselves.
const statusWrapper = 125

// carried follows all that xargs or find started.
func (m *matching) carried(commands []carried, carrier *Start) {
	for {
		for own := true; own; { // files of the carrier itself
			_, own = m.pass(carrier.PID, Opened)
		}
		e, ok := m.pass(carrier.PID, Forked)
		if !ok {
			return
		}
		m.passNull(e.PID) // standard input of what xargs starts
		child, ok := m.pass(e.PID, Started)
		if !ok && m.failed(e.PID) {
			continue // "xargs -o" opens the terminal
		}
		if !ok {
			m.differ("missing", "%q made a process that started nothing", carrier.Argv)
			return
		}
		end := &m.trace.Starts[child.Index]
		at := slices.IndexFunc(commands, func(c carried) bool { return starts(end.Argv, c.chain[0]) })
		if at < 0 {
			m.differ("carried", "%q started %q", carrier.Argv, end.Argv)
			return
		}
		m.environment(end)
		for _, argv := range commands[at].chain[1:] {
			if end = m.wrapped(end, func(s *Start) bool { return starts(s.Argv, argv) }); end == nil {
				break
			}
		}
	}
}

// failed reports whether the last that a process did was to open a file that it could not open.
func (m *matching) failed(pid uint32) bool {
	steps := m.trace.Steps[pid]
	return len(steps) > 0 && steps[len(steps)-1].Kind == Opened && m.trace.Opens[steps[len(steps)-1].Index].Err != 0
}

// runs follows a runner to the one command that it starts, if it starts any.
func (m *matching) runs(st *stage, runner *Start) bool {
	if len(st.run) == 0 {
		return false
	}
	e, ok := m.pass(runner.PID, Started)
	if !ok {
		return false
	}
	end := &m.trace.Starts[e.Index]
	at := slices.IndexFunc(st.run, func(c carried) bool { return slices.Equal(end.Argv, c.chain[0]) })
	if at < 0 {
		m.differ("run", "%q started %q, not one of %q", runner.Argv, end.Argv, st.run)
		return true
	}
	m.environment(end)
	for _, argv := range st.run[at].chain[1:] {
		if end = m.wrapped(end, func(s *Start) bool { return slices.Equal(s.Argv, argv) }); end == nil {
			break
		}
	}
	return true
}

// environment compares the variables that a program gets.
func (m *matching) environment(s *Start) {
	want := map[string]string{}
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		want[name] = value
	}
	for _, a := range m.inherited {
		want[a.Name] = a.Value
	}
	for _, entry := range s.Env {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name) || m.buffered && strings.HasPrefix(name, "_STDBUF_") || name == "LD_PRELOAD" && m.buffered {
			continue
		}
		if expected, known := want[name]; !known || value != expected {
			m.differ("environment", "%q got %q", s.Argv, entry)
		}
		delete(want, name)
	}
	for name, value := range want {
		m.differ("environment", "%q did not get %s=%q", s.Argv, name, value)
	}
}

func (m *matching) inDir(real string, claimed []string) bool {
	return slices.ContainsFunc(claimed, func(dir string) bool { return real == dir || real == m.bash.physical(dir) })
}

func (b *Bash) physical(dir string) string {
	real, err := filepath.EvalSymlinks(filepath.Join(b.Root, dir))
	if err != nil {
		return dir
	}
	return strings.TrimPrefix(real, b.realRoot)
}
