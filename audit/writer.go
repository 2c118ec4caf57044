package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/toolward/toolward"
)

// entry is a record on its way into the chain. Its text is complete but for
// prev and seq, which are known only when its turn comes; they go to prevAt
// and seqAt.
type entry struct {
	record        Record
	buf           []byte
	prevAt, seqAt int
	kept          *decided // decisions

	durable   bool
	opens     *openCall // decisions
	closes    int64     // outcomes: the decision
	committed bool
	seal      *Seal    // of the log's end, that goes with it
	with      []*entry // what goes into the chain right after it: outcomes that rode along, a checkpoint
}

// entry takes an entry from the pool: a record is built for every call.
func (l *Log) entry() *entry {
	e, ok := l.free.Get().(*entry)
	if !ok {
		return &entry{kept: &decided{}}
	}
	*e = entry{buf: e.buf[:0], with: e.with[:0], kept: e.kept}
	return e
}

// keepBuffer is the size up to which an entry's buffer is used again.
const keepBuffer = 16 << 10

func (l *Log) recycle(e *entry) {
	if cap(e.buf) <= keepBuffer {
		clear(e.with)
		l.free.Put(e)
	}
}

// submit adds an entry to the chain and returns its position. An error of ctx
// means that nothing was recorded.
func (l *Log) submit(ctx context.Context, e *entry) (int64, error) {
	l.gate.RLock()
	defer l.gate.RUnlock()
	if l.closed {
		return 0, ErrClosed
	}
	return l.append(ctx, e)
}

func (l *Log) append(ctx context.Context, e *entry) (int64, error) {
	err := l.store.Append(ctx, e.durable,
		func(a Appender) error { return l.link(a, e) },
		func(committed bool) { l.ended(e, committed) })
	switch {
	case err == nil:
		l.available()
	case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		l.unavailable(e, err)
		err = fmt.Errorf("the audit log cannot be written: %w", err)
	}
	seq := e.record.Seq
	if err == nil {
		l.recycle(e)
	}
	return seq, err
}

// link gives an entry its position and its place in the chain. The store calls
// it for one entry at a time, in the order of arrival. Outcomes that wait for a
// ride, and a checkpoint or a seal that is due, go with it.
func (l *Log) link(a Appender, e *entry) (err error) {
	defer func() {
		if err != nil {
			l.rolledBack(e)
		}
	}()
	if err := l.refresh(a); err != nil {
		return err
	}
	if e.buf != nil {
		if err := l.put(a, e); err != nil {
			return err
		}
	}
	if e.opens != nil {
		// Before the commit: the outcome of a quick call may arrive before
		// this goroutine looks up again.
		l.open.add(e.record.Seq, e.opens)
	}
	e.with = l.riders.take(e.with)
	for _, rider := range e.with {
		if err := l.put(a, rider); err != nil {
			return err
		}
	}
	return l.linkSeals(a, e)
}

// linkSeals adds the checkpoint and the seal that are due.
func (l *Log) linkSeals(a Appender, e *entry) error {
	if l.head.seq-l.head.checkpoint >= int64(l.checkpoint) || l.head.asked {
		l.head.asked = false
		c := l.checkpointEntry()
		e.with = append(e.with, c)
		if err := l.put(a, c); err != nil {
			return err
		}
		l.head.checkpoint, l.head.signed = l.head.seq, l.head.seq
		l.head.due = true
	}
	if !l.head.due {
		return nil
	}
	s := l.statement(SealHead)
	l.head.due, l.head.sealed = false, l.head.seq
	e.seal = &s
	return a.Seal(&s)
}

// put adds one record to the chain.
func (l *Log) put(a Appender, e *entry) error {
	l.head.seq++
	var prev [2 * sha256.Size]byte
	hex.Encode(prev[:], l.head.hash[:])
	l.text = e.appendTo(append(l.text[:0], prev[:]...), prev[:], l.head.seq)
	l.head.hash = sha256.Sum256(l.text)
	e.record.Seq, e.record.Hash = l.head.seq, l.head.hash
	e.record.JSON = string(l.text[len(prev):])
	if cap(l.text) > keepBuffer {
		l.text = nil
	}
	return a.Put(&e.record)
}

// appendTo appends the record's text with prev and seq in their places.
func (e *entry) appendTo(b, prev []byte, seq int64) []byte {
	b = append(b, e.buf[:e.prevAt]...)
	b = append(b, `,"prev":"`...)
	b = append(b, prev...)
	b = append(b, '"')
	b = append(b, e.buf[e.prevAt:e.seqAt]...)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, seq, 10)
	return append(b, e.buf[e.seqAt:]...)
}

// refresh reads the end of the chain from the store after a write that failed:
// the records after it must follow what is there, not what should be.
func (l *Log) refresh(a Appender) error {
	if !l.head.stale {
		return nil
	}
	last, err := a.Last()
	if err != nil {
		return err
	}
	l.head.seq, l.head.hash = max(last.Seq, l.head.floor), last.Hash
	l.head.checkpoint = min(l.head.checkpoint, l.head.seq)
	l.head.stale, l.head.due = false, true
	return nil
}

// ended is told by the store, before it begins with the next transaction,
// whether an entry that link accepted was committed.
func (l *Log) ended(e *entry, committed bool) {
	if !committed {
		l.rolledBack(e)
		return
	}
	e.committed = true
	l.settle(e)
	for _, rider := range e.with {
		l.settle(rider)
	}
	if e.seal != nil && l.onSeal != nil {
		l.onSeal(*e.seal)
	}
	if l.head.seq > l.head.sealed && !l.head.armed {
		l.head.armed = true
		l.sealTimer.Reset(l.sealDelay)
	}
}

// settle is for one record that has been committed.
func (l *Log) settle(e *entry) {
	if e.closes != 0 {
		l.open.remove(e.closes)
	}
	if e.buf != nil && l.tails.any.Load() {
		l.tails.publish(e.record)
	}
}

func (l *Log) rolledBack(e *entry) {
	l.head.stale = true
	if e.opens != nil && e.record.Seq != 0 {
		l.open.remove(e.record.Seq)
	}
	l.riders.giveBack(e.with)
	e.with = nil
}

// sealLater signs the end of the chain when nothing else has done so for a
// while.
func (l *Log) sealLater() {
	l.gate.RLock()
	defer l.gate.RUnlock()
	if !l.closed && l.sealNow(false) != nil {
		l.sealTimer.Reset(l.sealDelay)
	}
}

func (l *Log) sealNow(durable bool) error {
	return l.appendNothing(durable, func() {
		l.head.armed = false
		l.head.due = l.head.due || l.head.seq > l.head.sealed
	})
}

// Checkpoint signs the end of the chain in the chain itself, so that an export from now on is signed up to there.
func (l *Log) Checkpoint() error {
	l.gate.RLock()
	defer l.gate.RUnlock()
	if l.closed {
		return ErrClosed
	}
	return l.appendNothing(true, func() { l.head.asked = l.head.seq > l.head.signed })
}

// appendNothing writes what goes along with an entry, without an entry.
func (l *Log) appendNothing(durable bool, first func()) error {
	e := &entry{}
	err := l.store.Append(context.Background(), durable,
		func(a Appender) error {
			first()
			return l.link(a, e)
		},
		func(committed bool) { l.ended(e, committed) })
	if err != nil {
		l.unavailable(e, err)
		return err
	}
	l.available()
	return nil
}

// unavailable keeps what must not be lost, and tells of the first failure.
func (l *Log) unavailable(e *entry, err error) {
	switch {
	case e.closes != 0 && !e.committed:
		l.ride(&entry{record: e.record, buf: slices.Clone(e.buf), prevAt: e.prevAt, seqAt: e.seqAt, closes: e.closes})
	case e.committed && e.opens != nil && e.opens.allowed:
		// Committed, but perhaps not on disk: its caller is refused, so the
		// call will not run, and the log will say so.
		void := &entry{closes: e.record.Seq}
		outcome := toolward.OutcomeRecord{
			Time: time.Now(), Status: toolward.StatusUnused,
			Error: "the decision did not reach the disk in time, so the call was refused",
		}
		l.clean.outcome(void, e.record.Seq, e.opens, &outcome)
		l.ride(void)
	}
	if l.failing.CompareAndSwap(false, true) && l.onUnavailable != nil {
		l.onUnavailable(err)
	}
}

// available tells of the first success after failures.
func (l *Log) available() {
	if l.failing.Load() && l.failing.CompareAndSwap(true, false) && l.onAvailable != nil {
		l.onAvailable()
	}
}
