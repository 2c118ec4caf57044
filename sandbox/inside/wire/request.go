package wire

import (
	"os"

	"github.com/toolward/toolward/sandbox/task"
)

// Bounds of what messages hold.
const (
	maxText     = MaxPayload
	maxList     = 1 << 16
	maxReported = 1 << 10 // bytes of a message for people
	MaxEntries  = 10_000  // of a directory in one answer
	maxName     = 255
	MaxPorts    = 256 // in one answer
	maxSegments = 4096
)

// Operation is what a request asks for.
type Operation uint8

// The operations.
const (
	OpStart Operation = iota + 1
	OpStat
	OpRead
	OpWrite
	OpMkdir
	OpRemove
	OpRename
	OpList
	OpStats
	OpPorts
	OpConnect
)

// Call is a request other than OpStart. What an operation does not need is zero and not sent.
type Call struct {
	Op      Operation
	Path    string
	Target  string // OpRename
	Follow  bool   // OpStat
	Remove  task.RemoveOptions
	Offset  int64 // OpRead
	Limit   int64 // OpRead: bytes; OpList: entries
	Exact   bool  // OpList
	Options task.WriteOptions
	Data    []byte // OpWrite: the beginning
	More    bool   // OpWrite: more follows as Stdin
	Port    uint16 // OpConnect
}

// pathless reports whether an operation is about no file.
func (o Operation) pathless() bool { return o == OpStats || o == OpPorts || o == OpConnect }

// Encode encodes it.
func (c *Call) Encode() []byte {
	e := make(Encoder, 0, 64+len(c.Path)+len(c.Data))
	e.Byte(byte(c.Op))
	if !c.Op.pathless() {
		e.String(c.Path)
	}
	switch c.Op {
	case OpStat:
		e.Bool(c.Follow)
	case OpRead:
		e.Int64(c.Offset)
		e.Int64(c.Limit)
	case OpWrite:
		e.options(c.Options)
		e.Bool(c.More)
		e = append(e, c.Data...)
	case OpRemove:
		e.Bool(c.Remove.Recursive)
		e.Bool(c.Remove.Exact)
		e.unchanged(c.Remove.Unchanged)
	case OpRename:
		e.String(c.Target)
	case OpList:
		e.Int64(c.Limit)
		e.Bool(c.Exact)
	case OpConnect:
		e.Uint16(c.Port)
	}
	return e
}

// DecodeRequest decodes a request: one of the results is not nil. Data of a Call is part of b.
func DecodeRequest(b []byte) (*task.Command, *Call, error) {
	d := NewDecoder(b)
	op := Operation(d.Byte())
	if op == OpStart {
		command := d.command()
		return command, nil, d.End()
	}
	c := &Call{Op: op}
	if !op.pathless() {
		c.Path = d.String(MaxPath)
	}
	switch op {
	case OpStat:
		c.Follow = d.Bool()
	case OpRead:
		c.Offset, c.Limit = d.Size(), d.Size()
	case OpWrite:
		c.Options, c.More = d.options(), d.Bool()
		c.Data = d.Rest()
	case OpRemove:
		c.Remove = task.RemoveOptions{Recursive: d.Bool(), Exact: d.Bool(), Unchanged: d.unchanged()}
	case OpRename:
		c.Target = d.String(MaxPath)
	case OpList:
		c.Limit, c.Exact = d.Size(), d.Bool()
	case OpConnect:
		if c.Port = d.Uint16(); c.Port == 0 {
			d.Refuse()
		}
	case OpMkdir, OpStats, OpPorts:
	default:
		d.Refuse()
	}
	return nil, c, d.End()
}

func (e *Encoder) options(o task.WriteOptions) {
	e.Bool(o.Parents)
	e.Bool(o.Append)
	e.Bool(o.Missing)
	e.Bool(o.Exact)
	e.Uint32(uint32(o.Mode.Perm()))
	e.unchanged(o.Unchanged)
}

func (e *Encoder) unchanged(i *task.Identity) {
	e.Bool(i != nil)
	if i != nil {
		e.identity(*i)
	}
}

func (d *Decoder) unchanged() *task.Identity {
	if !d.Bool() {
		return nil
	}
	identity := d.identity()
	return &identity
}

func (d *Decoder) options() task.WriteOptions {
	o := task.WriteOptions{Parents: d.Bool(), Append: d.Bool(), Missing: d.Bool(), Exact: d.Bool(), Mode: d.mode()}
	o.Unchanged = d.unchanged()
	return o
}

// mode is the permission bits of a file, and nothing else.
func (d *Decoder) mode() os.FileMode {
	mode := os.FileMode(d.Uint32())
	if mode&^os.ModePerm != 0 {
		d.Refuse()
	}
	return mode
}

func (e *Encoder) identity(i task.Identity) {
	e.Uint64(i.Device)
	e.Uint64(i.Inode)
	e.Int64(i.Size)
	e.Int64(i.Modified)
	e.Int64(i.Changed)
}

func (d *Decoder) identity() task.Identity {
	return task.Identity{
		Device: d.Uint64(), Inode: d.Uint64(), Size: d.Size(), Modified: d.Int64(), Changed: d.Int64(),
	}
}

// EncodeCommand encodes the request to start a command.
func EncodeCommand(c *task.Command) []byte {
	e := make(Encoder, 0, 256)
	e.Byte(byte(OpStart))
	e.Strings(c.Argv)
	e.Uint32(uint32(len(c.Segments)))
	for i := range c.Segments {
		e.segment(&c.Segments[i])
	}
	e.String(c.Shell)
	e.String(c.Dir)
	e.Strings(c.Env)
	e.Bool(c.Merged)
	e.Bool(c.Stdin)
	e.Bool(c.Keeps)
	e.Bool(c.Reports)
	e.Bool(c.Terminal != nil)
	if c.Terminal != nil {
		e.Uint16(c.Terminal.Cols)
		e.Uint16(c.Terminal.Rows)
	}
	return e
}

func (d *Decoder) command() *task.Command {
	c := &task.Command{Argv: d.Strings(maxList, maxText)}
	for range d.Count(maxSegments, 16) {
		c.Segments = append(c.Segments, d.segment())
	}
	c.Shell = d.String(maxText)
	c.Dir = d.String(MaxPath)
	c.Env = d.Strings(maxList, maxText)
	c.Merged, c.Stdin, c.Keeps, c.Reports = d.Bool(), d.Bool(), d.Bool(), d.Bool()
	if d.Bool() {
		c.Terminal = &task.Size{Cols: d.Uint16(), Rows: d.Uint16()}
	}
	return c
}

func (e *Encoder) segment(s *task.Segment) {
	e.Strings(s.Argv)
	e.Strings(s.Env)
	e.Uint32(uint32(len(s.Redirects)))
	for _, r := range s.Redirects {
		e.Byte(byte(r.Kind))
		e.Byte(byte(r.FD))
		e.Byte(byte(r.From))
		e.String(r.Path)
		e.String(r.Text)
	}
	e.String(s.Operator)
}

func (d *Decoder) segment() task.Segment {
	s := task.Segment{Argv: d.Strings(maxList, maxText), Env: d.Strings(maxList, maxText)}
	for range d.Count(maxList, 11) {
		s.Redirects = append(s.Redirects, task.Redirect{
			Kind: task.RedirectKind(d.Byte()), FD: int(d.Byte()), From: int(d.Byte()), Path: d.String(MaxPath), Text: d.String(maxText),
		})
	}
	s.Operator = d.String(2)
	return s
}
