package store

import (
	"sync"
	"time"
)

// queue is where jobs wait for a leader. At most one leader is at work between
// take and handOver.
type queue struct {
	max int // jobs in one batch

	mu      sync.Mutex
	jobs    []*job
	hasty   int  // jobs that are not durable: they wait for a commit only
	leading bool // somebody leads, or has been told to
	closed  bool
	idle    sync.Cond // signaled when a closed queue has become idle
	onDisk  int       // batches that are committed but not yet on disk

	changed chan struct{} // capacity 1: a batch reached the disk, or a hasty job came

	// Used by the leader only.
	recent [2]int // sizes of the last two batches
	linger *time.Timer
	batch  []*job
}

func newQueue(maxBatch int) *queue {
	q := &queue{max: maxBatch, changed: make(chan struct{}, 1), linger: time.NewTimer(time.Hour)}
	q.linger.Stop()
	q.idle.L = &q.mu
	return q
}

// join adds a job, and makes its caller the leader if there is none.
func (q *queue) join(j *job) (leads bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, ErrClosed
	}
	q.jobs = append(q.jobs, j)
	if !j.durable {
		q.hasty++
		q.notify()
	}
	if !q.leading {
		q.leading, leads = true, true
		j.state.Store(jobTaken)
	}
	return leads, nil
}

func (q *queue) notify() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// take returns the leader's batch: its own job and those that wait.
func (q *queue) take() []*job {
	q.hold()
	q.mu.Lock()
	n := min(len(q.jobs), q.max)
	q.batch = q.batch[:0]
	for i, j := range q.jobs[:n] {
		if !j.durable {
			q.hasty--
		}
		// The leader's own job comes first, and is taken already.
		if i == 0 || j.state.CompareAndSwap(jobQueued, jobTaken) {
			q.batch = append(q.batch, j)
		}
	}
	rest := copy(q.jobs, q.jobs[n:])
	clear(q.jobs[rest:])
	q.jobs = q.jobs[:rest]
	q.mu.Unlock()
	q.recent[0], q.recent[1] = q.recent[1], len(q.batch)
	return q.batch
}

// lingerTime bounds how long a leader waits for others after large batches.
const lingerTime = 150 * time.Microsecond

// hold lets the batch grow where that makes everybody faster. While two
// batches are on their way to the disk, it waits for one of them to arrive;
// and after large batches it gives the callers that have just been answered
// the moment that they need to come back, instead of cutting their load into
// small pieces. Jobs that need no fsync are never held up.
func (q *queue) hold() {
	expected := (q.recent[0] + q.recent[1]) * 3 / 8
	late, armed := expected < 2, false
	for {
		q.mu.Lock()
		size, hasty, onDisk := len(q.jobs), q.hasty > 0, q.onDisk
		q.mu.Unlock()
		if hasty || size >= q.max || (onDisk < 2 && (late || size >= expected)) {
			break
		}
		if !late && !armed {
			q.linger.Reset(lingerTime)
			armed = true
		}
		select {
		case <-q.changed:
		case <-q.linger.C:
			late = true
		}
	}
	if armed {
		q.linger.Stop()
	}
}

// handOver ends the leader's work and makes the first who waits the next one.
func (q *queue) handOver() {
	clear(q.batch)
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) > 0 {
		if next := q.jobs[0]; next.state.CompareAndSwap(jobQueued, jobTaken) {
			next.done <- errLead
			return
		}
		if !q.jobs[0].durable {
			q.hasty--
		}
		rest := copy(q.jobs, q.jobs[1:])
		q.jobs[rest] = nil
		q.jobs = q.jobs[:rest]
	}
	q.leading = false
	if q.closed {
		q.idle.Broadcast()
	}
}

// syncing and synced count the batches on their way to the disk.
func (q *queue) syncing() {
	q.mu.Lock()
	q.onDisk++
	q.mu.Unlock()
}

func (q *queue) synced() {
	q.mu.Lock()
	q.onDisk--
	q.mu.Unlock()
	q.notify()
}

// close refuses new jobs and returns when the accepted ones are committed.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for q.leading {
		q.idle.Wait()
	}
}
