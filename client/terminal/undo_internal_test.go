package terminal

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/tui"
	"github.com/toolward/toolward/undo/kept"
)

// TestTheTerminalConsoleTakesCallsBack: what a call changed is listed, and taken back as a person says.
func TestTheTerminalConsoleTakesCallsBack(t *testing.T) {
	dir := t.TempDir()
	workspaces := kept.Open(t.Context(), kept.Options{
		Dir: filepath.Join(dir, "undo"), Workspace: func(dir string) (string, error) { return dir, nil }, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { _ = workspaces.Close() })
	project := filepath.Join(dir, "project")
	notes := filepath.Join(project, "notes.txt")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(notes, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	write("mine\n")
	const session = "agent:coder:main"
	id, err := workspaces.Begin(t.Context(), &toolward.Request{
		Call: toolward.Call{Session: session, Caller: toolward.Caller{Agent: "coder", Workspace: project}},
		Tool: &toolward.Tool{Name: "exec"}, Facts: toolward.Facts{Mutates: true, Command: "make notes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	write("theirs\n")
	workspaces.End(t.Context(), id, nil)

	w := consoletest.New(t, consoletest.Options{Undo: workspaces})
	g, ctx := desk{local.At(w.Home)}, t.Context()
	if _, err := g.SignIn(ctx, consoletest.Passphrase); err != nil {
		t.Fatal(err)
	}
	calls, err := g.UndoCalls(ctx)
	if err != nil || len(calls) != 1 || calls[0].ID != id || calls[0].State != tui.UndoDone || len(calls[0].Changes) != 1 || calls[0].Changes[0].Path != "notes.txt" {
		t.Fatalf("%+v, %v", calls, err)
	}
	one, err := g.UndoCall(ctx, id)
	if err != nil || one.Session != session || !strings.Contains(one.Changes[0].Diff, "-mine\n+theirs") {
		t.Errorf("%+v, %v", one, err)
	}
	write("mine again\n")
	would, err := g.TakeBack(ctx, tui.TakeBack{Session: session, Preview: true})
	if err != nil || would.Done || would.Stamp == "" || len(would.Workspaces) != 1 || len(would.Workspaces[0].Conflicts) != 1 {
		t.Fatalf("%+v, %v", would, err)
	}
	if done, err := g.TakeBack(ctx, tui.TakeBack{Session: session, Seen: would.Stamp}); err != nil || done.Done {
		t.Errorf("nobody said what becomes of it: %+v, %v", done, err)
	}
	if _, err := g.TakeBack(ctx, tui.TakeBack{Session: session, Changed: "replace", Seen: "another"}); err == nil {
		t.Error("what nobody has seen was done")
	}
	done, err := g.TakeBack(ctx, tui.TakeBack{Session: session, Changed: "beside", Seen: would.Stamp})
	if err != nil || !done.Done || done.Workspaces[0].ID == "" {
		t.Fatalf("%+v, %v", done, err)
	}
	beside, _ := filepath.Glob(notes + ".before-*")
	if got, err := os.ReadFile(notes); err != nil || string(got) != "mine again\n" || len(beside) != 1 {
		t.Errorf("%q, %v, %v", got, beside, err)
	}
}
