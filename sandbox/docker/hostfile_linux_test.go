package docker

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A runtime that numbers files itself shows a file by its state: no other file has it, whatever its owner does.
func TestFilesByTheirState(t *testing.T) {
	e := testEngine(t)
	workspace := newWorkspace(t)
	h := ensure(t, e, testSpec(t, workspace)).(*box)
	pin := func(path string) *identified {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return &identified{target: "/workspace", found: info, pinned: f}
	}
	same := func(what string, one *identified, want bool) {
		t.Helper()
		if got, err := one.sameState(t.Context(), h.client.Client); err != nil || got != want {
			t.Errorf("%s is the mounted one: %v, %v", what, got, err)
		}
	}
	own := pin(workspace)
	same("the workspace", own, true)
	if err := os.WriteFile(filepath.Join(workspace, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	same("the workspace with a new file", own, true)
	own.pinned = nil
	same("what the workspace was before", own, false)
	other := newWorkspace(t)
	info, err := os.Stat(workspace)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(other, time.Time{}, info.ModTime()); err != nil { // everything that an owner can make equal
		t.Fatal(err)
	}
	same("another directory", pin(other), false)
	same("a file", pin(filepath.Join(workspace, "new")), false)
}
