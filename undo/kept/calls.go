package kept

import (
	"context"
	"time"

	"github.com/toolward/toolward/undo"
)

// Call is a call that people can take back.
type Call struct {
	undo.Call
	Running bool // it has begun and not ended. One that is neither running nor ended was cut off: nobody knows what it changed
}

// Calls lists the calls that can be taken back, newest first; none if there is no store.
func (w *Workspaces) Calls() []Call {
	store, err := w.opened(context.Background())
	if err != nil {
		return nil
	}
	calls := store.Calls()
	list := make([]Call, len(calls))
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range calls {
		list[i] = Call{c, w.open[c.ID] != nil && !c.Ended()}
	}
	return list
}

// Changes is what a call that has ended changed.
func (w *Workspaces) Changes(c *undo.Call) ([]undo.Change, error) {
	store, err := w.opened(context.Background())
	if err != nil {
		return nil, err
	}
	return store.Changes(c.Before, c.After)
}

// Preview says what taking back would do.
func (w *Workspaces) Preview(ctx context.Context, r undo.Request) (*undo.Taken, error) {
	store, err := w.opened(ctx)
	if err != nil {
		return nil, err
	}
	return store.Preview(ctx, r)
}

// TakeBack takes calls back. as says who does it, for people, and gets an ID by which it can be taken back itself.
func (w *Workspaces) TakeBack(ctx context.Context, r undo.Request, as undo.Call) (*undo.Taken, error) {
	store, err := w.opened(ctx)
	if err != nil {
		return nil, err
	}
	as.At = time.Now()
	if as.ID == "" {
		as.ID = NewID()
	}
	return store.TakeBack(ctx, r, as)
}
