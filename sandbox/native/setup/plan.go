// Package setup makes the inside of a native sandbox and locks its door: it runs in the helper process, which is
// toolward-inside and starts in fresh namespaces.
//
// The gateway decides everything beforehand and writes it down as a [Plan]; this package only carries it out, one step
// after the other, and stops at the first that fails. It is part of a program that must stay small, so it uses system
// calls and nothing that formats or reflects. What the helper says to the gateway before [Finish] is true; after it,
// the program inside has the rights of what it confines.
package setup

import "errors"

// Kind says what a [Step] does. The zero value does nothing and is refused.
type Kind uint8

// The kinds of steps. Path is always below the new root and never leads through a symbolic link.
const (
	_ Kind = iota
	// Mkdir makes a directory with Mode, and its parents with 0755.
	Mkdir
	// Symlink makes Path a symbolic link to Source.
	Symlink
	// File writes Data with Mode.
	File
	// Tmpfs mounts a file system in memory of Size bytes; its top has Mode.
	Tmpfs
	// Bind mounts Source, a path of the host, with everything below it.
	Bind
	// Pinned mounts Source like Bind, but only if no symbolic link leads there and it is the file Device, Inode.
	Pinned
	// Detached mounts the descriptor with the index FD that came with the plan: a mount the gateway has prepared.
	Detached
	// Proc mounts the process list of this namespace.
	Proc
	// Terminals mounts a private devpts.
	Terminals
	// Again mounts what is at Path on itself with other attributes. What does not exist, or is a symbolic link, is
	// left as it is.
	Again
	// Mask hides what is at Path: a file becomes empty, a directory too.
	Mask
	// Attributes changes the attributes of the mount at Path.
	Attributes
	// Overlay lays what is at Source/layer/upper, below the new root, over what is at Source/lower, and mounts it at Path. Both
	// go from where they are. Where the kernel does not, nothing is mounted.
	Overlay
	// Loopback brings up the loopback interface.
	Loopback
	// Setting writes Data to a file below /proc/sys that belongs to the namespaces of the sandbox.
	Setting
	// CgroupNamespace makes the cgroup of this process the top of what it sees.
	CgroupNamespace
)

// Attr is what a mount forbids.
type Attr uint8

// The attributes.
const (
	ReadOnly Attr = 1 << iota
	NoSetuid
	NoDevices
	NoExec
)

// Step is one thing to do.
type Step struct {
	Kind          Kind
	Path, Source  string
	Data          []byte
	Mode          uint32
	Size          uint64
	Attr          Attr
	Optional      bool // a source that does not exist is no error
	FD            uint32
	Device, Inode uint64
}

// Right is what Landlock allows below a path.
type Right uint8

// The rights. None of them is the zero value.
const (
	RightRead  Right = iota + 1 // read and execute
	RightWrite                  // everything
	RightUse                    // read and write what exists: devices, /proc
	RightList                   // see the names in directories
)

// Rule is one rule for Landlock. What does not exist needs none.
type Rule struct {
	Path  string
	Right Right
	FD    uint32 // 1 and more: the descriptor before that index counts, not the path
}

// Rlimit is one resource limit, soft and hard. A limit that is lower already stays.
type Rlimit struct {
	Resource uint32
	Value    uint64
}

// Plan is what the helper does. It gets two: Base makes what every sandbox has and waits for the second, so that a
// helper can be started before anybody needs it; Last makes the rest, locks the door and starts the program inside.
type Plan struct {
	Steps []Step

	// Of the second plan only.
	Last        bool
	NoNamespace bool // Landlock and the filter only: there is no root to change
	Hostname    string
	Rlimits     []Rlimit
	Landlock    []Rule
	LandlockABI uint32   // 0 is no Landlock
	LandlockTCP bool     // forbid TCP, where no namespace does
	Filter      []byte   // seccomp program: struct sock_filter, one after the other
	Forward     bool     // run the forwarder to the gateway's proxy
	Forwards    []string // "host:port" that it passes on from the same port
	// Door is the socket where the next gateway comes in, of a sandbox that goes on when its gateway ends: 1 and more, the
	// descriptor before that index. 0 is a sandbox that ends with it.
	Door uint32
}

var errPlan = errors.New("the plan is damaged")

// Encode writes a plan.
func (p *Plan) Encode() []byte {
	var w writer
	w.number(uint64(len(p.Steps)))
	for i := range p.Steps {
		s := &p.Steps[i]
		w.number(uint64(s.Kind))
		w.text(s.Path)
		w.text(s.Source)
		w.bytes(s.Data)
		w.number(uint64(s.Mode))
		w.number(s.Size)
		w.number(uint64(s.Attr))
		w.truth(s.Optional)
		w.number(uint64(s.FD))
		w.number(s.Device)
		w.number(s.Inode)
	}
	w.truth(p.Last)
	w.truth(p.NoNamespace)
	w.text(p.Hostname)
	w.number(uint64(len(p.Rlimits)))
	for _, l := range p.Rlimits {
		w.number(uint64(l.Resource))
		w.number(l.Value)
	}
	w.number(uint64(len(p.Landlock)))
	for _, r := range p.Landlock {
		w.text(r.Path)
		w.number(uint64(r.Right))
		w.number(uint64(r.FD))
	}
	w.number(uint64(p.LandlockABI))
	w.truth(p.LandlockTCP)
	w.bytes(p.Filter)
	w.truth(p.Forward)
	w.number(uint64(len(p.Forwards)))
	for _, to := range p.Forwards {
		w.text(to)
	}
	w.number(uint64(p.Door))
	return w
}

// Decode reads a plan.
func Decode(data []byte) (*Plan, error) {
	r := reader{rest: data}
	p := &Plan{Steps: make([]Step, r.count())}
	for i := range p.Steps {
		p.Steps[i] = Step{
			Kind: Kind(r.number()), Path: r.text(), Source: r.text(), Data: r.bytes(), Mode: uint32(r.number()),
			Size: r.number(), Attr: Attr(r.number()), Optional: r.truth(), FD: uint32(r.number()),
			Device: r.number(), Inode: r.number(),
		}
	}
	p.Last, p.NoNamespace, p.Hostname = r.truth(), r.truth(), r.text()
	p.Rlimits = make([]Rlimit, r.count())
	for i := range p.Rlimits {
		p.Rlimits[i] = Rlimit{Resource: uint32(r.number()), Value: r.number()}
	}
	p.Landlock = make([]Rule, r.count())
	for i := range p.Landlock {
		p.Landlock[i] = Rule{Path: r.text(), Right: Right(r.number()), FD: uint32(r.number())}
	}
	p.LandlockABI, p.LandlockTCP, p.Filter, p.Forward = uint32(r.number()), r.truth(), r.bytes(), r.truth()
	p.Forwards = make([]string, r.count())
	for i := range p.Forwards {
		p.Forwards[i] = r.text()
	}
	p.Door = uint32(r.number())
	if r.bad || len(r.rest) != 0 {
		return nil, errPlan
	}
	return p, nil
}

type writer []byte

func (w *writer) number(n uint64) {
	for n >= 0x80 {
		*w = append(*w, byte(n)|0x80)
		n >>= 7
	}
	*w = append(*w, byte(n))
}

func (w *writer) bytes(b []byte) { w.number(uint64(len(b))); *w = append(*w, b...) }
func (w *writer) text(s string)  { w.number(uint64(len(s))); *w = append(*w, s...) }

func (w *writer) truth(b bool) {
	if b {
		w.number(1)
	} else {
		w.number(0)
	}
}

// reader reads what writer wrote. After an error everything it reads is zero.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) number() uint64 {
	var n uint64
	for shift := 0; shift < 64; shift += 7 {
		if len(r.rest) == 0 {
			break
		}
		b := r.rest[0]
		r.rest = r.rest[1:]
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	r.bad, r.rest = true, nil
	return 0
}

// count reads how many elements follow; each needs a byte at least.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return 0
	}
	return int(n)
}

func (r *reader) bytes() []byte {
	n := r.count()
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) text() string { return string(r.bytes()) }
func (r *reader) truth() bool  { return r.number() == 1 }
