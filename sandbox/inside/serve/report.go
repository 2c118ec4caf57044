//go:build linux

package serve

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
	"github.com/toolward/toolward/sandbox/task"
)

// report is where a command says in which directory it ended. The zero value is of one that says nothing.
type report struct {
	read, write int
	open        bool
}

// reports opens the descriptor of a command's report, where it has one, behind its standard streams.
func (st *stream) reports(command *task.Command, standard []uintptr) (r *report, files []uintptr, err error) {
	r = &report{}
	if !command.Reports {
		return r, standard, nil
	}
	if r.read, r.write, err = pipe(); err != nil {
		return r, nil, err
	}
	r.open = true
	_ = unix.SetNonblock(r.read, true) // otherwise what the command left behind could hold us up
	files = append(files, standard...)
	for len(files) < task.ReportFD {
		files = append(files, ^uintptr(0)) // closed
	}
	return r, append(files, uintptr(r.write)), nil
}

// started closes the end that the command has now.
func (r *report) started() {
	if r.open {
		_ = unix.Close(r.write) // nothing was written
	}
}

// directory is what a command that has ended says, if it is a directory by its form. Whoever asked does not believe it.
func (r *report) directory() string {
	if !r.open {
		return ""
	}
	said := make([]byte, wire.MaxPath+1)
	n, err := unix.Read(r.read, said)
	if err != nil || n <= 0 || n > wire.MaxPath {
		return ""
	}
	dir := strings.TrimSuffix(string(said[:n]), "\n")
	if !path.IsAbs(dir) || path.Clean(dir) != dir || strings.ContainsRune(dir, 0) {
		return ""
	}
	return dir
}

func (r *report) close() {
	if r.open {
		_ = unix.Close(r.read) // it was only read
	}
}
