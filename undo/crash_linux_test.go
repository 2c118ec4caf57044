package undo_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/undo"
)

// scene is what the process that is killed works on; the same seed makes the same scene.
const sceneVariable = "TOOLWARD_UNDO_SCENE"

// TestMain is also that process: it takes one call back, and says when it begins.
func TestMain(m *testing.M) {
	scene := os.Getenv(sceneVariable)
	if scene == "" {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	s, err := undo.Open(ctx, filepath.Join(scene, "undo"), undo.Limits{})
	if err == nil {
		fmt.Println("ready")
		_, err = s.TakeBack(ctx, undo.Request{ID: "call"}, undo.Call{ID: "undo", At: begun})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("done")
	os.Exit(0)
}

// A process that is killed while it takes a call back leaves the workspace as it was or, once the store is open again, as it was
// to become.
func TestUndoIsWholeWhenKilled(t *testing.T) {
	var before, between, after int
	longest := time.Minute
	times := rounds(t)
	for seed := range uint64(times) {
		scene := t.TempDir()
		root := filepath.Join(scene, "work")
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		v := &vandal{t, rand.New(rand.NewPCG(seed, 11)), root}
		v.rage(60)
		old := look(t, root)
		s, err := undo.Open(t.Context(), filepath.Join(scene, "undo"), undo.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		during(t, s, "call", root, func() {
			v.rage(40)
			write(t, filepath.Join(root, "always"), "x")
		})
		changed := look(t, root)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if seed == 0 { // to the end, to learn how long it takes
			longest = killDuring(t, scene, time.Minute)
		} else {
			killDuring(t, scene, time.Duration(v.r.Int64N(int64(longest))))
			longest = min(longest, 100*time.Millisecond) // the first one may have met a busy machine
		}
		if journals, err := filepath.Glob(filepath.Join(scene, "undo/journals/*.json")); err != nil || len(journals) > 0 {
			between++
		}
		again, err := undo.Open(t.Context(), filepath.Join(scene, "undo"), undo.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		switch now := look(t, root); {
		case maps.Equal(now, changed):
			before++
		case maps.Equal(now, old):
			after++
			if _, kept := again.Call("undo"); !kept {
				t.Error("the call that took back is not kept")
			}
		default:
			t.Errorf("seed %d", seed)
			expect(t, root, old)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d as they were, %d as they were to become, %d of all killed between", before, after, between)
	if times >= 200 && (before == 0 || after == 0 || between == 0) { // fewer may miss the moment on a busy machine
		t.Error("the process was always killed at the same point")
	}
}

// rounds is how often the process is killed: KILLS times by "make races".
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TOOLWARD_KILLS")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// killDuring kills the process so long after it has begun, unless it ends before, and returns how long it lived.
func killDuring(t *testing.T, scene string, delay time.Duration) time.Duration {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), sceneVariable+"="+scene)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the process said %q", lines.Text())
	}
	start := time.Now()
	killer := time.AfterFunc(delay, func() { _ = c.Process.Kill() })
	defer killer.Stop()
	for lines.Scan() {
		if lines.Text() != "done" {
			t.Errorf("the process said %q", lines.Text())
		}
	}
	_ = c.Wait()
	return time.Since(start)
}

// smallDisk is a file system of a size.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("mounting a small file system needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves no room on a disk.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
}

func TestFullDisk(t *testing.T) {
	t.Run("of the store", func(t *testing.T) {
		disk, root := smallDisk(t, 1<<20), t.TempDir()
		s := openAt(t, filepath.Join(disk, "undo"), undo.Limits{})
		write(t, filepath.Join(root, "a"), "small")
		during(t, s, "call", root, func() { write(t, filepath.Join(root, "a"), "changed") })
		fill(t, disk)
		write(t, filepath.Join(root, "b"), "new")
		if err := s.Begin(t.Context(), undo.Call{ID: "next", Workspace: []byte(root), At: begun}); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("got %v", err)
		}
		if _, begun := s.Call("next"); begun {
			t.Error("a call began that nobody can take back")
		}
		if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
			t.Fatal(err)
		}
		during(t, s, "next", root, func() { write(t, filepath.Join(root, "b"), "newer") })
		takeBack(t, s, undo.Request{ID: "next"}, "undo next")
		takeBack(t, s, undo.Request{ID: "call"}, "undo")
		expect(t, root, map[string]string{"a": `file 644 "small"`, "b": `file 644 "new"`})
	})
	t.Run("of the workspace", func(t *testing.T) {
		disk := smallDisk(t, 1<<20)
		root := filepath.Join(disk, "work")
		s := open(t, undo.Limits{})
		write(t, filepath.Join(root, "a"), "1")
		write(t, filepath.Join(root, "large"), string(make([]byte, 500_000)))
		during(t, s, "call", root, func() {
			write(t, filepath.Join(root, "a"), "2")
			if err := os.Remove(filepath.Join(root, "large")); err != nil {
				t.Fatal(err)
			}
		})
		fill(t, disk)
		changed := look(t, root)
		if _, err := s.TakeBack(t.Context(), undo.Request{ID: "call"}, undo.Call{ID: "undo", At: begun}); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("got %v", err)
		}
		expect(t, root, changed)
		if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
			t.Fatal(err)
		}
		if taken := takeBack(t, s, undo.Request{ID: "call"}, "undo"); len(taken.Restored) != 2 {
			t.Errorf("got %+v", taken)
		}
	})
}

// A file system that is mounted in a workspace is another one's, and is not kept.
func TestMountPointsStayApart(t *testing.T) {
	s, root := open(t, undo.Limits{}), smallDisk(t, 1<<20)
	inner := filepath.Join(root, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", inner, "tmpfs", 0, "size=4096"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(inner, "a"), "theirs")
	during(t, s, "call", root, func() {
		write(t, filepath.Join(inner, "a"), "changed")
		write(t, filepath.Join(root, "b"), "new")
	})
	taken := takeBack(t, s, undo.Request{ID: "call"}, "undo")
	if len(taken.Restored) != 1 || taken.Restored[0].Path != "b" {
		t.Errorf("got %+v", taken)
	}
	if content, err := os.ReadFile(filepath.Join(inner, "a")); string(content) != "changed" {
		t.Errorf("got %q, %v", content, err)
	}
}
