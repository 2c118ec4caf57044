package plugin

import (
	"sync"
	"sync/atomic"
)

// Bounds of the hooks that nobody waits for.
const (
	voidWorkers = 16
	voidQueue   = 1024
)

// queue runs jobs beside everything else, in at most [voidWorkers] goroutines. It drops what does not fit: a plug-in
// that cannot keep up must cost neither memory nor time of the calls.
type queue struct {
	mu      sync.Mutex
	jobs    []func()
	workers int
	closed  bool
	idle    sync.WaitGroup
	dropped atomic.Uint64
}

// put takes a job, or drops it and says false.
func (q *queue) put(job func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed, q.workers == voidWorkers && len(q.jobs) >= voidQueue:
		q.dropped.Add(1)
		return false
	case q.workers < voidWorkers:
		q.workers++
		q.idle.Add(1)
		go q.work(job)
	default:
		q.jobs = append(q.jobs, job)
	}
	return true
}

func (q *queue) work(job func()) {
	defer q.idle.Done()
	for job != nil {
		job()
		job = q.next()
	}
}

// next is the job to do now; nil ends the worker.
func (q *queue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == 0 {
		q.workers--
		return nil
	}
	job := q.jobs[0]
	q.jobs[0] = nil
	q.jobs = q.jobs[1:]
	return job
}

// close takes no more jobs. The returned channel closes when those taken are done.
func (q *queue) close() <-chan struct{} {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	done := make(chan struct{})
	go func() { q.idle.Wait(); close(done) }()
	return done
}
