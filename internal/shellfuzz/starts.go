//go:build linux

package shellfuzz

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

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
