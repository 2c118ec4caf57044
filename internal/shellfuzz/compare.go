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
	Class  string // in one word, for minimising
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
	var skipped []bool
	var first *Difference
	for range maxChoices {
		m := &matching{bash: b, trace: trace, taken: make([]bool, len(trace.Starts)), skipped: skipped}
		m.all(claim)
		if m.difference == nil {
			return nil
		}
		if first == nil {
			first = m.difference
		}
		// Where it was not known whether a pipeline ran, it may not have: the last such choice is changed.
		last := slices.Index(m.skipped, false)
		for i, skip := range m.skipped {
			if !skip {
				last = i
			}
		}
		if last < 0 {
			break
		}
		skipped = append(slices.Clone(m.skipped[:last]), true)
	}
	return first
}

// maxChoices bounds how often a claim is compared with other choices of what ran.
const maxChoices = 32

func (m *matching) all(claim *Claim) {
	m.claim(claim, m.bash.base, 0)
	for i, taken := range m.taken {
		if s := &m.trace.Starts[i]; m.difference == nil && !taken {
			m.differ("start", "%q was started in %s, standard streams %v", s.Argv, s.Dir, s.Files)
		}
	}
	m.files()
}

// matching finds for every claimed program its start.
type matching struct {
	bash       *Bash
	trace      *Trace
	taken      []bool
	skipped    []bool // for every pipeline that need not have run, in order: that it did not
	choices    int
	inherited  []shell.Assign // variables of the shells around
	mayOpen    []target       // that redirections may open
	difference *Difference
}

// target is a file of a redirection.
type target struct {
	dir, path     string
	reads, writes bool
}

func (m *matching) differ(class, format string, args ...any) {
	if m.difference == nil {
		m.difference = &Difference{class, fmt.Sprintf(format, args...)}
	}
}

// status is how a pipeline ended.
type status int

const (
	succeeded status = iota
	failed
	unknown
)

// claim matches pipelines in their order. It returns the status and where the next start may be.
func (m *matching) claim(c *Claim, base [3]file, from int) (status, int) {
	last := succeeded
	for _, p := range c.pipelines {
		runs := p.after == shell.Sequence || p.after == shell.And && last == succeeded || p.after == shell.Or && last == failed
		if !runs && (last != unknown || m.skips()) {
			continue
		}
		state, next, ran := m.pipeline(&p, base, from, runs)
		if ran {
			last, from = state, next
		}
		if m.difference != nil {
			return unknown, from
		}
	}
	return last, from
}

// skips is the next choice for a pipeline that need not have run.
func (m *matching) skips() bool {
	if m.choices == len(m.skipped) {
		m.skipped = append(m.skipped, false)
	}
	m.choices++
	return m.skipped[m.choices-1]
}

// pipeline matches the stages of one pipeline. If it need not run, nothing may have started.
func (m *matching) pipeline(p *pipeline, base [3]file, from int, must bool) (last status, next int, ran bool) {
	next = from
	m.targets(p)
	var before *file // pipe from the stage before, if it is known
	for i := range p.stages {
		st := &p.stages[i]
		want := streams{base: base, pipeIn: i > 0, pipeOut: i+1 < len(p.stages), in: before}
		at := m.find(st.chain[0], st, want, from)
		before = nil
		if at < 0 {
			state, why := m.notStarted(st)
			if !why && must {
				m.differ("missing", "%s did not start", st)
			}
			last = state
			if !why {
				last = unknown
			}
			ran = ran || why
			continue
		}
		ran = true
		if want.pipeOut && m.trace.Starts[at].Files[1].pipe() {
			before = &m.trace.Starts[at].Files[1]
		}
		last, at = m.started(st, at, base)
		next = max(next, at+1)
	}
	return last, next, ran
}

// started follows a program to what it starts.
func (m *matching) started(st *stage, at int, base [3]file) (status, int) {
	m.taken[at] = true
	first := &m.trace.Starts[at]
	m.environment(st, first)
	end := first
	for i, argv := range st.chain[1:] {
		open := st.open && i == len(st.chain)-2
		next := m.follow(argv, end, at+1, open)
		if open {
			at = max(at, next)
			return unknown, at
		}
		if next < 0 { // the wrapper found something wrong with its own arguments
			return failed, at
		}
		m.taken[next] = true
		end, at = &m.trace.Starts[next], next
	}
	if st.inner != nil {
		outer := m.inherited
		m.inherited = append(slices.Clone(outer), st.segment.Assigns...)
		state, next := m.claim(st.inner, end.Files, at+1)
		m.inherited = outer
		return state, max(at, next-1)
	}
	if st.segment.Heredoc != nil && end.Input != st.body {
		m.differ("body", "%q read %q, its here-document is %q", end.Argv, end.Input, st.body)
	}
	if strings.Contains(end.Argv[0], "false") {
		return failed, at
	}
	return succeeded, at
}

// follow finds what a wrapper started; all of them, and the last, if it is open.
func (m *matching) follow(argv []string, wrapper *Start, from int, open bool) int {
	last := -1
	for i := from; i < len(m.trace.Starts); i++ {
		s := &m.trace.Starts[i]
		if m.taken[i] || s.Dir != wrapper.Dir || !s.Files[1].is(wrapper.Files[1]) || !s.Files[2].is(wrapper.Files[2]) {
			continue
		}
		if open && s.PPID == wrapper.PID && len(s.Argv) >= len(argv) && slices.Equal(s.Argv[:len(argv)], argv) {
			m.taken[i] = true
			last = i
		} else if !open && slices.Equal(s.Argv, argv) && s.Files[0].is(wrapper.Files[0]) {
			return i
		}
	}
	return last
}

// notStarted says why a command need not have started anything, and how it ended then.
func (m *matching) notStarted(st *stage) (status, bool) {
	for _, o := range m.trace.Opens {
		if o.Err != 0 && slices.ContainsFunc(st.segment.Redirs, func(r shell.Redirect) bool { return r.Op != ">&" && r.Target == o.Path }) {
			return failed, true
		}
	}
	if !st.builtin {
		return unknown, false
	}
	switch st.chain[0][0] {
	case "true", ":":
		return succeeded, true
	case "false":
		return failed, true
	}
	return unknown, true
}

// streams are what the standard streams of a stage must be, before its redirections.
type streams struct {
	base            [3]file
	pipeIn, pipeOut bool
	in              *file
}

// find finds the start of a program.
func (m *matching) find(argv []string, st *stage, want streams, from int) int {
	if st.builtin {
		return -1
	}
	for i := from; i < len(m.trace.Starts); i++ {
		s := &m.trace.Starts[i]
		if !m.taken[i] && slices.Equal(s.Argv, argv) && m.sameDir(s.Dir, st.dir) && m.connected(s, st, want) {
			return i
		}
	}
	return -1
}

func (m *matching) sameDir(real, claimed string) bool {
	return real == claimed || real == m.bash.physical(claimed)
}

func (b *Bash) physical(dir string) string {
	real, err := filepath.EvalSymlinks(filepath.Join(b.Root, dir))
	if err != nil {
		return dir
	}
	root, _ := filepath.EvalSymlinks(b.Root)
	return strings.TrimPrefix(real, root)
}

// connected reports whether the standard streams of a program are what pipes, redirections and here-documents say.
func (m *matching) connected(s *Start, st *stage, want streams) bool {
	var expect [3]func(file) bool
	for i := range expect {
		expect[i] = want.base[i].is
	}
	if want.pipeIn {
		expect[0] = func(f file) bool { return f.pipe() && (want.in == nil || f.is(*want.in)) }
	}
	if want.pipeOut {
		expect[1] = file.pipe
	}
	if st.segment.Heredoc != nil {
		expect[0] = func(file) bool { return true } // compared by what it reads
	}
	same := [3]int{0, 1, 2}
	for i, r := range st.segment.Redirs {
		fds, to := descriptors(r)
		if to >= 0 {
			expect[fds[0]], same[fds[0]] = expect[to], same[to]
			continue
		}
		opened := func(f file) bool { return m.opened(r, f) }
		for _, fd := range fds {
			expect[fd], same[fd] = opened, i+10
		}
	}
	for i, ok := range expect {
		if !ok(s.Files[i]) {
			return false
		}
		for j := range i {
			if same[i] == same[j] && !s.Files[i].is(s.Files[j]) {
				return false
			}
		}
	}
	return true
}

// descriptors are those that a redirection sets, and the one that it copies, or -1.
func descriptors(r shell.Redirect) (set []int, from int) {
	fd := 1
	if r.Reads() {
		fd = 0
	}
	if r.FD != "" {
		fd = int(r.FD[0] - '0')
	}
	switch r.Op {
	case ">&":
		return []int{fd}, int(r.Target[0] - '0')
	case "&>", "&>>":
		return []int{1, 2}, -1
	}
	return []int{fd}, -1
}

// opened reports whether the target of a redirection was opened as f.
func (m *matching) opened(r shell.Redirect, f file) bool {
	for _, o := range m.trace.Opens {
		if o.Path == r.Target && o.Err == 0 && o.File.is(f) && o.Writes() == r.Writes() &&
			(o.Flags&syscall.O_APPEND != 0) == strings.HasSuffix(r.Op, ">>") {
			return true
		}
	}
	return false
}

// environment compares the variables that a program gets.
func (m *matching) environment(st *stage, s *Start) {
	want := map[string]string{}
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		want[name] = value
	}
	for _, a := range append(slices.Clone(m.inherited), st.segment.Assigns...) {
		want[a.Name] = a.Value
	}
	for _, entry := range s.Env {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name) {
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

// targets notes what the redirections of a pipeline may open.
func (m *matching) targets(p *pipeline) {
	for i := range p.stages {
		st := &p.stages[i]
		for _, r := range st.segment.Redirs {
			if r.Op != ">&" {
				m.mayOpen = append(m.mayOpen, target{st.dir, r.Target, r.Reads(), r.Writes()})
			}
		}
	}
}

// files compares what bash opened with the redirections that are claimed.
func (m *matching) files() {
	var own []uint32 // processes of programs, which open what they like
	for _, s := range m.trace.Starts {
		if !slices.Contains(shells, s.Argv[0]) {
			own = append(own, s.PID)
		}
	}
	for _, o := range m.trace.Opens {
		known := slices.ContainsFunc(m.mayOpen, func(t target) bool {
			return t.path == o.Path && m.sameDir(o.Dir, t.dir) && (t.writes || !o.Writes()) && (t.reads || o.Writes())
		})
		started := slices.ContainsFunc(m.trace.Starts[:min(o.After, len(m.trace.Starts))], func(s Start) bool { return s.PID == o.PID && slices.Contains(own, s.PID) })
		if !known && !started && !ownFile(&o) {
			m.differ("file", "%s was opened in %s, flags %#x", o.Path, o.Dir, o.Flags)
		}
	}
}

// ownFile reports whether a shell opens a file for itself: the terminal, what holds a here-document, and what login
// shells read first.
func ownFile(o *Open) bool {
	switch o.Path {
	case "/dev/tty":
		return true
	case "/dev/null", "/etc/profile", homeDir + "/.bash_profile", homeDir + "/.bash_login", homeDir + "/.profile":
		return !o.Writes()
	}
	return strings.HasPrefix(o.Path, "/tmp/sh-thd")
}
