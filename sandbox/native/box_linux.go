package native

import (
	"context"
	"errors"

	"github.com/toolward/toolward/sandbox"
)

var _ sandbox.Handle = (*box)(nil)

// Runs reports whether it was made and the program inside answers.
func (b *box) Runs() bool {
	if b.client == nil || !b.running() {
		return false
	}
	select {
	case <-b.client.Client.Done():
		return false
	default:
		return true
	}
}

// end ends the sandbox and removes it from the engine.
func (b *box) end() error {
	b.once.Do(func() {
		if b.helper != nil {
			if !b.namespaced() {
				endAll(b.helper.pid)
			}
			// The first process of a process namespace takes all others with it.
			b.helper.end()
		}
		if b.group != nil {
			b.group.kill()
			b.err = b.group.remove()
		}
		b.noting.Lock()
		defer b.noting.Unlock()
		if b.record != nil {
			b.err = errors.Join(b.err, b.engine.supervised.remove(b.record.Name))
		}
		if b.temporary != "" {
			b.removeTemporary()
		}
		b.mu.Lock()
		b.state.Running = false
		b.mu.Unlock()
		b.engine.boxes.Leave(b.state.Name, b)
		close(b.done)
	})
	<-b.done
	if b.err != nil {
		return sandbox.Errorf(sandbox.CodeFailed, "sandbox %s has ended, but something of it is still there: %v", b.state.Name, b.err)
	}
	return nil
}

// State is the sandbox as the engine knows it.
func (b *box) State() sandbox.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Done is closed when the sandbox has ended.
func (b *box) Done() <-chan struct{} { return b.done }

// Close ends the sandbox: a native one lives as long as somebody holds it, unless it is to go on without.
func (b *box) Close() error {
	if b.record != nil {
		b.letGo()
		return nil
	}
	return b.end()
}

// Stats is what the sandbox uses, as its control group counts it where it has one.
func (b *box) Stats(context.Context) (sandbox.Stats, error) {
	if !b.running() {
		return sandbox.Stats{}, sandbox.Errorf(sandbox.CodeUnavailable, "sandbox %s has ended", b.state.Name)
	}
	if b.group == nil {
		return b.usage(), nil
	}
	return b.group.stats(), nil
}
