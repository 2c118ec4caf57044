package builtin

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk puts the workspace on a file system of half a mebibyte.
func smallDisk(t *testing.T, w *world) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	if err := unix.Mount("tmpfs", w.workspace, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(w.workspace, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	smallDisk(t, w)
	w.put("ws/f", "precious\n")
	w.put("ws/g", "also\n")
	big := strings.Repeat("x", 700<<10)

	w.fails("write", args{"path": "f", "content": big}, "the disk is full")
	w.fails("write", args{"path": "new/file", "content": big}, "the disk is full")
	w.fails("edit", args{"path": "f", "oldText": "precious", "newText": big}, "the disk is full")
	w.holds("ws/f", "precious\n")
	w.holds("ws/new/file", "<gone>")

	w.fails("apply_patch", patchOf(
		"*** Update File: f", "-precious", "+cheap",
		"*** Update File: g", "-also", "+not",
		"*** Add File: huge", "+"+big,
	), "nothing was changed")
	w.holds("ws/f", "precious\n")
	w.holds("ws/g", "also\n")
	w.tidy("ws", "f", "g", "new")
}

// TestPatchIsTakenBackOnAFullDisk shrinks files first, lets somebody else take the space, and must still be able to
// put everything back.
func TestPatchIsTakenBackOnAFullDisk(t *testing.T) {
	w := newWorld(t)
	smallDisk(t, w)
	old := strings.Repeat("o", 100<<10) + "\n"
	w.put("ws/a", old)
	w.put("ws/b", old)
	r := w.facts("apply_patch", patchOf("*** Update File: a", "-"+old[:len(old)-1], "+small", "*** Update File: b", "-"+old[:len(old)-1], "+small"))
	change, err := w.box.planned(machine{}, r.Facts.Prepared.(patchPlan))
	if err != nil {
		t.Fatal(err)
	}
	held, err := change.reserve()
	if err != nil {
		t.Fatal(err)
	}
	order := change.order()
	for _, file := range order {
		if err := file.commit(machine{}); err != nil {
			t.Fatal(err)
		}
	}
	w.put("ws/greedy", "")
	fill(t, w.workspace+"/greedy")
	change.release(held)
	for _, file := range order {
		if err := file.restore(machine{}); err != nil {
			t.Error(err)
		}
	}
	w.holds("ws/a", old)
	w.holds("ws/b", old)
}

func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		if _, err := f.Write(chunk); err != nil {
			chunk = chunk[:len(chunk)/2]
		}
	}
}

func TestReadOnlyDisk(t *testing.T) {
	w := newWorld(t)
	smallDisk(t, w)
	w.put("ws/f", "x\n")
	if err := unix.Mount("tmpfs", w.workspace, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("remount: %v", err)
	}
	w.fails("write", args{"path": "f", "content": "y"}, "read-only")
	w.fails("edit", args{"path": "f", "oldText": "x", "newText": "y"}, "read-only")
	if got := w.ok("read", args{"path": "f"}); got != "x\n" {
		t.Errorf("got %q", got)
	}
}

// TestExchangedDirectoryOfACommand moves the judged directory away and puts another one of its name in its place.
func TestExchangedDirectoryOfACommand(t *testing.T) {
	for _, command := range []string{"cat mark", "for f in mark; do cat $f; done"} {
		w := newWorld(t)
		w.put("ws/dir/mark", "judged\n")
		r := w.facts("exec", args{"command": command, "workdir": "dir"})
		if err := os.Rename(w.workspace+"/dir", w.workspace+"/elsewhere"); err != nil {
			t.Fatal(err)
		}
		w.put("ws/dir/mark", "swapped\n")
		result, err := r.Tool.Run(t.Context(), r)
		if err != nil || !result.IsError || !strings.Contains(text(result), "not started") {
			t.Errorf("%s: another directory of the same name was taken: %v %q", command, err, text(result))
		}
	}
}

// TestNoDescriptorLeaksIntoCommands: a command has its three standard files and nothing of the gateway's.
func TestNoDescriptorLeaksIntoCommands(t *testing.T) {
	w := newWorld(t)
	secret, err := os.Open(w.put("outside/secret", "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	for _, a := range []args{{}, {"pty": true}} {
		a["command"] = "ls /proc/self/fd | tr -s '\\r\\n' ' '"
		if got := w.ok("exec", a); strings.TrimSpace(got) != "0 1 2 3" { // 3 is ls reading the directory
			t.Errorf("%v: descriptors %q", a["pty"], got)
		}
	}
}
