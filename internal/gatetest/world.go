package gatetest

import (
	"os"
	"path/filepath"
	"testing"
)

// World is a home of the gateway's user, with Toolward's own in it, and a workspace of an agent, on a real disk.
type World struct{ Home, State, Workspace string }

// NewWorld makes them.
func NewWorld(t testing.TB) *World {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Home: filepath.Join(base, "home"), Workspace: filepath.Join(base, "project")}
	w.State = filepath.Join(w.Home, ".toolward")
	for _, dir := range []string{w.State, w.Workspace, filepath.Join(w.Home, ".ssh")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// Write writes a file, with the directories above it, and returns its name.
func (*World) Write(t testing.TB, name, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}
