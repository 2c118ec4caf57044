package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// There is no writer goroutine. Whoever writes while nobody else does becomes
// the leader: it commits its own change and those that have queued up
// meanwhile in one transaction, hands the lead to the first who came too late,
// and only then waits for the disk. So a lone write costs no change of
// goroutines, a crowd shares transactions and fsyncs, and the next transaction
// is built while the last one is being synced.

// job is one change on its way to the database.
type job struct {
	ctx     context.Context
	fn      func(*Tx) error
	ended   func(committed bool) // told what became of a change that fn accepted; may be nil
	durable bool
	bare    bool // an error of fn fails the whole transaction, so it needs no savepoint
	state   atomic.Int32
	done    chan error // buffered: nobody waits for the receiver
}

// The states of a job decide the race between a leader that takes it and a
// caller that gives up: exactly one of the two wins.
const (
	jobQueued int32 = iota
	jobTaken        // a leader has it, or it leads
	jobAbandoned
)

// errLead is the answer that makes the receiver the next leader.
var errLead = errors.New("you lead")

// newJob takes a job from the pool, which is the store's own: its channels
// must not wander into another test's bubble.
func (db *DB) newJob() *job {
	if j, ok := db.free.Get().(*job); ok {
		return j
	}
	return &job{done: make(chan error, 1)}
}

func (db *DB) release(j *job, err error) error {
	j.ctx, j.fn, j.ended = nil, nil, nil
	db.free.Put(j)
	return err
}

// Write runs fn inside the next transaction and returns after the commit;
// durable means after the fsync as well, otherwise the fsync follows within
// 5 ms.
//
// fn runs once, perhaps on another goroutine, between other callers' changes
// and in the order of arrival: it must be quick, must use nothing but tx, and
// must not keep tx. When it returns an error or panics, its changes are
// undone, Write returns that error, and the others in the same transaction are
// not touched.
//
// Write gives up with ctx's error only while nobody has begun with fn, so an
// error of ctx means that nothing was written. A full disk or a failing one is
// an error for everyone in the transaction, and nothing of it was written;
// writing resumes by itself when the disk accepts data again. If only the
// fsync fails, Write returns an error although the change is committed and
// may be seen: whoever asked for durability must treat it as not done.
func (db *DB) Write(ctx context.Context, durable bool, fn func(*Tx) error) error {
	j := db.newJob()
	j.ctx, j.fn, j.ended, j.durable, j.bare = ctx, fn, nil, durable, false
	return db.submit(j)
}

// writeInOrder is Write for a change that continues the one before it. After
// fn has succeeded, ended is told whether its transaction was committed, before
// the next transaction begins. An error of fn fails the whole transaction:
// there is no savepoint to return to.
func (db *DB) writeInOrder(ctx context.Context, durable bool, fn func(*Tx) error, ended func(committed bool)) error {
	j := db.newJob()
	j.ctx, j.fn, j.ended, j.durable, j.bare = ctx, fn, ended, durable, true
	return db.submit(j)
}

func (db *DB) submit(j *job) error {
	if err := j.ctx.Err(); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	j.state.Store(jobQueued)
	leads, err := db.queue.join(j)
	if err != nil {
		return err
	}
	canceled := j.ctx.Done()
	for !leads {
		select {
		case err := <-j.done:
			if err == errLead {
				leads = true
				continue
			}
			return db.release(j, err)
		case <-canceled:
			if j.state.CompareAndSwap(jobQueued, jobAbandoned) {
				// Never reused: a leader may still find it in the queue.
				return fmt.Errorf("write state: %w", j.ctx.Err())
			}
			canceled = nil // it has begun: only its own answer is true
		}
	}
	db.lead(j)
	return db.release(j, <-j.done)
}

// lead commits one batch, which begins with the leader's own job, and sees to
// it that everyone in it gets an answer.
func (db *DB) lead(own *job) {
	waiting, through := db.commit(db.queue.take())
	db.queue.handOver()
	switch {
	case len(waiting) == 0:
	case own.durable:
		db.settle(waiting, through)
	default: // the leader itself need not wait for the disk
		go db.settle(waiting, through)
	}
}

// settle waits for the disk and answers those who wait with it.
func (db *DB) settle(waiting []*job, through uint64) {
	err := db.syncer.through(through)
	db.queue.synced()
	finish(waiting, err)
}

func finish(jobs []*job, err error) {
	for _, j := range jobs {
		j.done <- err
	}
}

// commit runs one batch in one transaction. It answers those who need no more
// than the commit, or have failed, and returns those who wait for the disk,
// with the commit that must reach it.
func (db *DB) commit(batch []*job) (waiting []*job, through uint64) {
	// After a failed fsync the kernel may have dropped pages that it calls
	// written, so the log cannot be trusted until it has been moved into the
	// main file and that file synced. Until then every record is refused.
	if err := db.recoverSync(); err != nil {
		finish(batch, err)
		return nil, 0
	}
	committed, err := db.transact(batch)
	for _, j := range committed {
		if j.ended != nil {
			j.ended(err == nil)
		}
	}
	if err != nil {
		finish(committed, err)
		return nil, 0
	}
	if len(committed) == 0 {
		return nil, 0
	}
	through = db.syncer.committed()
	for _, j := range committed {
		if j.durable {
			waiting = append(waiting, j)
		}
	}
	if len(waiting) > 0 {
		db.queue.syncing()
	}
	for _, j := range committed {
		if !j.durable {
			j.done <- nil // and from here on it is its caller's
		}
	}
	return waiting, through
}

// transact runs the functions of a batch in one transaction. It answers those
// that fail and returns the rest, with an error if the transaction failed.
func (db *DB) transact(batch []*job) (rest []*job, err error) {
	if _, err := db.writer.begin.Exec(); err != nil {
		finish(batch, fmt.Errorf("begin a write: %w", err))
		return nil, nil
	}
	if err := db.writer.alone(); err != nil {
		_, _ = db.writer.rollback.Exec() // nothing was written
		finish(batch, err)
		return nil, nil
	}
	rest = make([]*job, 0, len(batch))
	for i, j := range batch {
		failure, undone := runOne(&db.writer.tx, j, len(batch) > 1)
		if failure == nil {
			rest = append(rest, j)
			continue
		}
		j.done <- failure
		if !undone {
			// SQLite ends the whole transaction on a full disk or an I/O
			// error, so nobody's change in this batch exists any more.
			_, _ = db.writer.rollback.Exec()
			err := fmt.Errorf("write state: the shared transaction failed: %w", failure)
			finish(batch[i+1:], err)
			return rest, err
		}
	}
	if _, err := db.writer.commit.Exec(); err != nil {
		// SQLite keeps a transaction open after some failed commits. That none
		// is open is the usual answer here.
		_, _ = db.writer.rollback.Exec()
		return rest, fmt.Errorf("commit state: %w", err)
	}
	return rest, nil
}

// runOne runs one function, behind a savepoint if it shares the transaction.
// undone reports that after a failure the transaction is as it was before.
func runOne(tx *Tx, j *job, shared bool) (failure error, undone bool) {
	if !shared || j.bare {
		return guarded(tx, j.fn), false
	}
	if _, err := tx.Exec("SAVEPOINT one"); err != nil {
		return fmt.Errorf("begin a write: %w", err), false
	}
	if failure = guarded(tx, j.fn); failure != nil {
		_, err := tx.Exec("ROLLBACK TO one")
		undone = err == nil
	}
	if _, err := tx.Exec("RELEASE one"); err != nil {
		return errors.Join(failure, fmt.Errorf("end a write: %w", err)), false
	}
	return failure, undone
}

// guarded turns a panic of fn into an error: one caller's mistake must not
// take the daemon, and with it every decision, down.
func guarded(tx *Tx, fn func(*Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("write state: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(tx)
}

// recoverSync makes the state durable again after an fsync has failed: it
// moves the whole log into the main file, syncs that, and empties the log.
func (db *DB) recoverSync() error {
	broken := db.syncer.failure()
	if broken == nil {
		return nil
	}
	// Everybody waits meanwhile, so readers of an old state get little time.
	if _, err := db.writer.ExecContext(context.Background(), "PRAGMA busy_timeout = 100"); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	var busy, frames, moved int
	err := db.writer.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	_, errTimeout := db.writer.ExecContext(context.Background(), "PRAGMA busy_timeout = "+busyTimeout)
	if err := errors.Join(err, errTimeout); err != nil {
		return fmt.Errorf("write state: the disk failed (%w) and has not recovered: %w", broken, err)
	}
	if busy != 0 {
		return fmt.Errorf("write state: the disk failed (%w) and a reader delays the recovery", broken)
	}
	db.syncer.recovered()
	return nil
}
