//go:build unix

package job

import (
	"fmt"
	"os"
	"syscall"
)

// status is how a member of a pipeline ended.
type status struct {
	known  bool
	code   int
	signal syscall.Signal
}

func exited(code int) status { return status{known: true, code: code} }

func signaled(signal syscall.Signal) status {
	return status{known: true, code: 128 + int(signal), signal: signal}
}

// member is a segment of a pipeline that starts or runs.
type member struct {
	*Segment
	programs []*program // opened and compared; none for a cd
	target   *os.File   // of a cd
	streams  [3]*os.File
	owned    []*os.File // to be closed once it has started
	process  *os.Process
	away     Started // in the place of process, if it was started elsewhere
	status   status  // known if it has ended or did not start
}

// runs reports whether a program of the member was started.
func (m *member) runs() bool { return m.process != nil || m.away != nil }

func (m *member) close() {
	for _, p := range m.programs {
		p.close()
	}
	if m.target != nil {
		_ = m.target.Close() // nothing was written
	}
	m.closeStreams()
}

func (m *member) closeStreams() {
	for _, f := range m.owned {
		_ = f.Close() // the program has its own; nothing was written through ours
	}
	m.owned = nil
}

func (m *member) compare() error {
	for _, p := range m.programs {
		if err := p.compare(); err != nil {
			return err
		}
	}
	return nil
}

// openDirectory opens the directory of a cd.
func (m *member) openDirectory() error {
	if m.Chdir == nil || m.status.known {
		return nil
	}
	dir, err := m.Chdir.Open()
	if err != nil {
		reported, refusal := report(m.Chdir.Name, err)
		if refusal != nil {
			return refusal
		}
		complain(m.streams[2], fmt.Errorf("cd: %w", reported))
		m.status = exited(statusFailed)
	}
	m.target = dir
	return nil
}

// connect joins neighbors by pipes.
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

func statusOf(state *os.ProcessState, err error) status {
	if err != nil {
		return exited(statusNotExecutable)
	}
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return signaled(s.Signal())
	}
	return exited(state.ExitCode())
}

// complain writes a message where the program's own would go. Nobody may be reading any more.
func complain(to *os.File, err error) {
	fmt.Fprintf(to, "toolward: %v\n", err) // see above
}
