package sandbox

import (
	"context"
	"sync"
)

// WaitingRoom has the sandboxes of an engine by their names. Of those who want one at the same time, one makes it and
// the others wait: two would be made of one name, or one would be used half made. Its zero value is ready.
type WaitingRoom[B Made] struct {
	mu     sync.Mutex
	seats  map[string]*seat[B]
	closed bool
}

// Made is a sandbox that an engine makes.
type Made interface {
	comparable
	Handle // Runs is false of what was not made
}

// seat is what one name stands for.
type seat[B Made] struct {
	box         B
	hash, scope string
	ready       chan struct{} // closed when it was made, or could not be
	left        chan struct{} // closed when the name is free again
}

// Ensure returns the running sandbox of a name. Where there is none, begin says what will be one, and fill makes it; when
// that fails, the name is free again.
func (r *WaitingRoom[B]) Ensure(ctx context.Context, spec *Spec, begin func() B, fill func(B) error) (B, error) {
	var none B
	for {
		p, mine, err := r.claim(spec, begin)
		if err != nil {
			return none, err
		}
		if mine {
			err := fill(p.box)
			if err != nil {
				r.Leave(spec.Name, p.box)
			}
			close(p.ready)
			return p.box, err
		}
		if err := wait(ctx, p.ready, "wait for sandbox "+spec.Name); err != nil {
			return none, err
		}
		if p.box.Runs() {
			return p.box, nil
		}
		// Its maker has failed, or it has ended in between: make it anew, once nothing of it is left.
		if err := wait(ctx, p.left, "wait for the end of sandbox "+spec.Name); err != nil {
			return none, err
		}
	}
}

// claim returns the seat of a name; mine, if the caller has to fill it.
func (r *WaitingRoom[B]) claim(spec *Spec, begin func() B) (p *seat[B], mine bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false, Errorf(CodeUnavailable, "the sandbox engine is closed")
	}
	if p := r.seats[spec.Name]; p != nil {
		if p.hash != spec.Hash || p.scope != spec.ScopeKey {
			return nil, false, Errorf(CodeConflict, "sandbox %s exists and was made for %q from another configuration", spec.Name, p.scope)
		}
		return p, false, nil
	}
	p = &seat[B]{box: begin(), hash: spec.Hash, scope: spec.ScopeKey, ready: make(chan struct{}), left: make(chan struct{})}
	if r.seats == nil {
		r.seats = map[string]*seat[B]{}
	}
	r.seats[spec.Name] = p
	return p, true, nil
}

// Leave frees the name of a sandbox that has ended. It may be called more than once.
func (r *WaitingRoom[B]) Leave(name string, box B) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.seats[name]; p != nil && p.box == box {
		delete(r.seats, name)
		close(p.left)
	}
}

// Look returns the sandbox of a name, also one that is being made.
func (r *WaitingRoom[B]) Look(name string) (box B, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.seats[name]; p != nil {
		return p.box, true
	}
	return box, false
}

// Settled returns the sandbox of a name once it was made, or could not be.
func (r *WaitingRoom[B]) Settled(ctx context.Context, name string) (box B, ok bool, err error) {
	r.mu.Lock()
	p := r.seats[name]
	r.mu.Unlock()
	if p == nil {
		return box, false, nil
	}
	return p.box, true, wait(ctx, p.ready, "wait for sandbox "+name)
}

// All are the sandboxes that were made, and not those that are being made.
func (r *WaitingRoom[B]) All() []B {
	r.mu.Lock()
	defer r.mu.Unlock()
	var made []B
	for _, p := range r.seats {
		select {
		case <-p.ready:
			made = append(made, p.box)
		default:
		}
	}
	return made
}

// Close lets nobody begin another sandbox, and returns the names of those there are and of those that are being made.
// It is false the second time.
func (r *WaitingRoom[B]) Close() (names []string, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false
	}
	r.closed = true
	for name := range r.seats {
		names = append(names, name)
	}
	return names, true
}

func wait(ctx context.Context, done <-chan struct{}, what string) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return Errorf(CodeTimeout, "%s: %v", what, context.Cause(ctx))
	}
}
