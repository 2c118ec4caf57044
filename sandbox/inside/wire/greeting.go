package wire

import (
	"strings"
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
	Detach    Detach
}

// Detach is what the first process of a sandbox must know that goes on when its gateway ends. The zero value ends with it.
type Detach struct {
	Alone  int64           // seconds that it goes on without any gateway
	Key    [NonceSize]byte // that the next gateway shows
	Answer [NonceSize]byte // that is shown to it
	Memory int64           // bytes that its processes may take meanwhile, where the kernel limits none; 0 is no limit
	Disk   int64           // bytes that they may write meanwhile; 0 is no limit
}

// What a gateway that has shown the key of a sandbox is told, before the answer that proves who tells it.
const (
	DoorBusy = 0 // another gateway is there
	DoorOpen = 1
)

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
	if d := &h.Detach; d.Alone != 0 { // otherwise nothing follows
		e.Int64(d.Alone)
		e = append(append(e, d.Key[:]...), d.Answer[:]...)
		e.Int64(d.Memory)
		e.Int64(d.Disk)
	}
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
	if len(d.rest) > 0 {
		h.Detach.decode(d)
	}
	return h, d.End()
}

func (t *Detach) decode(d *Decoder) {
	if t.Alone = d.Size(); t.Alone == 0 {
		d.Refuse() // what says nothing is left out: a message has one form
	}
	copy(t.Key[:], d.take(NonceSize))
	copy(t.Answer[:], d.take(NonceSize))
	t.Memory, t.Disk = d.Size(), d.Size()
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
