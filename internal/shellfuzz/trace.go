//go:build linux

package shellfuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"syscall"
)

// file tells files, pipes and devices apart, whatever they are called.
type file struct{ dev, ino, mode uint64 }

func (f file) pipe() bool { return f.mode&syscall.S_IFMT == syscall.S_IFIFO }

func (f file) is(other file) bool { return f.dev == other.dev && f.ino == other.ino }

// Start is a program that bash started, or would have.
type Start struct {
	PID   uint32
	PPID  uint32
	Files [3]file // the standard streams
	Path  string
	Dir   string
	Argv  []string
	Env   []string
	Input string // what it read
	Read  bool   // it read anything at all
}

// Open is a file that bash opened.
type Open struct {
	PID   uint32
	Path  string // as given
	Dir   string
	Flags uint32
	Err   syscall.Errno
	File  file
}

// Writes reports whether the file was opened to be changed, or created.
func (o *Open) Writes() bool {
	return o.Flags&(syscall.O_WRONLY|syscall.O_RDWR|syscall.O_CREAT|syscall.O_TRUNC) != 0
}

func (o *Open) appends() bool { return o.Flags&syscall.O_APPEND != 0 }

// Event is one step of one process.
type Event struct {
	Kind  EventKind
	Index int    // of a start or an open file, in the trace
	PID   uint32 // of a process that was forked
}

// EventKind says what a process did.
type EventKind int

// The kinds of events.
const (
	Forked EventKind = iota + 1
	Started
	Opened
)

// Trace is what bash did with a text.
type Trace struct {
	Process  uint32 // the first one, which was given the text
	Starts   []Start
	Opens    []Open
	Steps    map[uint32][]Event            // of every process, in order
	Ended    map[uint32]syscall.WaitStatus // of processes that were waited for
	Status   syscall.WaitStatus
	TimedOut bool // it was ended
	Left     bool // it left processes running
}

var errTrace = errors.New("the trace of bash cannot be read")

func readTrace(shared []byte, answer [8]byte) (*Trace, error) {
	order := binary.LittleEndian
	flags := order.Uint32(answer[4:])
	t := &Trace{Steps: map[uint32][]Event{}, Ended: map[uint32]syscall.WaitStatus{}}
	t.Status = syscall.WaitStatus(order.Uint32(answer[:]))
	t.Process = order.Uint32(shared[20:])
	t.TimedOut, t.Left = flags&1 != 0, flags&2 != 0
	used, overflow := order.Uint32(shared[4:]), order.Uint32(shared[12:])
	log := shared[headerSize+textSize:]
	if overflow != 0 || int(used) > len(log) {
		return nil, errTrace
	}
	for log = log[:used]; len(log) > 0; {
		if len(log) < 13 {
			return nil, errTrace
		}
		length := order.Uint32(log)
		if length < 13 || int(length) > len(log) {
			return nil, errTrace
		}
		r := reader{rest: log[13:length]}
		pid, ppid := order.Uint32(log[5:]), order.Uint32(log[9:])
		switch log[4] {
		case 'X':
			t.step(pid, Event{Kind: Started, Index: len(t.Starts)})
			t.Starts = append(t.Starts, r.start(pid, ppid))
		case 'O':
			t.step(pid, Event{Kind: Opened, Index: len(t.Opens)})
			t.Opens = append(t.Opens, r.open(pid))
		case 'F':
			t.step(pid, Event{Kind: Forked, PID: r.number()})
		case 'W':
			t.Ended[r.number()] = syscall.WaitStatus(r.number())
		case 'I':
			t.input(pid, string(r.bytes(int(r.number()))))
		}
		if r.short {
			return nil, errTrace
		}
		log = log[length:]
	}
	return t, nil
}

func (t *Trace) step(pid uint32, e Event) { t.Steps[pid] = append(t.Steps[pid], e) }

func (t *Trace) input(pid uint32, text string) {
	for i := len(t.Starts) - 1; i >= 0; i-- {
		if t.Starts[i].PID == pid {
			t.Starts[i].Input, t.Starts[i].Read = text, true
			return
		}
	}
}

// reader takes a record apart.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.short = true
		return make([]byte, min(max(n, 0), 64))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) number() uint32 { return binary.LittleEndian.Uint32(r.bytes(4)) }

func (r *reader) long() uint64 { return binary.LittleEndian.Uint64(r.bytes(8)) }

func (r *reader) file() file { return file{r.long(), r.long(), r.long()} }

func (r *reader) text() string {
	n := bytes.IndexByte(r.rest, 0)
	if n < 0 {
		r.short = true
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n+1:]
	return s
}

func (r *reader) texts() []string {
	n := int(r.number())
	var list []string
	for ; n > 0 && !r.short; n-- {
		list = append(list, r.text())
	}
	return list
}

func (r *reader) start(pid, ppid uint32) Start {
	s := Start{PID: pid, PPID: ppid}
	for i := range s.Files {
		s.Files[i] = r.file()
	}
	s.Path, s.Dir, s.Argv, s.Env = r.text(), r.text(), r.texts(), r.texts()
	return s
}

func (r *reader) open(pid uint32) Open {
	o := Open{PID: pid, Flags: r.number()}
	o.Err = syscall.Errno(r.number())
	o.File, o.Path, o.Dir = r.file(), r.text(), r.text()
	return o
}
