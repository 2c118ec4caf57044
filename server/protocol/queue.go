package protocol

import (
	"strconv"
	"sync"
)

// queue is what waits to be written to one connection. Whoever adds never waits; one writer takes out. Bytes count
// from when they are added until they have been written.
type queue struct {
	mu       sync.Mutex
	items    []item
	buffered int64
	seq      uint64
	end      *closing
	wake     chan struct{}
	cutOff   func(closing) // ends the connection at once; called in a goroutine of its own
}

// item is one frame. Events share their head between connections; the number is each connection's own.
type item struct {
	head []byte
	seq  uint64 // 0: the head is the whole frame
}

func newQueue(cutOff func(closing)) *queue {
	return &queue{wake: make(chan struct{}, 1), cutOff: cutOff}
}

// frame appends the bytes of an item to b.
func (i item) frame(b []byte) []byte {
	b = append(b, i.head...)
	if i.seq > 0 {
		b = append(b, `,"seq":`...)
		b = strconv.AppendUint(b, i.seq, 10)
		b = append(b, '}')
	}
	return b
}

// overhead is what an item costs besides its text. A flood of tiny frames must count, too.
const overhead = 64

func (i item) size() int64 { return int64(len(i.head)) + overhead }

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

// offer adds an event, or does with it what becomes of it for a client like this.
func (q *queue) offer(decide func(buffered int64) delivery, head []byte) delivery {
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
		q.add(item{head, q.seq})
	case hangUp:
		q.cut(closing{closePolicy, slowConsumer})
	}
	return d
}

const slowConsumer = "slow consumer"

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
	i = q.items[0]
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
