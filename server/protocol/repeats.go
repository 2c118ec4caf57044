package protocol

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"
)

// repeats remembers the answers to requests that must not be carried out twice, by the key that the client gave. A
// client that did not get an answer sends the request again with the same key.
type repeats struct {
	mu   sync.Mutex
	kept map[repeatKey]*kept
	next []repeatKey // in the order in which they began
}

// repeatKey is a client's key. Keys of other clients are other keys: an answer is nobody else's business.
type repeatKey struct{ who, method, key string }

type kept struct {
	params [sha256.Size]byte
	began  time.Time
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
	k := &kept{params: sum, began: time.Now(), done: make(chan struct{})}
	r.kept[key] = k
	r.next = append(r.next, key)
	r.mu.Unlock()
	k.failed = unavailable("it was not carried out") // for a run that panics
	defer close(k.done)
	k.answer, k.failed = run()
	if _, waits := k.answer.(pendingAnswer); waits {
		r.drop(key, k) // people have not answered yet: the request is to be made again, with its key
	}
	return k.answer, k.failed
}

func (r *repeats) drop(key repeatKey, k *kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept[key] == k {
		delete(r.kept, key)
		r.next = slices.DeleteFunc(r.next, func(other repeatKey) bool { return other == key })
	}
}

// forget drops what is too old or too much. The caller holds the lock.
func (r *repeats) forget(now time.Time) {
	for len(r.next) > 0 {
		k := r.kept[r.next[0]]
		if now.Sub(k.began) < keepAnswers && len(r.next) < maxKept {
			return
		}
		delete(r.kept, r.next[0])
		r.next = r.next[1:]
	}
}
