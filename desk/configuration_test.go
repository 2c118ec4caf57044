package desk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/desk"
)

// file is a configuration file of which a change may wait.
type file struct {
	waits   desk.ConfigChange
	applied string
	err     error
}

func (f *file) PendingChange() (desk.ConfigChange, bool) { return f.waits, f.waits.Revision != "" }

func (f *file) ApplyPending(revision string) error {
	if f.err == nil {
		f.applied = revision
	}
	return f.err
}

// seen lets the person look at the change for long enough.
func (w *world) seen(t *testing.T) {
	t.Helper()
	if _, waits, err := w.desk.PendingChange(w.person()); err != nil || !waits {
		t.Fatal(waits, err)
	}
	time.Sleep(510 * time.Millisecond)
}

func TestConfigurationIsApplied(t *testing.T) {
	o := operation{"apply", "approved", func(t *testing.T, w *world) {
		w.file.waits = desk.ConfigChange{Revision: "r1", Diff: "-old +new"}
		w.seen(t)
	}, func(ctx context.Context, w *world, v desk.Visitor) error {
		return w.desk.ApplyChange(ctx, v, "r1")
	}, func(w *world) bool { return w.file.applied == "r1" }}
	synctest.Test(t, o.loosening)
}

// Only what was seen for long enough, and still waits, is applied.
func TestConfigurationCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.file.waits = desk.ConfigChange{Revision: "r1"}
		apply := func(want desk.Code) {
			t.Helper()
			if err := w.desk.ApplyChange(t.Context(), w.person(), "r1"); desk.CodeOf(err) != want || w.file.applied != "" {
				t.Errorf("%v, want %s; applied %q", err, want, w.file.applied)
			}
		}
		apply(desk.NotShown)
		if _, _, err := w.desk.PendingChange(w.person()); err != nil {
			t.Fatal(err)
		}
		apply(desk.TooSoon)
		w.seen(t)
		w.file.waits.Revision = "r2"
		apply(desk.Changed)
		if len(w.events) != 0 {
			t.Errorf("recorded: %v", w.events)
		}
		w.file.waits.Revision, w.file.err = "r1", errors.New("no such tool")
		apply(desk.Failed)
		if len(w.events) != 2 || w.events[1].Data["event"] != "refused" {
			t.Errorf("recorded: %v", w.events)
		}
	})
}
