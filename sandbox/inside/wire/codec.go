package wire

import (
	"encoding/binary"
	"math"
)

// Encoder builds a message.
type Encoder []byte

// Byte adds a byte.
func (e *Encoder) Byte(v byte) { *e = append(*e, v) }

// Bool adds a truth value.
func (e *Encoder) Bool(v bool) {
	if v {
		e.Byte(1)
		return
	}
	e.Byte(0)
}

// Uint16 adds a number.
func (e *Encoder) Uint16(v uint16) { *e = binary.BigEndian.AppendUint16(*e, v) }

// Uint32 adds a number.
func (e *Encoder) Uint32(v uint32) { *e = binary.BigEndian.AppendUint32(*e, v) }

// Uint64 adds a number.
func (e *Encoder) Uint64(v uint64) { *e = binary.BigEndian.AppendUint64(*e, v) }

// Int64 adds a number that may be negative.
func (e *Encoder) Int64(v int64) { e.Uint64(uint64(v)) }

// String adds a text.
func (e *Encoder) String(v string) {
	e.Uint32(uint32(len(v)))
	*e = append(*e, v...)
}

// Strings adds a list of texts.
func (e *Encoder) Strings(list []string) {
	e.Uint32(uint32(len(list)))
	for _, v := range list {
		e.String(v)
	}
}

// Decoder takes a message apart. After the first error everything that it gives is zero; [Decoder.End] tells.
type Decoder struct {
	rest   []byte
	broken bool
}

// NewDecoder takes b apart, which must not change meanwhile.
func NewDecoder(b []byte) *Decoder { return &Decoder{rest: b} }

// End is an error if the message was not exactly what was read from it.
func (d *Decoder) End() error {
	if d.broken || len(d.rest) > 0 {
		return Violation("a message is not well-formed")
	}
	return nil
}

// Refuse makes the message not well-formed.
func (d *Decoder) Refuse() { d.broken, d.rest = true, nil }

func (d *Decoder) take(n int) []byte {
	if d.broken || n > len(d.rest) {
		d.Refuse()
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// Byte takes a byte.
func (d *Decoder) Byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

// Bool takes a truth value.
func (d *Decoder) Bool() bool {
	v := d.Byte()
	if v > 1 {
		d.Refuse()
	}
	return v == 1
}

// Uint16 takes a number.
func (d *Decoder) Uint16() uint16 {
	if b := d.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// Uint32 takes a number.
func (d *Decoder) Uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Uint64 takes a number.
func (d *Decoder) Uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Int64 takes a number that may be negative.
func (d *Decoder) Int64() int64 { return int64(d.Uint64()) }

// Size takes a number that must not be negative.
func (d *Decoder) Size() int64 {
	v := d.Int64()
	if v < 0 {
		d.Refuse()
		return 0
	}
	return v
}

// String takes a text of up to limit bytes.
func (d *Decoder) String(limit int) string {
	n := d.Uint32()
	if n > math.MaxInt32 || int(n) > limit {
		d.Refuse()
	}
	return string(d.take(int(n)))
}

// Count takes the length of a list, up to limit, whose elements take at least size bytes each: what follows bounds what
// is allocated.
func (d *Decoder) Count(limit, size int) int {
	n := d.Uint32()
	if n > math.MaxInt32 || int(n) > limit || int(n)*size > len(d.rest) {
		d.Refuse()
		return 0
	}
	return int(n)
}

// Strings takes a list of up to limit texts of up to length bytes.
func (d *Decoder) Strings(limit, length int) []string {
	n := d.Count(limit, 4)
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = d.String(length)
	}
	return list
}

// Rest takes everything that is left.
func (d *Decoder) Rest() []byte { return d.take(len(d.rest)) }
