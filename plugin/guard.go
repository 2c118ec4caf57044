package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// errTimeout is what a handler that did not answer in time has done.
var errTimeout = errors.New("no answer in time")

// crash is a panic of a handler.
type crash struct {
	value any
	stack []byte
}

func (c *crash) Error() string { return fmt.Sprintf("it panicked: %v", c.value) }

// guarded calls a handler and returns in time, whatever it does: it runs in a goroutine of its own, which is given up
// at the time-out. What it says later goes nowhere. A handler with many runs that never ended is not called any more:
// it would fill the memory.
func guarded[T any](ctx context.Context, r *registration, f func(context.Context) (T, error)) (T, error) {
	var zero T
	if n := r.hung.Load(); n >= maxHung {
		return zero, fmt.Errorf("%d earlier calls of it have never ended", n)
	}
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	var settled atomic.Bool // by the handler's end or by giving it up, whichever comes first
	go func() {
		var a answer
		ended := false
		defer func() {
			if settled.Swap(true) {
				defer r.hung.Add(-1)
			}
			if v := recover(); v != nil {
				a = answer{err: &crash{v, debug.Stack()}}
			} else if !ended {
				a = answer{err: errors.New("it ended its goroutine without an answer")}
			}
			answers <- a
		}()
		a.value, a.err = f(limited)
		ended = true
	}()
	select {
	case a := <-answers:
		switch {
		case ctx.Err() != nil:
			return zero, withdrawn(ctx)
		case a.err != nil && errors.Is(limited.Err(), context.DeadlineExceeded):
			return zero, errTimeout
		}
		return a.value, a.err
	case <-limited.Done():
		if !settled.Swap(true) {
			r.hung.Add(1)
		}
		if ctx.Err() != nil {
			return zero, withdrawn(ctx)
		}
		return zero, errTimeout
	}
}

func withdrawn(ctx context.Context) error { return fmt.Errorf("the call was withdrawn: %w", ctx.Err()) }
