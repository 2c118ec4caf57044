package desk_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/undo"
	"github.com/toolward/toolward/undo/kept"
)

// undoWorld is a desk with a workspace, in which a session has changed one file.
type undoWorld struct {
	*world
	kept *kept.Workspaces
	file string
	call string
}

func newUndoWorld(t *testing.T) *undoWorld {
	t.Helper()
	w := &undoWorld{world: newWorld(t)}
	dir := t.TempDir()
	w.file = filepath.Join(dir, "a")
	must(t, os.WriteFile(w.file, []byte("before"), 0o600))
	w.kept = kept.Open(t.Context(), kept.Options{
		Dir: filepath.Join(w.home, "undo"), Workspace: func(dir string) (string, error) { return dir, nil }, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { must(t, w.kept.Close()) })
	var err error
	w.call, err = w.kept.Begin(t.Context(), &toolward.Request{
		Call:  toolward.Call{Session: "agent:coder:x", Caller: toolward.Caller{Agent: "coder", Workspace: dir}},
		Tool:  &toolward.Tool{Name: "write"},
		Facts: toolward.Facts{Mutates: true},
	})
	must(t, err)
	must(t, os.WriteFile(w.file, []byte("after"), 0o600))
	w.kept.End(t.Context(), w.call, nil)
	w.desk, err = desk.New(desk.Options{Audit: w, Undo: w.kept})
	must(t, err)
	return w
}

func (w *undoWorld) content() string {
	w.t.Helper()
	content, err := os.ReadFile(w.file)
	must(w.t, err)
	return string(content)
}

func TestOnlyAPersonSeesAndTakesBackWhatCallsDid(t *testing.T) {
	w := newUndoWorld(t)
	for who, v := range strangers() {
		if list, err := w.desk.UndoCalls(t.Context(), v, desk.UndoFilter{}); desk.CodeOf(err) != desk.NotAllowed || len(list) > 0 {
			t.Errorf("%s lists: %v", who, err)
		}
		if _, err := w.desk.UndoCall(t.Context(), v, w.call); desk.CodeOf(err) != desk.NotAllowed {
			t.Errorf("%s looks: %v", who, err)
		}
		for _, r := range []desk.UndoRequest{{Call: w.call}, {Call: w.call, Preview: true}, {Session: "agent:coder:x"}} {
			if _, err := w.desk.TakeBack(t.Context(), v, r); desk.CodeOf(err) != desk.NotAllowed {
				t.Errorf("%s takes back: %v", who, err)
			}
		}
	}
	if got := w.content(); got != "after" || len(w.events) > 0 {
		t.Errorf("%q, recorded %v", got, w.events)
	}
}

func TestTakingBackIsRecordedBeforeItIsDone(t *testing.T) {
	w := newUndoWorld(t)
	w.full = true
	if _, err := w.desk.TakeBack(t.Context(), w.person(), desk.UndoRequest{Call: w.call}); desk.CodeOf(err) != desk.Unrecorded {
		t.Errorf("without a record: %v", err)
	}
	if got := w.content(); got != "after" {
		t.Fatalf("without a record it is %q", got)
	}
	w.full, w.changed = false, func() bool { return w.content() != "after" }
	answer, err := w.desk.TakeBack(t.Context(), w.person(), desk.UndoRequest{Session: "agent:coder:x"})
	must(t, err)
	if !answer.Done || len(answer.Workspaces) != 1 || w.content() != "before" {
		t.Fatalf("%+v, %q", answer, w.content())
	}
	if len(w.events) != 2 || w.events[0].Type != audit.TypeUndo || w.events[1].Data["restored"] != 1 || w.early[0] || !w.early[1] {
		t.Errorf("recorded %+v", w.events)
	}
	// It is a call itself.
	_, err = w.desk.TakeBack(t.Context(), w.person(), desk.UndoRequest{Call: answer.Workspaces[0].ID})
	must(t, err)
	if got := w.content(); got != "after" {
		t.Errorf("taken back again it is %q", got)
	}
}

func TestWhatCannotBeTakenBack(t *testing.T) {
	w := newUndoWorld(t)
	for name, c := range map[string]struct {
		request desk.UndoRequest
		want    desk.Code
	}{
		"nothing is named":      {desk.UndoRequest{}, desk.Invalid},
		"two things are named":  {desk.UndoRequest{Call: w.call, Session: "agent:coder:x"}, desk.Invalid},
		"an unknown choice":     {desk.UndoRequest{Call: w.call, Changed: "overwrite"}, desk.Invalid},
		"a call of nobody":      {desk.UndoRequest{Call: "nothing"}, desk.Unknown},
		"a session of nobody":   {desk.UndoRequest{Session: "agent:coder:y"}, desk.Unknown},
		"a session without end": {desk.UndoRequest{Session: "agent:coder:x:"}, desk.Unknown},
	} {
		if _, err := w.desk.TakeBack(t.Context(), w.person(), c.request); desk.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, os.WriteFile(w.file, []byte("person"), 0o600))
	answer, err := w.desk.TakeBack(t.Context(), w.person(), desk.UndoRequest{Call: w.call})
	must(t, err)
	if answer.Done || len(answer.Workspaces[0].Conflicts) != 1 || w.content() != "person" || len(w.events) > 0 {
		t.Errorf("what somebody has changed since: %+v, %q", answer, w.content())
	}
	none, err := desk.New(desk.Options{Audit: w})
	must(t, err)
	if _, err := none.TakeBack(t.Context(), w.person(), desk.UndoRequest{Call: w.call}); desk.CodeOf(err) != desk.NotKept {
		t.Errorf("nothing is kept: %v", err)
	}
}

func TestACallIsShownWithItsDifference(t *testing.T) {
	w := newUndoWorld(t)
	call, err := w.desk.UndoCall(t.Context(), w.person(), w.call)
	must(t, err)
	if call.State != desk.UndoDone || call.Total != 1 || call.Changes[0].What != "changed" || call.Changes[0].Diff != "--- a\n+++ a\n@@ -1 +1 @@\n-before\n\\ No newline at end of file\n+after\n\\ No newline at end of file\n" {
		t.Errorf("%+v", call)
	}
	if _, err := w.kept.Preview(t.Context(), undo.Request{ID: "nothing"}); !errors.Is(err, undo.ErrGone) {
		t.Errorf("a call of nobody: %v", err)
	}
}
