package protocol

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// repeats remembers the answers to requests that must not be carried out twice, by the key that the client gave. A
// client that did not get an answer sends the request again with the same key.
type repeats struct {
	mu   sync.Mutex
	kept map[repeatKey]*kept
	next []repeatKey // in the order in which they ended; those that still run are not in it, so nothing drops them
}

// repeatKey is a client's key. Keys of other clients are other keys: an answer is nobody else's business.
type repeatKey struct{ who, method, key string }

type kept struct {
	params [sha256.Size]byte
	ended  time.Time
	done   chan struct{}
	answer any
	failed *Error
}

const (
	keepAnswers = 5 * time.Minute
	maxKept     = 1000
)

func newRepeats() *repeats { return &repeats{kept: map[repeatKey]*kept{}} }

// do carries a request out, or gives the answer to the same one before. A repeat of one that is still running waits for
// it. Another request with the same key is refused.
func (r *repeats) do(ctx context.Context, key repeatKey, params []byte, run func() (any, *Error)) (any, *Error) {
	sum := sha256.Sum256(params)
	r.mu.Lock()
	r.forget(time.Now())
	if old := r.kept[key]; old != nil {
		r.mu.Unlock()
		if old.params != sum {
			return nil, invalid("idempotencyKey was used for another request")
		}
		select {
		case <-old.done:
			return old.answer, old.failed
		case <-ctx.Done():
			return nil, unavailable("the connection ended")
		}
	}
	k := &kept{params: sum, done: make(chan struct{})}
	r.kept[key] = k
	r.mu.Unlock()
	k.failed = unavailable("it was not carried out") // for a run that panics
	defer r.end(key, k)
	k.answer, k.failed = run()
	return k.answer, k.failed
}

// end keeps the answer of what has been carried out from now on.
func (r *repeats) end(key repeatKey, k *kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(k.done)
	if _, waits := k.answer.(pendingAnswer); waits {
		delete(r.kept, key) // people have not answered yet: the request is to be made again, with its key
		return
	}
	k.ended = time.Now()
	r.next = append(r.next, key)
}

// forget drops what is too old or too much. The caller holds the lock.
func (r *repeats) forget(now time.Time) {
	for len(r.next) > 0 {
		k := r.kept[r.next[0]]
		if now.Sub(k.ended) < keepAnswers && len(r.next) < maxKept {
			return
		}
		delete(r.kept, r.next[0])
		r.next = r.next[1:]
	}
}
