package protocol

import (
	"slices"
	"strconv"
	"sync"
)

// queue is what waits to be written to one connection. Whoever adds never waits; one writer takes out. Where nothing
// waits, an event is written by whoever brings it, as far as the kernel takes it. Bytes count from when they are added
// until they have been written.
type queue struct {
	mu       sync.Mutex
	items    []item
	writing  bool // the writer has taken an item and has not written it yet
	buffered int64
	seq      uint64
	end      *closing
	wake     chan struct{}
	try      func(frame []byte) (taken bool, left int) // writes at once, or not; nil: never
	cutOff   func(closing)                             // ends the connection at once; called in a goroutine of its own
}

// item is one frame. Events share their head between connections; the number is each connection's own.
type item struct {
	head []byte
	seq  uint64 // 0: the head is the whole frame
	left int    // there is no frame: so many bytes of one are left on the wire
}

func newQueue(try func([]byte) (bool, int), cutOff func(closing)) *queue {
	return &queue{wake: make(chan struct{}, 1), try: try, cutOff: cutOff}
}

// event is an event on its way to many connections. It is for one goroutine.
type event struct {
	head []byte // shared by all who get it, never changed
	wire []byte // room for the header of a frame, the head, and room for the number
}

// newEvent prepares an event.
func newEvent(head []byte) *event {
	return &event{head: head, wire: append(make([]byte, maxHeader, maxHeader+len(head)+longestSeq), head...)}
}

// frame is the whole frame of the event for a connection, until the next one is made.
func (e *event) frame(seq uint64) []byte {
	b := appendSeq(e.wire[:maxHeader+len(e.head)], seq)
	return b[putHeader(b[:maxHeader], len(b)-maxHeader):]
}

// longestSeq is the length of the end of an event with the largest number.
const longestSeq = len(`,"seq":18446744073709551615}`)

func appendSeq(b []byte, seq uint64) []byte {
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, seq, 10)
	return append(b, '}')
}

// frame makes the frame of an item in a buffer, which it returns to be used again; nil if there is none.
func (i item) frame(buffer []byte) (used, frame []byte) {
	if i.left > 0 {
		return buffer, nil
	}
	if buffer == nil {
		buffer = make([]byte, maxHeader, maxHeader+len(i.head)+longestSeq)
	}
	b := append(buffer[:maxHeader], i.head...)
	if i.seq > 0 {
		b = appendSeq(b, i.seq)
	}
	return b, b[putHeader(b[:maxHeader], len(b)-maxHeader):]
}

// overhead is what an item costs besides its text. A flood of tiny frames must count, too.
const overhead = 64

func (i item) size() int64 { return int64(len(i.head)+i.left) + overhead }

// answer adds a whole frame; false if the connection is ending, or has more than twice the limit waiting: a client that
// asks for ever more without reading is closed.
func (q *queue) answer(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.end != nil {
		return false
	}
	if q.buffered > 2*maxBuffered {
		q.cut(closing{closePolicy, slowConsumer})
		return false
	}
	q.add(item{head: frame})
	return true
}

// offer sends or adds an event, or does with it what becomes of it for a client like this.
func (q *queue) offer(decide func(buffered int64) delivery, e *event) delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.end != nil {
		return skip
	}
	d := decide(q.buffered)
	if d.usesNumber() {
		q.seq++
	}
	switch d {
	case send:
		q.put(e)
	case sendAlone:
		q.add(item{head: append(slices.Clip(e.head), '}')})
	case hangUp:
		q.cut(closing{closePolicy, slowConsumer})
	}
	return d
}

const slowConsumer = "slow consumer"

// put writes an event if nothing is before it and the kernel takes it, and adds it otherwise. The caller holds the lock.
func (q *queue) put(e *event) {
	if q.try != nil && !q.writing && len(q.items) == 0 {
		if taken, left := q.try(e.frame(q.seq)); taken {
			if left > 0 {
				q.add(item{left: left})
			}
			return
		}
	}
	q.add(item{head: e.head, seq: q.seq})
}

// add appends. The caller holds the lock.
func (q *queue) add(i item) {
	q.items = append(q.items, i)
	q.buffered += i.size()
	q.nudge()
}

// close lets the connection end once everything that waits is written. The first reason counts.
func (q *queue) close(why closing) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.end == nil {
		q.end = &why
		q.nudge()
	}
}

// cut drops what waits and ends the connection at once. The caller holds the lock.
func (q *queue) cut(why closing) {
	q.items, q.buffered, q.end = nil, 0, &why
	go q.cutOff(why)
}

func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next takes the next item out. end is why the connection ends, once nothing waits; ok is false while there is nothing
// to do.
func (q *queue) next() (i item, end *closing, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, q.end, q.end != nil
	}
	i, q.writing = q.items[0], true
	q.items[0] = item{}
	if q.items = q.items[1:]; len(q.items) == 0 {
		q.items = nil // so that a burst does not keep its memory
	}
	return i, nil, true
}

// wrote takes a written item off the count.
func (q *queue) wrote(i item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writing = false
	if q.buffered -= i.size(); q.buffered < 0 {
		q.buffered = 0 // it was cut meanwhile
	}
}

// ending reports whether the connection is to end.
func (q *queue) ending() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.end != nil
}
