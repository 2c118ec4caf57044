package escape

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// readOnly: 2. The shell and the file tools have the same rights.
func readOnly(t *testing.T, target Target) {
	handle, workspace := start(t, target, "", func(spec *sandbox.Spec) {
		for i := range spec.Mounts {
			spec.Mounts[i].Writable = false
		}
	})
	out, _ := run(t, handle, "sh", "-c", "echo x 2>&1 > /workspace/file; mkdir /workspace/dir 2>&1; true")
	if !strings.Contains(out, "Read-only file system") && !strings.Contains(out, "Permission denied") {
		t.Errorf("a shell that writes says %q", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := handle.WriteFile(ctx, "/workspace/file", []byte("x"), sandbox.WriteOptions{})
	if code := sandbox.CodeOf(err); code != sandbox.CodeReadOnly {
		t.Errorf("the file tool says %v (%s), want %s", err, code, sandbox.CodeReadOnly)
	}
	if entries, err := os.ReadDir(workspace); err != nil || len(entries) != 0 {
		t.Errorf("the workspace holds %v, %v", entries, err)
	}
}

// killInside: 14. Whatever a sandbox does to itself, the next command has one that works.
func killInside(t *testing.T, target Target) {
	handle, workspace := start(t, target, "", nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	process, err := handle.Start(ctx, sandbox.Command{Argv: []string{"sh", "-c", "kill -9 1; kill -9 -1"}})
	if err == nil {
		_, _ = process.Wait(ctx) // either it was killed, or the whole sandbox
	}
	again, err := target.Engine.Ensure(ctx, target.Spec(t, workspace))
	if sandbox.CodeOf(err) == sandbox.CodeConflict {
		t.Fatalf("the sandbox cannot be made anew: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, status := run(t, again, "echo", "alive"); out != "alive\n" || status.Code != 0 {
		t.Errorf("the next command says %q, %+v", out, status)
	}
}

// forkBomb: 27.
func forkBomb(t *testing.T, target Target, probe string) {
	handle, _ := start(t, target, probe, func(spec *sandbox.Spec) { spec.Limits.Pids = pidsLimit })
	out, _ := run(t, handle, "./probe", "bomb", "2000")
	_, rest, _ := strings.Cut(out, "started\t")
	if n, err := strconv.Atoi(strings.TrimSpace(rest)); err != nil || n >= pidsLimit {
		t.Errorf("the bomb says %q with a limit of %d processes", out, pidsLimit)
	}
	// A shell bomb does not count; it is stopped from outside, with all it has started.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	process, err := handle.Start(ctx, sandbox.Command{Shell: ":(){ :|:& };:; sleep 60"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = process.Wait(ctx) // the time ends it
	eventually(t, "a command after the bomb", func() bool {
		after, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		process, err := handle.Start(after, sandbox.Command{Argv: []string{"true"}})
		if err != nil {
			return false
		}
		status, err := process.Wait(after)
		return err == nil && status.Code == 0
	})
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(20 * time.Millisecond) // what is waited for happens in other processes
	}
}

// memory: 28. Memory ends inside only, whatever kind it is, and the sandbox lives on.
func memory(t *testing.T, target Target, probe string) {
	handle, _ := start(t, target, probe, func(spec *sandbox.Spec) {
		spec.Limits.Memory = memoryLimit
		spec.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Size: memoryLimit / 2}}
	})
	for _, kind := range []string{"anonymous", "shared"} {
		out, status := run(t, handle, "./probe", "hog", kind)
		if strings.Contains(out, "nobody") || !status.OOM {
			t.Errorf("%s memory without end: %q, %+v; want it to be ended for lack of memory", kind, out, status)
		}
	}
	if out, status := run(t, handle, "./probe", "hog", "/tmp/file"); !strings.Contains(out, "ENOSPC") && !status.OOM {
		t.Errorf("a file system in memory without end: %q, %+v", out, status)
	}
	run(t, handle, "rm", "-f", "/tmp/file")
	if out, status := run(t, handle, "./probe", "fill", "/dev/shm/file"); !strings.Contains(out, "ENOSPC") && !status.OOM {
		t.Errorf("fill /dev/shm: %q, %+v", out, status)
	}
	run(t, handle, "rm", "-f", "/dev/shm/file")
	// Dirty pages of files are written back instead.
	if out, status := run(t, handle, "sh", "-c", "head -c "+strconv.Itoa(2*memoryLimit)+" /dev/zero > big && rm big"); status.Code != 0 {
		t.Errorf("a file larger than memory: %q, %+v", out, status)
	}
	if out, status := run(t, handle, "echo", "alive"); out != "alive\n" || status.Code != 0 {
		t.Errorf("the next command says %q, %+v", out, status)
	}
}

// fillDisks: 29.
func fillDisks(t *testing.T, target Target, probe string) {
	handle, workspace := start(t, target, probe, func(spec *sandbox.Spec) {
		spec.Limits.Memory = memoryLimit
		spec.Limits.FileSize = 32 << 20
		spec.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Size: 16 << 20}}
	})
	if out, status := run(t, handle, "./probe", "fill", "/tmp/file"); !strings.Contains(out, "ENOSPC") {
		t.Errorf("fill /tmp: %q, %+v", out, status)
	}
	out, status := run(t, handle, "./probe", "fill", "/workspace/file")
	if strings.Contains(out, "nobody") || !strings.Contains(out, "EFBIG") && status.Signal != syscall.SIGXFSZ {
		t.Errorf("a file beyond the size of one file: %q, %+v", out, status)
	}
	if info, err := os.Stat(filepath.Join(workspace, "file")); err != nil || info.Size() > 32<<20 {
		t.Errorf("the file on the host: %v, %v", info, err)
	}
}

// emptyFiles: files without content take memory that no size of a file system counts. Where nothing bounds their number,
// that of the sandbox is used up, and one that is made anew works again.
func emptyFiles(t *testing.T, target Target, probe string) {
	handle, workspace := start(t, target, probe, func(spec *sandbox.Spec) {
		spec.Limits.Memory = memoryLimit
		spec.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Size: 16 << 20}}
	})
	out, status := run(t, handle, "./probe", "inodes", "/tmp")
	if strings.Contains(out, "ENOSPC") {
		if out, status := run(t, handle, "echo", "alive"); out != "alive\n" || status.Code != 0 {
			t.Errorf("the next command says %q, %+v", out, status)
		}
		return
	}
	if !status.OOM {
		t.Errorf("files without content: %q, %+v", out, status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	spec := target.Spec(t, workspace)
	if err := target.Engine.Remove(ctx, spec.Name); err != nil {
		t.Fatal(err)
	}
	again, err := target.Engine.Ensure(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if out, status := run(t, again, "echo", "alive"); out != "alive\n" || status.Code != 0 {
		t.Errorf("made anew it says %q, %+v", out, status)
	}
}
