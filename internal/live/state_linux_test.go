package live_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/internal/live"
)

// mount puts a file system of its own under a directory.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	switch {
	case err != nil && live.All():
		t.Fatalf("TOOLWARD_LIVE=all, but a file system cannot be mounted: %v", err)
	case err != nil:
		t.Skipf("not run: mounting a file system needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestFullDisk: without room for the record no call runs, and each is told why. With room again they run.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	var disk string
	g := newGuardedMachineOn(t, freeWrites, func(m *live.Machine) {
		mount(t, m.State, "size=4m,mode=0700")
		disk = m.State
	})
	w := dialHTTP(t, g.URL, g.token)
	ran := map[string]bool{}
	refusals := 0
	call := func(name string) {
		r, err := w.send(t.Context(), toolCall("write", fmt.Sprintf(`{"path":%q,"content":%q}`, name, strings.Repeat("x", 3000))))
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(g.Workspace, name))
		ran[name] = err == nil
		if r.refused() {
			refusals++
		}
		why := strings.Contains(r.said(), "audit_unavailable") || strings.Contains(r.said(), "undo_unavailable") // whichever disk is met first
		if r.refused() && (ran[name] || !why) || !r.refused() && !ran[name] {
			t.Fatalf("%s: ran %v, answered %q", name, ran[name], r.said())
		}
	}
	for i := range 5 {
		call(fmt.Sprintf("before-%d", i))
	}
	if refusals > 0 {
		t.Fatal("refused before the disk was full")
	}
	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	for i := 0; refusals < 20; i++ {
		call(fmt.Sprintf("full-%d", i))
		if i > 2000 {
			t.Fatal("a full disk refuses nothing")
		}
	}
	if !strings.Contains(g.Log(), "audit_unavailable") {
		t.Error("the daemon does not say that it cannot record")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	before := refusals
	for i := range 5 {
		call(fmt.Sprintf("after-%d", i))
	}
	if refusals != before {
		t.Errorf("%d calls were refused after there was room again", refusals-before)
	}
	g.Kill()
	g.Start()
	g.terminal.SignIn()
	recorded := map[string]bool{}
	for _, r := range decisions(g.records(t), "write") {
		for name := range ran {
			if r.Verdict == "allow" && strings.Contains(r.Preview, `"`+name+`"`) {
				recorded[name] = true
			}
		}
	}
	for name, did := range ran {
		if did && !recorded[name] {
			t.Errorf("%s was written without a record", name)
		}
	}
}

func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		if _, err := f.Write(chunk); errors.Is(err, unix.ENOSPC) {
			chunk = chunk[:len(chunk)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestHomesWithoutRoom: a home that cannot be written is told, and nothing starts.
func TestHomesWithoutRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, said string
		prepare    func(dir string)
	}{
		{"full", "the disk is full", func(dir string) { fill(t, filepath.Join(dir, "filler")) }},
		{"read-only", "read-only", func(dir string) {
			if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := live.NewMachine(t, "")
			mount(t, m.State, "size=512k,mode=0700")
			c.prepare(m.State)
			out, status := m.Run("up", "--listen", "127.0.0.1:0")
			if status != 1 || !strings.Contains(out, c.said) || strings.Contains(out, "Toolward is up") {
				t.Errorf("%d, want 1 and %q:\n%s", status, c.said, out)
			}
		})
	}
}
