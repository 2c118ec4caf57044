package wire

import (
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/toolward/toolward/sandbox/task"
)

// Bounds of what messages hold.
const (
	maxText     = MaxPayload
	maxList     = 1 << 16
	maxReported = 1 << 10 // bytes of a message for people
	MaxEntries  = 10_000  // of a directory in one answer
	maxName     = 255
	maxSegments = 4096
)

// magic begins a connection, so that no other protocol is taken for this one.
const magic = "toolward inside\n"

// Mount is a directory that file operations reach.
type Mount struct {
	Target   string
	Writable bool
}

// Hello begins a connection: what the program inside must know.
type Hello struct {
	Version   uint16
	Nonce     [NonceSize]byte
	Mounts    []Mount
	Workdir   string
	Env       []string
	Protected []string
	Hardlinks bool
	OpenFiles int64
	FileSize  int64
}

// Encode encodes it.
func (h *Hello) Encode() []byte {
	e := Encoder(magic)
	e.Uint16(h.Version)
	e = append(e, h.Nonce[:]...)
	e.Uint32(uint32(len(h.Mounts)))
	for _, m := range h.Mounts {
		e.String(m.Target)
		e.Bool(m.Writable)
	}
	e.String(h.Workdir)
	e.Strings(h.Env)
	e.Strings(h.Protected)
	e.Bool(h.Hardlinks)
	e.Int64(h.OpenFiles)
	e.Int64(h.FileSize)
	return e
}

// DecodeHello decodes a Hello. Of one of another version only the version is known.
func DecodeHello(b []byte) (*Hello, error) {
	text, ok := strings.CutPrefix(string(b), magic)
	if !ok {
		return nil, Violation("no greeting")
	}
	d, h := NewDecoder([]byte(text)), &Hello{}
	if h.Version = d.Uint16(); h.Version != Version {
		return h, nil
	}
	copy(h.Nonce[:], d.take(NonceSize))
	for range d.Count(maxList, 5) {
		h.Mounts = append(h.Mounts, Mount{Target: d.String(MaxPath), Writable: d.Bool()})
	}
	h.Workdir = d.String(MaxPath)
	h.Env = d.Strings(maxList, maxText)
	h.Protected = d.Strings(maxList, MaxPath)
	h.Hardlinks = d.Bool()
	h.OpenFiles, h.FileSize = d.Size(), d.Size()
	return h, d.End()
}

// Welcome answers Hello.
type Welcome struct {
	Version uint16
	Nonce   [NonceSize]byte // that of Hello: an answer of an earlier connection is none to this one
}

// Encode encodes it.
func (w *Welcome) Encode() []byte {
	e := Encoder(magic)
	e.Uint16(w.Version)
	return append(e, w.Nonce[:]...)
}

// DecodeWelcome decodes a Welcome.
func DecodeWelcome(b []byte) (*Welcome, error) {
	text, ok := strings.CutPrefix(string(b), magic)
	if !ok {
		return nil, Violation("no greeting")
	}
	d, w := NewDecoder([]byte(text)), &Welcome{}
	w.Version = d.Uint16()
	copy(w.Nonce[:], d.take(NonceSize))
	return w, d.End()
}

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
)

// Call is a request other than OpStart. What an operation does not need is zero and not sent.
type Call struct {
	Op        Operation
	Path      string
	Target    string // OpRename
	Follow    bool   // OpStat
	Recursive bool   // OpRemove
	Offset    int64  // OpRead
	Limit     int64  // OpRead: bytes; OpList: entries
	Options   task.WriteOptions
	Data      []byte // OpWrite: the beginning
	More      bool   // OpWrite: more follows as Stdin
}

// Encode encodes it.
func (c *Call) Encode() []byte {
	e := make(Encoder, 0, 64+len(c.Path)+len(c.Data))
	e.Byte(byte(c.Op))
	if c.Op != OpStats {
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
		e.Bool(c.Recursive)
	case OpRename:
		e.String(c.Target)
	case OpList:
		e.Int64(c.Limit)
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
	if op != OpStats {
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
		c.Recursive = d.Bool()
	case OpRename:
		c.Target = d.String(MaxPath)
	case OpList:
		c.Limit = d.Size()
	case OpMkdir, OpStats:
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
	e.Bool(o.Unchanged != nil)
	if o.Unchanged != nil {
		e.identity(*o.Unchanged)
	}
}

func (d *Decoder) options() task.WriteOptions {
	o := task.WriteOptions{Parents: d.Bool(), Append: d.Bool(), Missing: d.Bool(), Exact: d.Bool(), Mode: d.mode()}
	if d.Bool() {
		identity := d.identity()
		o.Unchanged = &identity
	}
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
	c.Merged, c.Stdin = d.Bool(), d.Bool()
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

// Started is the answer to OpStart: the command runs.
type Started struct {
	PID     uint32
	Warning string
}

// Encode encodes it.
func (s *Started) Encode() []byte {
	var e Encoder
	e.Uint32(s.PID)
	e.String(s.Warning)
	return e
}

// DecodeStarted decodes a Started.
func DecodeStarted(b []byte) (s Started, err error) {
	d := NewDecoder(b)
	s = Started{PID: d.Uint32(), Warning: clean(d.String(maxReported))}
	if s.PID > 1<<30 {
		d.Refuse()
	}
	return s, d.End()
}

// EncodeExit encodes how a command ended.
func EncodeExit(s task.ExitStatus) []byte {
	var e Encoder
	e.Uint16(uint16(int16(s.Code)))
	e.Byte(byte(s.Signal))
	e.Bool(s.OOM)
	e.Bool(s.Leftover)
	return e
}

// DecodeExit decodes how a command ended.
func DecodeExit(b []byte) (task.ExitStatus, error) {
	d := NewDecoder(b)
	s := task.ExitStatus{Code: int(int16(d.Uint16())), Signal: syscall.Signal(d.Byte()), OOM: d.Bool(), Leftover: d.Bool()}
	exited, killed := s.Signal == 0 && s.Code >= 0 && s.Code <= 255, s.Signal > 0 && s.Signal <= 64 && s.Code == -1
	if !exited && !killed {
		d.Refuse()
	}
	return s, d.End()
}

// EncodeInfo encodes a description of a file. It may be followed by the end of its content.
func EncodeInfo(f *task.FileInfo) []byte {
	e := make(Encoder, 0, 128+len(f.Path))
	e.String(f.Path)
	e.Byte(byte(f.Type))
	e.Uint32(uint32(f.Mode))
	e.Uint64(f.Links)
	e.identity(f.Identity)
	return e
}

// DecodeInfo decodes a description of a file, and what follows it.
func DecodeInfo(b []byte) (f task.FileInfo, rest []byte, err error) {
	d := NewDecoder(b)
	f = task.FileInfo{
		Path: d.String(MaxPath), Type: task.FileType(d.Byte()), Mode: os.FileMode(d.Uint32()), Links: d.Uint64(), Identity: d.identity(),
	}
	f.Size, f.Modified = f.Identity.Size, time.Unix(0, f.Identity.Modified)
	if !cleanPath(f.Path) || f.Type > task.TypeOther || f.Mode&^os.ModePerm != 0 {
		d.Refuse()
	}
	rest = d.Rest()
	return f, rest, d.End()
}

// EncodeEntries encodes a part of a directory.
func EncodeEntries(entries []task.Entry, more bool) []byte {
	var e Encoder
	e.Bool(more)
	e.Uint32(uint32(len(entries)))
	for _, entry := range entries {
		e.Byte(byte(entry.Type))
		e.String(entry.Name)
	}
	return e
}

// DecodeEntries decodes up to limit entries, which must be in order.
func DecodeEntries(b []byte, limit int) (entries []task.Entry, more bool, err error) {
	d := NewDecoder(b)
	more = d.Bool()
	last := ""
	for range d.Count(min(limit, MaxEntries), 6) {
		entry := task.Entry{Type: task.FileType(d.Byte()), Name: d.String(maxName)}
		if entry.Name <= last || entry.Name == "." || entry.Name == ".." || strings.ContainsAny(entry.Name, "/\x00") ||
			entry.Type > task.TypeOther {
			d.Refuse()
			break
		}
		last = entry.Name
		entries = append(entries, entry)
	}
	return entries, more, d.End()
}

// EncodeStats encodes what a sandbox uses.
func EncodeStats(s task.Stats) []byte {
	var e Encoder
	for _, v := range []int64{int64(s.CPU), s.Memory, s.MemoryPeak, s.Pids, s.OOMKills} {
		e.Int64(v)
	}
	return e
}

// DecodeStats decodes what a sandbox uses.
func DecodeStats(b []byte) (task.Stats, error) {
	d := NewDecoder(b)
	s := task.Stats{CPU: time.Duration(d.Size()), Memory: d.Size(), MemoryPeak: d.Size(), Pids: d.Size(), OOMKills: d.Size()}
	return s, d.End()
}

// codes are the failures that the program inside can report, by number. What a code means for the sandbox as a whole
// (unavailable, conflict, config) is not its to say.
var codes = [...]task.Code{
	task.CodeFailed, task.CodeNotFound, task.CodeReadOnly, task.CodeEscape, task.CodeHardlink,
	task.CodeNotRegular, task.CodeTooLarge, task.CodeTimeout, task.CodeChanged, task.CodeExists,
	task.CodeDenied, task.CodeFull, task.CodeDirectory,
}

// EncodeError encodes a failure.
func EncodeError(err error) []byte {
	var e Encoder
	number := 0
	for i, code := range codes {
		if code == task.CodeOf(err) {
			number = i
		}
	}
	text := err.Error()
	e.Byte(byte(number))
	e.String(text[:min(len(text), maxReported)])
	return e
}

// DecodeError decodes a failure: broken is what is wrong with the message.
func DecodeError(b []byte) (failure *task.Error, broken error) {
	d := NewDecoder(b)
	number, text := int(d.Byte()), clean(d.String(maxReported))
	if number >= len(codes) {
		d.Refuse()
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	return &task.Error{Code: codes[number], Text: text}, nil
}

// EncodeCredit encodes that n more bytes may be sent on a stream of the given type.
func EncodeCredit(of Type, n int) []byte {
	var e Encoder
	e.Byte(byte(of))
	e.Uint32(uint32(n))
	return e
}

// DecodeCredit decodes a credit.
func DecodeCredit(b []byte) (of Type, n int, err error) {
	d := NewDecoder(b)
	of, n = Type(d.Byte()), int(d.Uint32())
	if of != Stdin && of != Stdout && of != Stderr || n == 0 || n > Window {
		d.Refuse()
	}
	return of, n, d.End()
}

// clean makes text of another side fit to be part of a message.
func clean(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "�")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

// cleanPath reports whether a path is absolute and has no superfluous part.
func cleanPath(p string) bool {
	if p == "/" {
		return true
	}
	if !strings.HasPrefix(p, "/") || strings.IndexByte(p, 0) >= 0 {
		return false
	}
	for part := range strings.SplitSeq(p[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}
