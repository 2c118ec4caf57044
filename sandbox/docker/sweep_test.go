package docker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward/sandbox"
)

// What a gateway leaves that is killed while it makes a sandbox is gone after the next one has started.
func TestSweep(t *testing.T) {
	e := testEngine(t)
	kept := testSpec(t, newWorkspace(t))
	ensure(t, e, kept)
	if err := e.Stop(t.Context(), kept.Name); err != nil {
		t.Fatal(err)
	}
	half := unfinished(kept.Name + "-half")
	left := kept.Name + "-running" // its gateway was killed before it could greet what is inside
	docker(t, "run", "--detach", "--name", left, "--label", labelSandbox+"=1", "--label", labelInstance+"="+t.Name(), imageName(), "sleep", "600")
	t.Cleanup(func() { remove(t, e, left) })
	docker(t, "create", "--name", half, "--label", labelSandbox+"=1", "--label", labelInstance+"="+t.Name(), imageName())
	t.Cleanup(func() { remove(t, e, half) })
	foreign := unfinished(kept.Name + "-foreign")
	docker(t, "create", "--name", foreign, "--label", labelSandbox+"=1", "--label", labelInstance+"=another home", imageName())
	t.Cleanup(func() { docker(t, "rm", "--force", foreign) })
	door := func(name string) string {
		t.Helper()
		at, err := e.doorDirectory(name)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, name := range []string{kept.Name, "gone"} { // a socket that nobody listens at
		if err := os.MkdirAll(door(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(door(name), doorName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next := New(Options{Instance: t.Name()})
	defer next.Close()
	if states, err := next.List(t.Context()); err != nil || len(states) != 2 {
		t.Errorf("what is half made counts as a sandbox: %v, %v", states, err)
	}
	if err := next.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state, err := next.Lookup(t.Context(), left); err != nil || state.Running {
		t.Errorf("what an earlier gateway has started is %+v, %v", state, err)
	}
	docker(t, "rm", left)
	if _, err := next.Lookup(t.Context(), half); sandbox.CodeOf(err) != sandbox.CodeNotFound {
		t.Errorf("the half-made container is there: %v", err)
	}
	if name := docker(t, "inspect", "--format", "{{.Name}}", foreign); name != "/"+foreign {
		t.Errorf("another home's is %q", name)
	}
	for path, want := range map[string]bool{door(kept.Name): true, filepath.Join(door(kept.Name), doorName): false, door("gone"): false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", path, err == nil, want)
		}
	}
	if states, err := next.List(t.Context()); err != nil || len(states) != 1 || states[0].Name != kept.Name {
		t.Errorf("there are %v, %v", states, err)
	}
	alive(t, ensure(t, e, kept))
}
