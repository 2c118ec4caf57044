package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
)

// Another sandbox that may write where a source lies swaps it for a link to what is hidden, again and again, while
// containers are made: whatever the container engine mounted then, nothing of the agent runs beside it.
func TestMountRace(t *testing.T) {
	e := testEngine(t)
	parent, hidden := newWorkspace(t), filepath.Join(t.TempDir(), "hidden")
	source, link := filepath.Join(parent, "source"), filepath.Join(parent, "link")
	err := errors.Join(os.Mkdir(source, 0o755), os.Mkdir(hidden, 0o755), os.Symlink(hidden, link),
		os.WriteFile(filepath.Join(source, "shown"), nil, 0o644), os.WriteFile(filepath.Join(hidden, "secret"), nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := os.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer pinned.Close()
	swaps, stop := 0, make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				// Both names exist at all times, and change places at once.
				if err := unix.Renameat2(unix.AT_FDCWD, source, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
				swaps++
			}
		}
	})
	made, refused := 0, 0
	const enough, attempts = 3, 100
	for i := 0; i < attempts && min(made, refused) < enough; i++ {
		spec := testSpec(t, newWorkspace(t))
		spec.Name += fmt.Sprintf("-%d", i)
		spec.Setup = "test -e /source/shown" // it, too, runs only when the mount was looked at
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Kind: sandbox.MountBind, Source: source, Target: "/source", Pinned: pinned})
		h, err := e.Ensure(t.Context(), spec)
		switch {
		case err == nil:
			made++
			if out, _ := output(t, h, sandbox.Command{Argv: []string{"ls", "/source"}}); out != "shown\n" {
				t.Errorf("a sandbox was made that shows %q", out)
			}
		case sandbox.CodeOf(err) == sandbox.CodeChanged, sandbox.CodeOf(err) == sandbox.CodeUnavailable: // the container engine noticed it first
			refused++
		default:
			t.Errorf("neither made nor refused: %v", err)
		}
		if err := e.Remove(context.WithoutCancel(t.Context()), spec.Name); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	swapping.Wait()
	t.Logf("%d made, %d refused, %d swaps", made, refused, swaps)
	if min(made, refused) < enough {
		t.Errorf("of %d, %d were made and %d refused: nothing was raced", attempts, made, refused)
	}
}
