// Package wire is what the gateway and the program inside a sandbox say to each other.
//
// A frame is a length (4 bytes, of the payload), a type (1), a stream (4) and the payload; numbers are big-endian. Stream
// 0 is the connection: its only request is [Hello]. Every other stream is one request of the gateway and ends with an
// answer: [Response], [Exit] or [Error]. A connection is first answered by a Response, then carries bytes both ways, each way to its
// own EOF, and ends as a command does. Bytes of files and of standard streams flow only as far as the receiver has
// given credit, which begins at [Window] for each direction, so that nobody can make the other side keep more.
//
// Both sides decode strictly: an unknown type, a length out of bounds, a missing or left-over byte is an error, and an
// error ends the connection.
package wire

import (
	"encoding/binary"
	"errors"
	"io"
)

// Bounds of the protocol.
const (
	Version    = 3
	NonceSize  = 32
	HeaderSize = 9
	MaxFrame   = 1 << 20
	MaxPayload = MaxFrame - HeaderSize
	Window     = 256 << 10 // bytes that may be under way in one direction of one stream
	MaxStreams = 128       // at the same time
	MaxPath    = 4096
)

// Type is what a frame means.
type Type uint8

// The types of frames.
const (
	Request  Type = iota + 1 // gateway: opens a stream
	Response                 // inside: the answer, or that a command has started
	Stdin                    // gateway: bytes for a command or a file
	Stdout                   // inside: bytes of a command or a file
	Stderr                   // inside
	EOF                      // gateway: no more Stdin; inside: a connection has no more Stdout
	Exit                     // inside: the command, or the connection, has ended
	Resize                   // gateway: the terminal has another size
	Signal                   // gateway: a signal for the command; signal 0 ends whatever the stream is
	Credit                   // both: so many more bytes may be sent
	Error                    // inside: the request failed
)

// ErrProtocol is what every breach of the protocol is.
var ErrProtocol = errors.New("protocol broken")

// Violation says how the protocol was broken. It is an [ErrProtocol].
type Violation string

func (v Violation) Error() string { return "protocol broken: " + string(v) }

// Is makes it an ErrProtocol.
func (v Violation) Is(target error) bool { return target == ErrProtocol }

// Header is the beginning of a frame.
type Header struct {
	Type   Type
	Stream uint32
	Size   int // of the payload
}

// PutHeader writes the header of a frame into the first HeaderSize bytes of frame, the rest of which is its payload.
func PutHeader(frame []byte, t Type, stream uint32) {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-HeaderSize))
	frame[4] = byte(t)
	binary.BigEndian.PutUint32(frame[5:], stream)
}

// AppendHeader appends the header of a frame whose payload is written by other means.
func AppendHeader(b []byte, t Type, stream uint32, size int) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	return binary.BigEndian.AppendUint32(append(b, byte(t)), stream)
}

// AppendFrame appends a frame with a payload of so many parts.
func AppendFrame(b []byte, t Type, stream uint32, parts ...[]byte) []byte {
	start := len(b)
	b = append(b, make([]byte, HeaderSize)...)
	for _, part := range parts {
		b = append(b, part...)
	}
	PutHeader(b[start:], t, stream)
	return b
}

// bufferSize is enough for the small frames that come together. Large payloads go past the buffer.
const bufferSize = 16 << 10

// Reader reads frames.
type Reader struct {
	source     io.Reader
	buffer     []byte
	start, end int
	left       int // of the payload of the frame that is being read
}

// NewReader reads frames from a stream.
func NewReader(source io.Reader) *Reader {
	return &Reader{source: source, buffer: make([]byte, bufferSize)}
}

// Next reads the header of the next frame. What was not read of the frame before is skipped.
func (r *Reader) Next() (Header, error) {
	for r.left > 0 {
		if err := r.fill(1); err != nil {
			return Header{}, err
		}
		n := min(r.left, r.end-r.start)
		r.start, r.left = r.start+n, r.left-n
	}
	if err := r.fill(HeaderSize); err != nil {
		if err == io.ErrUnexpectedEOF && r.start == r.end {
			err = io.EOF // between two frames
		}
		return Header{}, err
	}
	b := r.buffer[r.start:]
	size, kind := binary.BigEndian.Uint32(b), Type(b[4])
	if size > MaxPayload {
		return Header{}, Violation("a frame is too large")
	}
	if kind < Request || kind > Error {
		return Header{}, Violation("a frame of an unknown type")
	}
	r.start, r.left = r.start+HeaderSize, int(size)
	return Header{Type: kind, Stream: binary.BigEndian.Uint32(b[5:]), Size: int(size)}, nil
}

// Payload is the rest of the frame. It is valid until the next call.
func (r *Reader) Payload() ([]byte, error) {
	if r.left > len(r.buffer) {
		payload := make([]byte, r.left)
		return payload, r.ReadFull(payload)
	}
	if err := r.fill(r.left); err != nil {
		return nil, err
	}
	payload := r.buffer[r.start : r.start+r.left]
	r.start, r.left = r.start+r.left, 0
	return payload, nil
}

// ReadFull reads the next len(p) bytes of the payload, which must have so many.
func (r *Reader) ReadFull(p []byte) error {
	if len(p) > r.left {
		return Violation("a payload is too short")
	}
	n := copy(p, r.buffer[r.start:r.end])
	r.start, r.left = r.start+n, r.left-n
	for n < len(p) {
		if len(p)-n < bufferSize { // the next header comes along
			if err := r.fill(1); err != nil {
				return err
			}
			m := copy(p[n:], r.buffer[r.start:r.end])
			r.start, r.left, n = r.start+m, r.left-m, n+m
			continue
		}
		m, err := r.source.Read(p[n:])
		n, r.left = n+m, r.left-m
		if err != nil && n < len(p) {
			return unexpected(err)
		}
	}
	return nil
}

// fill sees to it that at least n bytes are in the buffer.
func (r *Reader) fill(n int) error {
	if r.start == r.end {
		r.start, r.end = 0, 0
	}
	if r.start+n > len(r.buffer) {
		r.end = copy(r.buffer, r.buffer[r.start:r.end])
		r.start = 0
	}
	for empty := 0; r.end-r.start < n; {
		m, err := r.source.Read(r.buffer[r.end:])
		r.end += m
		if r.end-r.start >= n {
			break
		}
		if err != nil {
			return unexpected(err)
		}
		if m > 0 {
			empty = 0
		} else if empty++; empty > 100 {
			return io.ErrNoProgress
		}
	}
	return nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
