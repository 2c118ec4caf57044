package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

// A name that leads to a repository's settings and to something harmless in turns, as fast as it can be exchanged: what is
// written through it is never the settings. Processes inside try to put the repository aside meanwhile.
func TestProtectedPathsWhileLinksAreSwapped(t *testing.T) {
	e := testEngine(t, Options{})
	workspace := t.TempDir()
	at := func(name string) string { return filepath.Join(workspace, name) }
	const settings = "[core]\n"
	err := errors.Join(
		os.MkdirAll(at(".git/hooks"), 0o755), os.Mkdir(at("plain"), 0o755), os.WriteFile(at(".git/config"), []byte(settings), 0o644),
		os.Symlink("plain", at("alias")), os.Symlink(".git", at("other")),
	)
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec(t, workspace)
	spec.Protected = []string{"/workspace/.git/config", "/workspace/.git/hooks"}
	handle := ensure(t, e, spec)
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	attack, err := handle.Start(ctx, sandbox.Command{Shell: `while :; do mv .git aside; mv .git/config config; echo evil > .git/hooks/pre-commit; done 2> /dev/null`})
	if err != nil {
		t.Fatal(err)
	}
	var swaps atomic.Int64
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, at("alias"), unix.AT_FDCWD, at("other"), unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
			swaps.Add(1)
		}
	})
	want := int64(live.Swaps(t, 5_000, 20_000))
	outcomes := map[sandbox.Code]int{}
	for i := 0; !t.Failed() && ctx.Err() == nil && (swaps.Load() < want || i < int(want/20) || outcomes[""] == 0 || outcomes[sandbox.CodeReadOnly] == 0); i++ {
		for _, path := range []string{"/workspace/alias/config", "/workspace/alias/hooks/pre-commit"} {
			_, err := handle.WriteFile(ctx, path, []byte("evil"), sandbox.WriteOptions{Parents: true, Append: i%2 == 0})
			outcomes[sandbox.CodeOf(err)]++
		}
		if got := content(at(".git/config")); got != settings {
			t.Fatalf("the settings are %q after %d swaps", got, swaps.Load())
		}
	}
	close(stop)
	swapper.Wait()
	t.Logf("%d swaps: %v", swaps.Load(), outcomes)
	if hooks, err := os.ReadDir(at(".git/hooks")); err != nil || len(hooks) > 0 {
		t.Errorf("the hooks are %v, %v", hooks, err)
	}
	if outcomes[""] == 0 || outcomes[sandbox.CodeReadOnly] == 0 {
		t.Error("nothing was swapped in time")
	}
	if err := attack.Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
}
