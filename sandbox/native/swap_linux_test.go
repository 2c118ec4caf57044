package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

// A source that is exchanged for a symbolic link, again and again, between its check and its mount.
func TestSwappedSources(t *testing.T) {
	e := testEngine(t, Options{})
	dir := t.TempDir()
	secret, source, link := filepath.Join(dir, "secret"), filepath.Join(dir, "source"), filepath.Join(dir, "link")
	for _, path := range []string{secret, source} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.WriteFile(filepath.Join(secret, "key"), []byte("secret"), 0o644), os.Symlink(secret, link))
	if err != nil {
		t.Fatal(err)
	}
	exchange := func() {
		if err := unix.Renameat2(unix.AT_FDCWD, source, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
			t.Fatal(err)
		}
	}
	swaps := live.Swaps(t, 2_000, 20_000)
	t.Logf("%d swaps, each between check and mount", swaps)
	for range swaps {
		swapMount(t, e, source, exchange)
	}
	for i := range 20 {
		swapSandbox(t, e, i, source, exchange)
	}
}

// swapMount pins a source and prepares its mount, which must be that of what was pinned.
func swapMount(t *testing.T, e *Engine, source string, exchange func()) {
	t.Helper()
	if !e.root {
		return
	}
	pinned, err := pin(source)
	if err != nil {
		t.Fatal(err)
	}
	defer pinned.Close()
	exchange()
	defer exchange()
	if _, err := pin(source); err == nil {
		t.Fatal("a symbolic link was pinned")
	}
	fd, err := e.detach(t.Context(), pinned, hardened, idmap{})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if key, err := unix.Openat(fd, "key", unix.O_RDONLY, 0); err == nil {
		unix.Close(key)
		t.Fatal("what the link leads to was mounted")
	}
}

// swapSandbox does the same with a whole sandbox. Root mounts what was pinned; another user's helper opens the path
// again, sees that it is another file, and refuses.
func swapSandbox(t *testing.T, e *Engine, i int, source string, exchange func()) {
	t.Helper()
	pinned, err := pin(source)
	if err != nil {
		t.Fatal(err)
	}
	defer pinned.Close()
	exchange()
	defer exchange()
	spec := testSpec(t, t.TempDir())
	spec.Name = fmt.Sprintf("swap-%d", i)
	spec.Mounts = append(spec.Mounts, sandbox.Mount{Kind: sandbox.MountBind, Source: source, Target: "/data", Pinned: pinned})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	handle, err := e.Ensure(ctx, spec)
	if !e.root {
		if sandbox.CodeOf(err) != sandbox.CodeChanged {
			t.Fatalf("a source that was exchanged: %v, want %s", err, sandbox.CodeChanged)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	if out, err := output(ctx, handle, "ls -A /data"); out != "" || err != nil {
		t.Errorf("the mount holds %q, %v", out, err)
	}
}
