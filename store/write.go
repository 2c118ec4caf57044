package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// job is one change on its way to the writer. Its state decides the race
// between the writer that takes it and the caller that gives up: exactly one
// of the two wins.
type job struct {
	ctx     context.Context
	fn      func(*sql.Tx) error
	durable bool
	synced  func(error) // if set: done is answered at the commit, synced after the fsync
	state   atomic.Int32
	done    chan error // buffered: the writer never waits for the caller
}

const (
	jobQueued int32 = iota
	jobTaken
	jobAbandoned
)

var jobPool = sync.Pool{New: func() any { return &job{done: make(chan error, 1)} }}

// Write runs fn inside the next transaction of the only writer and returns
// after the commit; durable means after the fsync as well, otherwise the fsync
// follows within 5 ms.
//
// fn runs once, on the writer's goroutine, between other callers' changes: it
// must be quick, must use nothing but tx, and must not keep tx. When it
// returns an error or panics, its changes are undone, Write returns that
// error, and the others in the same transaction are not touched.
//
// Write gives up with ctx's error only while fn has not begun, so an error of
// ctx means that nothing was written. A full disk or a failing one is an
// error for everyone in the transaction, and nothing of it was written;
// writing resumes by itself when the disk accepts data again. If only the
// fsync fails, Write returns an error although the change is committed and
// may be seen: whoever asked for durability must treat it as not done.
func (db *DB) Write(ctx context.Context, durable bool, fn func(*sql.Tx) error) error {
	j := jobPool.Get().(*job)
	j.ctx, j.fn, j.durable, j.synced = ctx, fn, durable, nil
	return db.submit(j)
}

// WriteThen is Write for those who have more to write while the fsync runs:
// it returns after the commit, and then calls synced exactly once, when the
// change is on disk or the fsync has failed. synced runs on the goroutine that
// syncs and must not block. It is not called when WriteThen returns an error.
func (db *DB) WriteThen(ctx context.Context, fn func(*sql.Tx) error, synced func(error)) error {
	j := jobPool.Get().(*job)
	j.ctx, j.fn, j.durable, j.synced = ctx, fn, true, synced
	return db.submit(j)
}

func (db *DB) submit(j *job) error {
	if err := j.ctx.Err(); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	j.state.Store(jobQueued)
	select {
	case <-db.closing: // checked first: select picks at random
		return ErrClosed
	default:
	}
	select {
	case db.jobs <- j:
	case <-db.closing:
		return ErrClosed
	case <-j.ctx.Done():
		return fmt.Errorf("write state: %w", j.ctx.Err())
	}
	return db.await(j)
}

// await waits for the job's end. A job that was abandoned is left to the
// collector, never reused: the writer may still hold it.
func (db *DB) await(j *job) error {
	done := j.ctx.Done()
	for {
		select {
		case err := <-j.done:
			j.ctx, j.fn, j.synced = nil, nil, nil
			jobPool.Put(j)
			return err
		case <-done:
			if j.state.CompareAndSwap(jobQueued, jobAbandoned) {
				return fmt.Errorf("write state: %w", j.ctx.Err())
			}
			done = nil // the writer has it: only its answer is true
		case <-db.settled:
			select {
			case err := <-j.done:
				return err
			default:
				return ErrClosed
			}
		}
	}
}

// write is the only writer. It takes whatever has queued up while the last
// transaction ran, so that the batch grows by itself with the load.
func (db *DB) write() {
	defer close(db.stopped)
	batch := make([]*job, 0, db.maxBatch)
	for {
		batch = batch[:0]
		select {
		case j := <-db.jobs:
			batch = append(batch, j)
		case <-db.closing:
			select {
			case j := <-db.jobs:
				batch = append(batch, j)
			default:
				return
			}
		}
	gather:
		for len(batch) < db.maxBatch {
			select {
			case j := <-db.jobs:
				batch = append(batch, j)
			default:
				break gather
			}
		}
		db.commit(batch)
		clear(batch)
	}
}

// commit runs one batch and tells everyone in it how it ended.
func (db *DB) commit(batch []*job) {
	live := batch[:0]
	for _, j := range batch {
		if j.state.CompareAndSwap(jobQueued, jobTaken) {
			live = append(live, j)
		}
	}
	if len(live) == 0 {
		return
	}
	// After a failed fsync the kernel may have dropped pages that it calls
	// written, so the log cannot be trusted until it has been moved into the
	// main file and that file synced. Until then every record is refused.
	if err := db.recoverSync(); err != nil {
		finish(live, err)
		return
	}
	committed, err := db.transact(live)
	if err != nil {
		finish(committed, err)
		return
	}
	if len(committed) == 0 {
		return
	}
	var waiting []waiter
	var now []*job
	for _, j := range committed {
		if j.synced != nil {
			waiting = append(waiting, waiter{tell: j.synced})
			now = append(now, j)
		} else if j.durable {
			waiting = append(waiting, waiter{done: j.done})
		} else {
			now = append(now, j)
		}
	}
	db.syncer.request(waiting) // before the answers: the fsync starts meanwhile
	finish(now, nil)
}

// transact runs the functions of a batch in one transaction. Those that fail
// are answered here; it returns the rest, and an error if they share one.
func (db *DB) transact(batch []*job) (rest []*job, err error) {
	tx, err := db.writer.BeginTx(context.Background(), nil)
	if err != nil {
		return batch, fmt.Errorf("begin a write: %w", err)
	}
	rest = make([]*job, 0, len(batch))
	for i, j := range batch {
		failure, undone := runOne(tx, j.fn, len(batch) > 1)
		if failure == nil {
			rest = append(rest, j)
			continue
		}
		j.done <- failure
		if !undone {
			// SQLite ends the whole transaction on a full disk or an I/O
			// error, so nobody's change in this batch exists any more.
			_ = tx.Rollback()
			return append(rest, batch[i+1:]...), fmt.Errorf("write state: the shared transaction failed: %w", failure)
		}
	}
	if err := tx.Commit(); err != nil {
		_ = rollback(db.writer)
		return rest, fmt.Errorf("commit state: %w", err)
	}
	return rest, nil
}

// runOne runs one function, behind a savepoint if it shares the transaction.
// undone reports that after a failure the transaction is as it was before.
func runOne(tx *sql.Tx, fn func(*sql.Tx) error, shared bool) (failure error, undone bool) {
	if !shared {
		return guarded(tx, fn), false
	}
	if _, err := tx.Exec("SAVEPOINT one"); err != nil {
		return fmt.Errorf("begin a write: %w", err), false
	}
	if failure = guarded(tx, fn); failure != nil {
		_, err := tx.Exec("ROLLBACK TO one")
		undone = err == nil
	}
	if _, err := tx.Exec("RELEASE one"); err != nil {
		return errors.Join(failure, fmt.Errorf("end a write: %w", err)), false
	}
	return failure, undone
}

// guarded turns a panic of fn into an error: one caller's mistake must not
// take the writer, and with it every decision, down.
func guarded(tx *sql.Tx, fn func(*sql.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("write state: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(tx)
}

// rollback ends a transaction that a failed COMMIT has left open: SQLite keeps
// it open after some errors, database/sql believes that it is over.
func rollback(db *sql.DB) error {
	_, err := db.Exec("ROLLBACK")
	return err // "no transaction is active" is the usual, welcome answer
}

func finish(jobs []*job, err error) {
	for _, j := range jobs {
		j.done <- err
	}
}

// recoverSync makes the state durable again after an fsync has failed.
func (db *DB) recoverSync() error {
	broken := db.syncer.failure()
	if broken == nil {
		return nil
	}
	var busy, frames, moved int
	row := db.writer.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)")
	if err := row.Scan(&busy, &frames, &moved); err != nil {
		return fmt.Errorf("write state: the disk failed (%w) and has not recovered: %w", broken, err)
	}
	if busy != 0 || frames != moved {
		return fmt.Errorf("write state: the disk failed (%w) and a reader delays the recovery", broken)
	}
	db.syncer.recovered()
	return nil
}
