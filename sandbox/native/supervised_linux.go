package native

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"github.com/toolward/toolward/sandbox"
)

// findSupervised finds what earlier gateways have left on purpose. What has ended meanwhile is tidied up.
func (e *Engine) findSupervised(ctx context.Context) error {
	all, err := e.supervised.load()
	failed := []error{err}
	for name, r := range all {
		if _, used := e.boxes.Look(name); used { // by this gateway
			delete(all, name)
			continue
		}
		if !lives(r.ID) || !r.Ready {
			failed = append(failed, e.endSupervised(ctx, r))
			delete(all, name)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.supervised.found = all
	return errors.Join(failed...)
}

// supervisedGroup reports whether a control group is that of a sandbox which goes on without a gateway.
func (e *Engine) supervisedGroup(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.supervised.found {
		if r.Group != nil && len(r.Group.Dirs) > 0 && filepath.Base(r.Group.Dirs[0]) == name {
			return true
		}
	}
	return false
}

// known is the record of what goes on and was not taken over yet; nil if there is none. One that has ended is tidied up.
func (e *Engine) known(ctx context.Context, name string) *record {
	e.mu.Lock()
	r := e.supervised.found[name]
	e.mu.Unlock()
	if r == nil || lives(r.ID) {
		return r
	}
	if e.takeSupervised(name) == r {
		if err := e.endSupervised(ctx, r); err != nil {
			e.log.Warn("what a sandbox has left could not all be removed", "sandbox", name, "error", err)
		}
	}
	return nil
}

// takeSupervised takes a record out of the list: who has it takes the sandbox over, ends it, or puts it back.
func (e *Engine) takeSupervised(name string) *record {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.supervised.found[name]
	delete(e.supervised.found, name)
	return r
}

func (e *Engine) putSupervised(r *record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.supervised.found == nil {
		e.supervised.found = map[string]*record{}
	}
	e.supervised.found[r.Name] = r
}

// endSupervised ends a sandbox by its record, and removes what is left of it. What cannot be ended stays known.
func (e *Engine) endSupervised(ctx context.Context, r *record) error {
	h, err := findHelper(r.ID)
	switch {
	case err == nil:
		h.kill()
		select {
		case <-h.exited:
			h.leave()
		case <-ctx.Done():
			h.leave()
			e.putSupervised(r)
			return sandbox.Errorf(sandbox.CodeTimeout, "wait for the end of sandbox %s: %v", r.Name, context.Cause(ctx))
		}
	case !errors.Is(err, errGone):
		e.putSupervised(r)
		return sandbox.Errorf(sandbox.CodeFailed, "end sandbox %s: %v", r.Name, err)
	}
	if g := r.group(); g != nil && ofThisBoot(r.ID) {
		g.kill()
		if err := g.remove(); err != nil {
			e.putSupervised(r)
			return sandbox.Errorf(sandbox.CodeFailed, "sandbox %s has ended, but its control group is still there: %v", r.Name, err)
		}
	}
	return e.supervised.remove(r.Name)
}

func (e *Engine) supervisedNames() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.supervised.found))
}
