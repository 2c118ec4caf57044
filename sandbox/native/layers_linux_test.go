package native

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward/sandbox"
)

// What a sandbox writes over something of the machine is in its own layer, and stays for the next; the machine's is only read.
func TestLayers(t *testing.T) {
	workspace, machine, layer := t.TempDir(), t.TempDir(), t.TempDir()
	err := errors.Join(os.MkdirAll(machine+"/sub", 0o755), os.WriteFile(machine+"/sub/file", []byte("machine\n"), 0o444), os.Chmod(machine+"/sub", 0o555),
		os.Mkdir(layer+"/upper", 0o700), os.Mkdir(layer+"/work", 0o700))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(machine+"/sub", 0o755) })
	e := testEngine(t, Options{})
	spec := testSpec(t, workspace)
	spec.Mounts = append(spec.Mounts, sandbox.Mount{Kind: sandbox.MountCache, Source: machine, Target: "/srv/cache", Layer: layer})
	for _, c := range []struct{ command, want string }{
		{"cat /srv/cache/sub/file; chmod u+w /srv/cache/sub; echo own > /srv/cache/sub/more && rm -f /srv/cache/sub/file; ls /srv/cache/sub", "machine\nmore\n"},
		{"cat /srv/cache/sub/more; ls -A /.toolward", "own\n"},
	} {
		handle, err := e.Ensure(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := output(t.Context(), handle, c.command); err != nil || out != c.want {
			t.Errorf("%s: %q, %v, want %q", c.command, out, err, c.want)
		}
		if err := e.Remove(t.Context(), spec.Name); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(machine, "sub")); err != nil || len(entries) != 1 {
		t.Errorf("the machine's directory has %v, %v", entries, err)
	}
}

func TestLayersOfAnOrdinaryUser(t *testing.T) {
	if !asUser(t) {
		TestLayers(t)
	}
}
