package kept_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/undo"
	"github.com/toolward/toolward/undo/kept"
)

// world is a person's home with a project in it.
type world struct {
	*testing.T
	home, project string
	kept          *kept.Workspaces
}

func newWorld(t *testing.T, limits undo.Limits) *world {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, home: home, project: filepath.Join(home, "project")}
	w.write("a", "before")
	w.open(limits)
	return w
}

func (w *world) options(limits undo.Limits) kept.Options {
	layout := place.Layout{Home: w.home, StateDir: filepath.Join(w.home, ".toolward")}
	return kept.Options{
		Dir: filepath.Join(layout.StateDir, "undo"), Limits: limits, Workspace: layout.CheckWorkspace, Log: slog.New(slog.DiscardHandler),
	}
}

func (w *world) open(limits undo.Limits) {
	w.Helper()
	o := w.options(limits)
	if err := os.MkdirAll(filepath.Dir(o.Dir), 0o700); err != nil {
		w.Fatal(err)
	}
	w.kept = kept.Open(w.Context(), o)
	w.Cleanup(func() { _ = w.kept.Close() })
}

func (w *world) write(name, content string) {
	w.Helper()
	at := filepath.Join(w.project, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
		w.Fatal(err)
	}
}

// request is a call in a workspace that changes something.
func request(workspace string) *toolward.Request {
	return &toolward.Request{
		Call:  toolward.Call{Session: "agent:coder:x", Caller: toolward.Caller{Agent: "coder", Workspace: workspace}},
		Tool:  &toolward.Tool{Name: "exec"},
		Facts: toolward.Facts{Mutates: true, Command: "make"},
	}
}

func (w *world) begin() string {
	w.Helper()
	id, err := w.kept.Begin(w.Context(), request(w.project))
	if err != nil || id == "" {
		w.Fatalf("%q, %v", id, err)
	}
	return id
}

// changed are the paths that a call changed, "?" if nobody knows, "" if it is not kept.
func (w *world) changed(id string) string {
	w.Helper()
	for _, c := range w.kept.Calls() {
		if c.ID != id {
			continue
		}
		if !c.Ended() {
			return "?"
		}
		changes, err := w.kept.Changes(&c.Call)
		if err != nil {
			w.Fatal(err)
		}
		var names []string
		for _, one := range changes {
			names = append(names, one.Path)
		}
		return strings.Join(names, " ")
	}
	return ""
}

func TestWhatACallChangesIsKnown(t *testing.T) {
	w := newWorld(t, undo.Limits{})
	id := w.begin()
	w.write("b", "new")
	w.kept.End(t.Context(), id, nil)
	if got := w.changed(id); got != "b" {
		t.Errorf("changed %q", got)
	}
}

// What goes on in the background counts as what its call did until the next call begins, and not longer.
func TestACommandInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, next := range map[string]bool{"ends by itself": false, "goes on while the next call runs": true} {
			w := newWorld(t, undo.Limits{})
			id, running := w.begin(), make(chan struct{})
			w.kept.End(t.Context(), id, running)
			w.write("late", name)
			if got := w.changed(id); got != "?" {
				t.Errorf("%s: while it runs it changed %q", name, got)
			}
			if next {
				other := w.begin()
				w.write("other", "")
				w.kept.End(t.Context(), other, nil)
				if got := w.changed(other); got != "other" {
					t.Errorf("%s: the next call changed %q", name, got)
				}
			}
			close(running)
			synctest.Wait()
			if got := w.changed(id); got != "late" {
				t.Errorf("%s: it changed %q", name, got)
			}
			if err := w.kept.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTwoCallsAtOnce(t *testing.T) {
	w := newWorld(t, undo.Limits{})
	var calls sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		calls.Go(func() {
			id, err := w.kept.Begin(t.Context(), request(w.project))
			if err != nil {
				t.Error(err)
			}
			if err := os.WriteFile(filepath.Join(w.project, fmt.Sprint(i)), nil, 0o644); err != nil {
				t.Error(err)
			}
			w.kept.End(t.Context(), id, nil)
			ids[i] = id
		})
	}
	calls.Wait()
	for i, id := range ids {
		if got := w.changed(id); !strings.Contains(" "+got+" ", fmt.Sprintf(" %d ", i)) {
			t.Errorf("call %d changed %q", i, got)
		}
	}
}

func TestWhatIsNotCovered(t *testing.T) {
	w := newWorld(t, undo.Limits{Entries: 2})
	if gap := w.kept.Gap(t.Context(), request(w.project)); gap != "" {
		t.Errorf("a project: %s", gap)
	}
	for _, dir := range []string{w.home, "/", filepath.Dir(w.home)} {
		if gap := w.kept.Gap(t.Context(), request(dir)); !strings.Contains(gap, "holds "+w.home) {
			t.Errorf("%s: %q", dir, gap)
		}
		if id, err := w.kept.Begin(t.Context(), request(dir)); id != "" || err != nil {
			t.Errorf("%s is kept: %q, %v", dir, id, err)
		}
	}
	reads := request(w.home)
	reads.Facts.Analysis = &toolward.CommandAnalysis{Understood: true, Reads: true}
	if gap := w.kept.Gap(t.Context(), reads); gap != "" {
		t.Errorf("a command that reads: %s", gap)
	}
	// It grows after it was looked through: one call is refused, the next one asks.
	w.write("b", "")
	w.write("c", "")
	if _, err := w.kept.Begin(t.Context(), request(w.project)); !errors.Is(err, undo.ErrTooMany) {
		t.Errorf("grown: %v", err)
	}
	if gap := w.kept.Gap(t.Context(), request(w.project)); !strings.Contains(gap, "more files than are kept") {
		t.Errorf("grown: %q", gap)
	}
	if len(w.kept.Calls()) != 0 {
		t.Errorf("left over: %+v", w.kept.Calls())
	}
}

func TestWithoutAStoreCallsAreRefusedUntilThereIsOne(t *testing.T) {
	w := newWorld(t, undo.Limits{})
	second := kept.Open(t.Context(), w.options(undo.Limits{}))
	defer second.Close()
	if _, err := second.Begin(t.Context(), request(w.project)); !errors.Is(err, undo.ErrLocked) {
		t.Errorf("two have one store: %v", err)
	}
	if err := w.kept.Close(); err != nil {
		t.Fatal(err)
	}
	if id, err := second.Begin(t.Context(), request(w.project)); id == "" || err != nil {
		t.Errorf("free again: %q, %v", id, err)
	}
}

// A process is killed while a call runs.
func TestOfACallThatWasCutOffNobodyKnowsHowItEnded(t *testing.T) {
	w := newWorld(t, undo.Limits{})
	id := w.begin()
	w.write("a", "after")
	if err := w.kept.Close(); err != nil { // nothing is ended by it
		t.Fatal(err)
	}
	w.open(undo.Limits{})
	calls := w.kept.Calls()
	if len(calls) != 1 || calls[0].ID != id || calls[0].Ended() || calls[0].Running {
		t.Fatalf("%+v", calls)
	}
	if _, err := w.kept.TakeBack(t.Context(), undo.Request{ID: id}, undo.Call{}); err == nil {
		t.Error("what it changed was guessed")
	}
	if _, err := w.kept.TakeBack(t.Context(), undo.Request{ID: id, Everything: true}, undo.Call{}); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(w.project, "a")); err != nil || string(got) != "before" {
		t.Errorf("%q, %v", got, err)
	}
}
