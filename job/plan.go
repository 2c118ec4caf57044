package job

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Plan is a command that may run. It is used once: nothing in it is looked up again but through its Open functions.
type Plan struct {
	Dir      Directory
	Env      []string // the whole environment, NAME=value
	Segments []Segment
	// Starting, if it is there, starts every program: it calls start once and returns what that returned. Who collects
	// all children that end, as the first process of a container must, learns in time which ones are the job's.
	Starting func(start func() (*os.Process, error)) (*os.Process, error)
}

// Segment is one simple command.
type Segment struct {
	Programs  []Program // what it starts: the wrappers, outermost first, and the program. None if it is a cd
	Argv      []string  // words, expanded; the ones where programs stand are replaced by their paths
	Env       []string  // assignments for this command alone, NAME=value
	Redirects []Redirect
	Chdir     *Directory // it is "cd" to there
	Dir       string     // path of the directory that it was judged for: a cd that fails must not make it run elsewhere
	Op        Operator   // how the next segment follows; None for the last, unless the text ends in ";"

	// Elsewhere, if it is there, starts the program, in a place of its own, in place of the job.
	Elsewhere Elsewhere

	// Again, if it is there, looks once more at what the segment was judged by, just before it starts: a part before it
	// may have made a link. An error is a refusal and ends the job.
	Again func() error
}

// Operator joins two segments. The texts are those of package shell.
type Operator string

// The operators.
const (
	None     Operator = ""
	Pipe     Operator = "|"
	And      Operator = "&&"
	Or       Operator = "||"
	Sequence Operator = ";"
)

// Program is an executable file that was resolved and judged.
type Program struct {
	Path     string   // absolute, as found in PATH: programs with many names look at it
	Identity Identity // of the file behind it
	At       int      // where it stands in Argv
}

// Identity tells a file, and a state of it, from all others. It has the fields of place.Stamp.
type Identity struct {
	Device, Inode     uint64
	Size              int64
	Modified, Changed int64 // nanoseconds since 1970
}

// Directory is a directory that was judged.
type Directory struct {
	Name string // for messages, as it was written
	Path string // absolute; becomes PWD
	// Open opens it and compares it with what was judged. The job closes it.
	Open func() (*os.File, error)
}

// Redirect changes one standard stream of a segment, or two. Make it with [Input], [Output], [OutputBoth], [Copy] and
// [Document].
type Redirect struct {
	kind redirectKind
	fd   int    // the stream that is changed
	from int    // copyOf: the stream that it becomes a copy of
	name string // file: for messages
	open func() (*os.File, error)
	body string // document
}

type redirectKind int

const (
	toFile redirectKind = iota + 1
	bothToFile
	copyOf
	document
)

// Input is "fd<name". open gives the file that was judged, open for reading, and never waits; the job closes it.
//
// An error of the system that a shell would report (an [io/fs.PathError] with the system's code: it does not exist, it
// is a directory, permission denied …) makes a message and status 1. Every other error is a refusal and ends the job.
func Input(fd int, name string, open func() (*os.File, error)) Redirect {
	return Redirect{kind: toFile, fd: fd, name: name, open: open}
}

// Output is "fd>name", "fd>|name" and "fd>>name": open gives the file, open for writing, emptied or at its end (with
// O_APPEND). Otherwise it is as with [Input].
func Output(fd int, name string, open func() (*os.File, error)) Redirect {
	return Redirect{kind: toFile, fd: fd, name: name, open: open}
}

// OutputBoth is "&>name" and "&>>name": standard output and error go there.
func OutputBoth(name string, open func() (*os.File, error)) Redirect {
	return Redirect{kind: bothToFile, fd: 1, name: name, open: open}
}

// Copy is "fd>&from".
func Copy(fd, from int) Redirect { return Redirect{kind: copyOf, fd: fd, from: from} }

// Document is a here-document on standard input.
func Document(body string) Redirect {
	return Redirect{kind: document, name: "here-document", body: body}
}

// OpenNull opens /dev/null, for redirections to or from there.
func OpenNull() (*os.File, error) { return os.OpenFile(os.DevNull, os.O_RDWR, 0) }

// Streams are the standard streams that a job starts with. Start takes them over, and closes them when no program
// will get them any more.
type Streams struct {
	In, Out, Err *os.File // nil is /dev/null; the same file may stand twice
	Terminal     bool     // they are a terminal, which the only program of the job gets as its controlling terminal
}

func (s Streams) close() {
	for _, f := range []*os.File{s.In, s.Out, s.Err} {
		if f != nil {
			_ = f.Close() // the same file may stand twice
		}
	}
}

// ErrTerminal says that a command of more than one program cannot have a terminal.
var ErrTerminal = errors.New("a terminal is given to one program only")

// maxSegments bounds the processes of one job. Analysis accepts fewer.
const maxSegments = 4096

// check refuses a plan that was not filled completely: a missing part must not become a default.
func (p *Plan) check(streams Streams) error {
	if len(p.Segments) == 0 || len(p.Segments) > maxSegments {
		return fmt.Errorf("a job has 1 to %d segments, not %d", maxSegments, len(p.Segments))
	}
	if err := p.Dir.check(); err != nil {
		return fmt.Errorf("the working directory: %w", err)
	}
	if err := checkVariables(p.Env); err != nil {
		return err
	}
	for i := range p.Segments {
		if err := p.Segments[i].check(i == len(p.Segments)-1); err != nil {
			return fmt.Errorf("segment %d: %w", i+1, err)
		}
	}
	if streams.Terminal && !p.Alone() {
		return ErrTerminal
	}
	return nil
}

// Alone reports whether the plan starts one program at most, which can then have a terminal.
func (p *Plan) Alone() bool {
	programs := 0
	for i := range p.Segments {
		if p.Segments[i].Chdir == nil {
			programs++
		}
	}
	return programs <= 1
}

// name is what messages call the segment.
func (s *Segment) name() string {
	if s.Chdir != nil {
		return "cd"
	}
	return s.Programs[0].Path
}

func (s *Segment) check(last bool) error {
	switch s.Op {
	case Pipe, And, Or:
		if last {
			return fmt.Errorf("nothing follows %q", s.Op)
		}
	case None:
		if !last {
			return errors.New("no operator before the next one")
		}
	case Sequence:
	default:
		return fmt.Errorf("unknown operator %q", s.Op)
	}
	if !filepath.IsAbs(s.Dir) {
		return errors.New("the directory that it was judged for is not known")
	}
	if err := checkVariables(s.Env); err != nil {
		return err
	}
	for _, r := range s.Redirects {
		if err := r.check(); err != nil {
			return err
		}
	}
	if s.Chdir != nil {
		if len(s.Programs) > 0 {
			return errors.New("it is a cd and has programs")
		}
		return s.Chdir.check()
	}
	return s.checkPrograms()
}

func (s *Segment) checkPrograms() error {
	for _, word := range s.Argv {
		if strings.IndexByte(word, 0) >= 0 {
			return errors.New("a word contains a NUL character")
		}
	}
	if len(s.Programs) == 0 || s.Programs[0].At != 0 {
		return errors.New("its first word is no program")
	}
	for i, p := range s.Programs {
		switch {
		case p.At >= len(s.Argv) || i > 0 && p.At <= s.Programs[i-1].At:
			return fmt.Errorf("program %s does not stand among its words", p.Path)
		case !filepath.IsAbs(p.Path) || strings.IndexByte(p.Path, 0) >= 0:
			return fmt.Errorf("program %q is no absolute path", p.Path)
		case p.Identity == Identity{}:
			return fmt.Errorf("the identity of %s is not known", p.Path)
		}
	}
	return nil
}

func (d *Directory) check() error {
	if d.Open == nil || !filepath.IsAbs(d.Path) || strings.IndexByte(d.Path, 0) >= 0 {
		return errors.New("no directory that was judged")
	}
	return nil
}

func (r *Redirect) check() error {
	ok := false
	switch r.kind {
	case toFile, bothToFile:
		ok = r.open != nil && r.fd >= 0 && r.fd <= 2
	case copyOf:
		ok = r.fd >= 0 && r.fd <= 2 && r.from >= 0 && r.from <= 2
	case document:
		ok = true
	}
	if !ok {
		return errors.New("a redirection is not complete")
	}
	return nil
}

func checkVariables(list []string) error {
	for _, v := range list {
		if strings.IndexByte(v, '=') < 1 || strings.IndexByte(v, 0) >= 0 {
			return errors.New("a variable is not NAME=value")
		}
	}
	return nil
}
