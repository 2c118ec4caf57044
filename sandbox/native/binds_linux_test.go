package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward/sandbox"
)

// A bind that lies in another one is there whatever their order: what is at its path, and whether it can be written, is
// what the file tools go by.
func TestBindsInsideOfOthers(t *testing.T) {
	e := testEngine(t, Options{})
	outer, inner := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(outer, "inner"), 0o777); err != nil {
		t.Fatal(err)
	}
	for dir, text := range map[string]string{outer + "/inner": "outer", inner: "inner"} {
		if err := errors.Join(os.Chmod(dir, 0o777), os.WriteFile(filepath.Join(dir, "which"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	spec := testSpec(t, t.TempDir())
	spec.Mounts = append(spec.Mounts,
		sandbox.Mount{Kind: sandbox.MountBind, Source: inner, Target: "/data/inner"},
		sandbox.Mount{Kind: sandbox.MountBind, Source: outer, Target: "/data", Writable: true})
	spec.Tmpfs = append(spec.Tmpfs, sandbox.Tmpfs{Target: "/data/memory"})
	if err := os.Mkdir(filepath.Join(outer, "memory"), 0o755); err != nil {
		t.Fatal(err)
	}
	handle := ensure(t, e, spec)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if out, err := output(ctx, handle, "cat /data/inner/which; stat -f -c ' %T' /data/memory"); err != nil || out != "inner tmpfs\n" {
		t.Errorf("inside is %q, %v", out, err)
	}
	if out, err := output(ctx, handle, "touch /data/inner/new"); err == nil {
		t.Errorf("a command wrote what is mounted to be read: %q", out)
	}
}
