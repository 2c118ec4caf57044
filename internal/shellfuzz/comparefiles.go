//go:build linux

package shellfuzz

import (
	"os"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// redirects follows the files that a process opens for a stage, up to one that it cannot open.
func (m *matching) redirects(st *stage, pid uint32) status {
	if doc := st.segment.Heredoc; doc != nil && *doc == "" {
		defer m.passNull(pid) // which is what bash reads for an empty document
	}
	for _, r := range st.segment.Redirs {
		if r.Op == ">&" {
			continue
		}
		if doc := st.segment.Heredoc; doc != nil && *doc == "" {
			m.passNull(pid)
		}
		e, ok := m.pass(pid, Opened)
		if !ok {
			m.differ("missing", "%s did not open %s", st, r.Target)
			continue
		}
		o := &m.trace.Opens[e.Index]
		if o.Path != r.Target || o.Writes() != r.Writes() || o.appends() != strings.HasSuffix(r.Op, ">>") || !m.inDir(o.Dir, st.dirs()) {
			m.differ("file", "%s was opened in %s, flags %#x, not %s for %s", o.Path, o.Dir, o.Flags, r, st)
		}
		if o.Err != 0 {
			return failed
		}
	}
	return succeeded
}

// passNull takes the next step of a process if it opens /dev/null for reading.
func (m *matching) passNull(pid uint32) {
	if e, ok := m.next(pid); ok && e.Kind == Opened && m.trace.Opens[e.Index].Path == os.DevNull && !m.trace.Opens[e.Index].Writes() {
		m.done[pid]++
	}
}

// files looks for what shells opened besides the files of redirections. Programs open what they like.
func (m *matching) files() {
	for i := range m.trace.Opens {
		if o := &m.trace.Opens[i]; !m.accounted(o.PID, Opened, i) && !ownFile(o) && !m.byProgram(o) {
			m.differ("file", "%s was opened in %s, flags %#x", o.Path, o.Dir, o.Flags)
		}
	}
}

// byProgram reports whether a process had become a program that is no shell when it opened a file.
func (m *matching) byProgram(o *Open) bool {
	program := false
	for _, e := range m.trace.Steps[o.PID] {
		switch {
		case e.Kind == Started:
			program = !slices.Contains(shells, shell.ProgramName(m.trace.Starts[e.Index].Argv[0]))
		case e.Kind == Opened && &m.trace.Opens[e.Index] == o:
			return program
		}
	}
	return false
}

// ownFile reports whether a shell opens a file for itself: the terminal, what holds a here-document, and what login
// shells read first.
func ownFile(o *Open) bool {
	switch o.Path {
	case "/dev/tty":
		return true
	case "/etc/profile", homeDir + "/.bash_profile", homeDir + "/.bash_login", homeDir + "/.profile":
		return !o.Writes()
	}
	return strings.HasPrefix(o.Path, "/tmp/sh-thd")
}

// streams are what the standard streams of a stage must be, before its redirections.
type streams struct {
	base            [3]file
	pipeIn, pipeOut bool
	in              *file
}

// connected compares the standard streams of a program with what pipes, redirections and here-documents say.
func (m *matching) connected(s *Start, st *stage, want streams) {
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
		fds, to := descriptors(r.Redirect)
		if to >= 0 {
			expect[fds[0]], same[fds[0]] = expect[to], same[to]
			continue
		}
		opened := func(f file) bool { return m.opened(r.Redirect, f) }
		for _, fd := range fds {
			expect[fd], same[fd] = opened, i+10
		}
	}
	for i, ok := range expect {
		wrong := !ok(s.Files[i])
		for j := range i {
			wrong = wrong || same[i] == same[j] && !s.Files[i].is(s.Files[j])
		}
		if wrong {
			m.differ("stream", "%q has a standard stream %d that is not claimed: %v", s.Argv, i, s.Files)
		}
	}
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
	return slices.ContainsFunc(m.trace.Opens, func(o Open) bool {
		return o.Path == r.Target && o.Err == 0 && o.File.is(f) && o.Writes() == r.Writes() && o.appends() == strings.HasSuffix(r.Op, ">>")
	})
}
