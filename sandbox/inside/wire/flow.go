package wire

import (
	"io"
	"sync"
)

// Inbox keeps what was received of one stream and not read yet: never more than Window bytes, which the other
// side may send without asking. Reading gives it credit for more.
type Inbox struct {
	grant   func(n int) // tells the other side that it may send so many more
	reading sync.Mutex

	mu      sync.Mutex
	changed sync.Cond
	ring    []byte
	at, n   int // what is kept: n bytes from at on
	credit  int // bytes that the other side may still send
	read    int // bytes read for which no credit was given yet
	end     error
}

// grantStep is how much is read before credit is given: not for every byte, and well before the other side waits.
const grantStep = Window / 4

// NewInbox makes an Inbox that gives credit by grant.
func NewInbox(grant func(n int)) *Inbox {
	w := &Inbox{grant: grant, credit: Window}
	w.changed.L = &w.mu
	return w
}

// Receive takes a payload. Only one goroutine calls it.
func (w *Inbox) Receive(r *Reader, size int) error {
	w.mu.Lock()
	if size == 0 || size > w.credit {
		w.mu.Unlock()
		return Violation("more was sent than was asked for")
	}
	w.credit -= size
	w.grow(w.n + size)
	// The free part is nobody else's: readers only make it larger.
	from := (w.at + w.n) % len(w.ring)
	first := w.ring[from:min(from+size, len(w.ring))]
	second := w.ring[:size-len(first)]
	w.mu.Unlock()
	if err := r.ReadFull(first); err != nil {
		return err
	}
	if err := r.ReadFull(second); err != nil {
		return err
	}
	w.mu.Lock()
	w.n += size
	w.changed.Broadcast()
	w.mu.Unlock()
	return nil
}

// grow makes room. Credit bounds it.
func (w *Inbox) grow(size int) {
	if size <= len(w.ring) {
		return
	}
	larger := 4 << 10
	for larger < size {
		larger *= 2
	}
	ring := make([]byte, larger)
	if w.n > 0 {
		m := copy(ring, w.ring[w.at:min(w.at+w.n, len(w.ring))])
		copy(ring[m:], w.ring[:w.n-m])
	}
	w.ring, w.at = ring, 0
}

// Close ends it; what is kept can still be read.
func (w *Inbox) Close(end error) {
	w.mu.Lock()
	if w.end == nil {
		w.end = end
		w.changed.Broadcast()
	}
	w.mu.Unlock()
}

// next waits for something to read and returns it, as far as it lies together. ring is what it is part of.
func (w *Inbox) next() (part []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.n == 0 && w.end == nil {
		w.changed.Wait()
	}
	if w.n == 0 {
		w.ring = nil
		return nil, w.end
	}
	return w.ring[w.at:min(w.at+w.n, len(w.ring))], nil
}

// consumed forgets what has been read.
func (w *Inbox) consumed(n int) {
	w.mu.Lock()
	w.at = (w.at + n) % len(w.ring)
	w.n -= n
	w.read += n
	give := 0
	if w.read >= grantStep && w.end == nil {
		give, w.read = w.read, 0
		w.credit += give
	}
	w.mu.Unlock()
	if give > 0 {
		w.grant(give)
	}
}

// Read reads what was received, waiting for it. After the end it returns what [Inbox.Close] was given.
func (w *Inbox) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	w.reading.Lock()
	defer w.reading.Unlock()
	part, err := w.next()
	if err != nil {
		return 0, err
	}
	n := copy(p, part)
	w.consumed(n)
	return n, nil
}

// WriteTo saves io.Copy a copy.
func (w *Inbox) WriteTo(to io.Writer) (total int64, err error) {
	w.reading.Lock()
	defer w.reading.Unlock()
	for {
		part, err := w.next()
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		n, err := to.Write(part)
		if n > 0 {
			w.consumed(n)
			total += int64(n)
		}
		if err != nil {
			return total, err
		}
	}
}

// Allowance is how many bytes of one stream the other side has room for.
type Allowance struct {
	mu      sync.Mutex
	changed sync.Cond
	credit  int
	closed  error
}

// NewAllowance begins with a Window.
func NewAllowance() *Allowance {
	a := &Allowance{credit: Window}
	a.changed.L = &a.mu
	return a
}

// Allow adds credit; false: more than there can be.
func (a *Allowance) Allow(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > Window-a.credit {
		return false
	}
	a.credit += n
	a.changed.Broadcast()
	return true
}

// Take waits for credit and takes up to n bytes of it.
func (a *Allowance) Take(n int) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.credit == 0 && a.closed == nil {
		a.changed.Wait()
	}
	if a.closed != nil {
		return 0, a.closed
	}
	n = min(n, a.credit)
	a.credit -= n
	return n, nil
}

// Return gives back credit that was taken and not used.
func (a *Allowance) Return(n int) {
	a.mu.Lock()
	a.credit += n
	a.mu.Unlock()
}

// Close makes Take fail. It reports the error that did so before.
func (a *Allowance) Close(err error) (before error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed != nil {
		return a.closed
	}
	a.closed = err
	a.changed.Broadcast()
	return nil
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
