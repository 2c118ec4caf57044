package wire

import (
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/toolward/toolward/sandbox/task"
)

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
	e.String(s.Dir)
	return e
}

// DecodeExit decodes how a command ended.
func DecodeExit(b []byte) (task.ExitStatus, error) {
	d := NewDecoder(b)
	s := task.ExitStatus{Code: int(int16(d.Uint16())), Signal: syscall.Signal(d.Byte()), OOM: d.Bool(), Leftover: d.Bool(), Dir: d.String(MaxPath)}
	exited, killed := s.Signal == 0 && s.Code >= 0 && s.Code <= 255, s.Signal > 0 && s.Signal <= 64 && s.Code == -1
	if !exited && !killed || s.Dir != "" && !cleanPath(s.Dir) {
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

// EncodePorts encodes the ports on which programs listen.
func EncodePorts(ports []task.Port, more bool) []byte {
	var e Encoder
	e.Bool(more)
	e.Uint32(uint32(len(ports)))
	for _, p := range ports {
		e.Uint16(p.Number)
		e.Bool(p.Local)
		e.Uint32(uint32(p.PID))
		e.String(p.Program)
	}
	return e
}

// DecodePorts decodes ports, which must be in order.
func DecodePorts(b []byte) (ports []task.Port, more bool, err error) {
	d := NewDecoder(b)
	more = d.Bool()
	last := uint16(0)
	for range d.Count(MaxPorts, 11) {
		p := task.Port{Number: d.Uint16(), Local: d.Bool(), PID: int(d.Uint32()), Program: clean(d.String(maxName))}
		if p.Number <= last || p.PID > 1<<30 {
			d.Refuse()
			break
		}
		last = p.Number
		ports = append(ports, p)
	}
	return ports, more, d.End()
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
