package builtin

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolward/toolward"
)

func patchOf(lines ...string) args {
	return args{"patch": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"}
}

func TestApplyPatch(t *testing.T) {
	w := newWorld(t)
	w.put("ws/change", "a\nb\nc\n")
	w.put("ws/move", "one\n")
	w.put("ws/gone", "x\n")
	w.put("ws/again", "1\n2\n")
	w.put("ws/swap", "old\n")
	if err := os.Chmod(w.workspace+"/move", 0o755); err != nil {
		t.Fatal(err)
	}
	got := w.ok("apply_patch", patchOf(
		"*** Add File: new/deep/file", "+hello", "+",
		"*** Update File: change", "@@", " a", "-b", "+B", " c",
		"*** Update File: move", "*** Move to: to/moved", "@@", "-one", "+two",
		"*** Delete File: gone",
		"*** Update File: again", "-1", "+one",
		"*** Update File: again", "-2", "+two",
		"*** Delete File: swap",
		"*** Add File: swap", "+new",
	))
	want := "Done. All files were changed:\nA new/deep/file\nM change\nM move -> to/moved\nD gone\nM again\nM again\nD swap\nA swap\n"
	if got != want {
		t.Errorf("got %q", got)
	}
	w.holds("ws/new/deep/file", "hello\n\n")
	w.holds("ws/change", "a\nB\nc\n")
	w.holds("ws/move", "<gone>")
	w.holds("ws/to/moved", "two\n")
	w.holds("ws/gone", "<gone>")
	w.holds("ws/again", "one\ntwo\n")
	w.holds("ws/swap", "new\n")
	if info, _ := os.Stat(w.workspace + "/to/moved"); info.Mode().Perm() != 0o755 {
		t.Errorf("the moved file has mode %v", info.Mode())
	}
	w.tidy("ws", "again", "change", "new", "swap", "to")
}

func TestPatchFacts(t *testing.T) {
	w := newWorld(t)
	w.put("ws/a", "x\n")
	w.put("ws/.git/hooks/pre-commit", "x\n")
	r := w.facts("apply_patch", patchOf(
		"*** Update File: a", "*** Move to: b", "-x", "+y",
		"*** Delete File: .git/hooks/pre-commit",
		"*** Add File: ../outside/c", "+z",
	))
	want := toolward.Facts{Mutates: true, Deletes: 1, Targets: []toolward.Target{
		{Path: "a", Real: w.workspace + "/a", Op: "move", Zone: "workspace", Kind: "file", Links: 1},
		{Path: "b", Real: w.workspace + "/b", Op: "move", Zone: "workspace", Kind: "missing"},
		{Path: "b", Real: w.workspace + "/b", Op: "write", Zone: "workspace", Kind: "missing"},
		{Path: ".git/hooks/pre-commit", Real: w.workspace + "/.git/hooks/pre-commit", Op: "delete", Zone: "protected", Kind: "file", Links: 1},
		{Path: "../outside/c", Real: w.outside + "/c", Op: "write", Zone: "outside", Kind: "missing"},
	}}
	if diff := cmp.Diff(want, r.Facts, cmpopts.IgnoreFields(toolward.Facts{}, "Prepared")); diff != "" {
		t.Error(diff)
	}
	if _, err := w.request("apply_patch", args{"patch": "*** Begin Patch\noops\n*** End Patch"}); err == nil || !strings.Contains(err.Error(), "patch line 2") {
		t.Errorf("got %v", err)
	}
}

func TestPatchIsAllOrNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		patch args
		want  string
	}{
		{"second hunk does not fit", patchOf("*** Update File: a", "-a", "+A", "*** Update File: b", "@@", "-nope", "+x"), `Nothing was changed: b: patch line 6: hunk 1: its line "nope" is not in the file`},
		{"file to add exists", patchOf("*** Update File: a", "-a", "+A", "*** Add File: b", "+x"), "patch line 5: b: the file exists already"},
		{"file to delete is missing", patchOf("*** Update File: a", "-a", "+A", "*** Delete File: zzz"), "zzz: the file does not exist"},
		{"file to update is missing", patchOf("*** Update File: a", "-a", "+A", "*** Update File: zzz", "-x", "+y"), "zzz: the file does not exist"},
		{"target of a move exists", patchOf("*** Update File: a", "*** Move to: b"), "b: the file exists already"},
		{"deleted before", patchOf("*** Delete File: a", "*** Update File: a", "-a", "+A"), "a: the file does not exist"},
		{"link is not deleted", patchOf("*** Update File: a", "-a", "+A", "*** Delete File: link"), "link: is not a regular file"},
		{"directory is not deleted", patchOf("*** Delete File: dir"), "dir: is not a regular file"},
		{"binary is not updated", patchOf("*** Update File: bin", "-a", "+b"), "bin: is not a UTF-8 text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.put("ws/a", "a\n")
			w.put("ws/b", "b\n")
			w.put("ws/bin", "a\x00\n")
			w.put("ws/dir/f", "f\n")
			link(t, "a", w.workspace+"/link")
			w.fails("apply_patch", c.patch, c.want)
			w.holds("ws/a", "a\n")
			w.holds("ws/b", "b\n")
			w.tidy("ws", "a", "b", "bin", "dir", "link")
		})
	}
}

// TestPatchIsTakenBack makes the last of several changes fail after the first ones have been made.
func TestPatchIsTakenBack(t *testing.T) {
	w := newWorld(t)
	w.put("ws/a", "a\n")
	w.put("ws/b", "b\n")
	w.put("ws/linked", "x\n")
	if err := os.Link(w.workspace+"/linked", w.workspace+"/other"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.workspace+"/b", 0o600); err != nil {
		t.Fatal(err)
	}
	// A file with a hard link can be read but is not written.
	w.fails("apply_patch", patchOf(
		"*** Update File: a", "-a", "+A",
		"*** Add File: new/dir/file", "+n",
		"*** Update File: b", "*** Move to: c",
		"*** Update File: linked", "-x", "+y",
	), "nothing was changed: the patch failed at linked")
	w.holds("ws/a", "a\n")
	w.holds("ws/b", "b\n")
	w.holds("ws/linked", "x\n")
	w.tidy("ws", "a", "b", "linked", "other")
}

func TestPatchKeepsWhatOthersWrote(t *testing.T) {
	w := newWorld(t)
	file := w.put("ws/a", "a\n")
	r := w.facts("apply_patch", patchOf("*** Delete File: a"))
	change, err := w.box.planned(machine{}, r.Facts.Prepared.(patchPlan))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("somebody else's\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := change.commit(); err == nil {
		t.Error("a file was removed that had been written since")
	}
	w.holds("ws/a", "somebody else's\n")
}
