package undo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Hash names what is kept by its content: a file, a directory, or a whole tree, which is its topmost directory.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Kind is what an entry of a directory is.
type Kind byte

// The kinds. The zero value is none of them.
const (
	File      Kind = 'f'
	Directory Kind = 'd'
	Link      Kind = 'l'
	Apart     Kind = 'x' // not kept: see the package comment
)

// Entry is what one name in a directory stands for.
type Entry struct {
	Kind   Kind
	Mode   uint32 // permission bits, with those for setuid, setgid and sticky; of files and directories
	Size   int64  // bytes, of a file
	Hash   Hash   // of a file's content or a directory's entries
	Target string // of a link
	Why    string // why it is not kept
}

// named is an entry with its name; a directory is a list of them by name.
type named struct {
	name string
	Entry
}

// encodeDirectory writes a directory as it is kept and hashed: the same entries are always the same bytes.
func encodeDirectory(entries []named) []byte {
	var b []byte
	for _, e := range entries {
		b = append(b, byte(e.Kind))
		b = appendText(b, e.name)
		switch e.Kind {
		case File:
			b = binary.AppendUvarint(b, uint64(e.Mode))
			b = binary.AppendUvarint(b, uint64(e.Size))
			b = append(b, e.Hash[:]...)
		case Directory:
			b = binary.AppendUvarint(b, uint64(e.Mode))
			b = append(b, e.Hash[:]...)
		case Link:
			b = appendText(b, e.Target)
		case Apart:
			b = appendText(b, e.Why)
		}
	}
	return b
}

func appendText(b []byte, text string) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// directoryHash differs from the hash of any file, even of one that holds an encoded directory: a file that an agent wrote
// must never be taken for a tree.
func directoryHash(encoded []byte) Hash {
	return sha256.Sum256(append([]byte("directory\x00"), encoded...))
}

// decodeDirectory reads what encodeDirectory wrote. Whatever else it meets is damage: an entry with a path for a name would be
// written elsewhere.
func decodeDirectory(data []byte) ([]named, error) {
	var entries []named
	r := reader{data: data}
	for len(r.data) > 0 && !r.bad {
		e := named{Entry: Entry{Kind: Kind(r.byte())}}
		e.name = r.text()
		switch e.Kind {
		case File:
			e.Mode, e.Size = uint32(r.number()), int64(r.number())
			e.Hash = r.hash()
		case Directory:
			e.Mode = uint32(r.number())
			e.Hash = r.hash()
		case Link:
			e.Target = r.text()
		case Apart:
			e.Why = r.text()
		default:
			r.bad = true
		}
		if e.name == "" || e.name == "." || e.name == ".." || strings.ContainsAny(e.name, "/\x00") {
			r.bad = true
		}
		entries = append(entries, e)
	}
	if r.bad || !slices.IsSortedFunc(entries, byName) {
		return nil, fmt.Errorf("a directory in it cannot be read: %w", ErrDamaged)
	}
	return entries, nil
}

func byName(a, b named) int { return strings.Compare(a.name, b.name) }

// reader takes values from the front of what is left; bad once something was missing.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.bad, r.data = true, nil
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *reader) text() string { return string(r.take(r.number())) }

func (r *reader) hash() (h Hash) {
	copy(h[:], r.take(sha256.Size))
	return h
}

// same reports whether two entries are alike; nil is an entry that is not there.
func same(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// parseHash reads the name of an object.
func parseHash(text string) (h Hash, ok bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(h) || !bytes.Equal([]byte(text), []byte(strings.ToLower(text))) {
		return h, false
	}
	copy(h[:], raw)
	return h, true
}
