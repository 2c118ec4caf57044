//go:build linux

package shellfuzz

import (
	"fmt"
	"slices"
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
