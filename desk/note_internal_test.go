package desk

import (
	"context"
	"testing"

	"github.com/toolward/toolward/audit"
)

// attentive is a record that writes nothing for somebody who has hung up.
type attentive struct{ written int }

func (a *attentive) Append(ctx context.Context, _ audit.Event) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	a.written++
	return int64(a.written), nil
}

// What somebody did is recorded also if they hang up before it is written: nobody takes something away without a trace by closing
// the connection in time. What is about to be done for them is not done.
func TestWhoeverHangsUp(t *testing.T) {
	log := &attentive{}
	d, err := New(Options{Audit: log})
	if err != nil {
		t.Fatal(err)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if d.note(gone, audit.Event{Type: audit.TypeConfig}); log.written != 1 {
		t.Error("what was done is not recorded")
	}
	if err := d.record(gone, audit.Event{Type: audit.TypeConfig}); CodeOf(err) != Unrecorded {
		t.Errorf("what is about to be done: %v", err)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("there is a desk without a record")
	}
}
