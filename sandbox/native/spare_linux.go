package native

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

func (s *spare) end() error {
	s.helper.end()
	if s.group == nil {
		return nil
	}
	s.group.kill()
	return s.group.remove()
}

// takeSpare returns a waiting helper, or a new one.
func (e *Engine) takeSpare(ctx context.Context, who identity) (*spare, error) {
	e.mu.Lock()
	var s *spare
	for list := e.spares[who]; len(list) > 0 && s == nil; list = e.spares[who] {
		s, e.spares[who] = list[len(list)-1], list[:len(list)-1]
		select {
		case <-s.helper.exited: // somebody has killed it
			dead := s
			s = nil
			e.live.Go(func() { _ = dead.end() }) // the next start removes what could not be removed
		default:
		}
	}
	e.mu.Unlock()
	if s != nil {
		return s, nil
	}
	return e.newSpare(ctx, who)
}

// refillDelay keeps the making of the next spare out of the way of the sandbox that took the last, and of its first
// command.
const refillDelay = 50 * time.Millisecond

// refill starts helpers until as many wait as are wanted.
func (e *Engine) refill(who identity) {
	want := e.options.Spares
	if want == 0 {
		want = 1
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.refilling || len(e.spares[who]) >= want {
		return
	}
	e.refilling = true
	e.live.Go(func() {
		time.Sleep(refillDelay)
		ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
		defer cancel()
		s, err := e.newSpare(ctx, who)
		e.mu.Lock()
		e.refilling = false
		keep := err == nil && !e.closed
		if keep {
			e.dropOthers(who)
			e.spares[who] = append(e.spares[who], s)
		}
		e.mu.Unlock()
		switch {
		case err != nil:
			e.log.Warn("no sandbox could be prepared", "error", err)
		case !keep:
			_ = s.end() // the next start removes what could not be removed
		default:
			e.refill(who)
		}
	})
}

// dropOthers ends the spares of other users: the next sandbox is most likely for the one who had the last. e.mu is held.
func (e *Engine) dropOthers(who identity) {
	for other, list := range e.spares {
		if other == who {
			continue
		}
		delete(e.spares, other)
		for _, s := range list {
			e.live.Go(func() { _ = s.end() }) // the next start removes what could not be removed
		}
	}
}

// newSpare starts a helper in its own namespaces and group and has it make the base.
func (e *Engine) newSpare(ctx context.Context, who identity) (*spare, error) {
	s := &spare{}
	hierarchies, err := e.groups()
	if err == nil {
		name := e.owner + "-" + strconv.FormatInt(e.serial.Add(1), 10)
		if s.group, err = hierarchies.create(name); err != nil {
			return nil, fmt.Errorf("make a control group: %w", err)
		}
	}
	if s.helper, err = e.startHelper(ctx, namespaces, who); err != nil {
		_ = s.group.remove() // the first error counts
		return nil, fmt.Errorf("start the helper: %w", err)
	}
	if s.group != nil {
		err = s.group.add(s.helper.pid)
	}
	if err == nil {
		err = s.helper.send(ctx, basePlan(), nil)
	}
	if err != nil {
		_ = s.end() // the first error counts
		return nil, explainSetup(err)
	}
	return s, nil
}
