package kept_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/undo"
)

// takes is a request that takes something.
func (w *world) takes(t ...toolward.Take) *toolward.Request {
	r := request(w.project)
	r.Facts.Takes = t
	return r
}

// sparse makes a file that is larger than is kept.
func (w *world) sparse(name string) {
	w.Helper()
	w.write(name, "")
	if err := os.Truncate(filepath.Join(w.project, name), 6_100_000_000); err != nil {
		w.Fatal(err)
	}
}

func TestWhatNoSnapshotHoldsIsALoss(t *testing.T) {
	w := newWorld(t, undo.Limits{})
	at := func(name string) string { return filepath.Join(w.project, name) }
	w.sparse("build/db.sqlite")
	w.write("src/main.go", "package main")
	w.write("run/other", "")
	if err := syscall.Mkfifo(at("run/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../build/db.sqlite", at("src/link")); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(w.home, "data")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	const large = "nobody could bring back build/db.sqlite: 6.1 GB, more than is kept"
	for name, tt := range map[string]struct {
		take toolward.Take
		want string // "": nothing is lost
	}{
		"the large file":                    {toolward.Take{Path: "build/db.sqlite", Real: at("build/db.sqlite")}, large},
		"its directory":                     {toolward.Take{Path: "build", Real: at("build"), Tree: true}, large},
		"all":                               {toolward.Take{Path: ".", Real: w.project, Tree: true}, large + "; run/pipe: it is no file, directory or link"},
		"a directory that is not taken":     {toolward.Take{Path: "build", Real: at("build")}, ""},
		"another directory":                 {toolward.Take{Path: "src", Real: at("src"), Tree: true}, ""},
		"a link to it":                      {toolward.Take{Path: "src/link", Real: at("src/link")}, ""},
		"a small file":                      {toolward.Take{Path: "src/main.go", Real: at("src/main.go")}, ""},
		"nothing":                           {toolward.Take{Path: "none/x", Real: at("none/x"), Tree: true}, ""},
		"a pipe":                            {toolward.Take{Path: "run/pipe", Real: at("run/pipe")}, "run/pipe: it is no file"},
		"outside":                           {toolward.Take{Path: "/data", Real: outside, Tree: true}, "/data: it is not in the workspace"},
		"outside, and not there":            {toolward.Take{Path: "/data/x", Real: outside + "/x"}, ""},
		"a directory outside, into it":      {toolward.Take{Path: "/data", Real: outside}, ""},
		"above":                             {toolward.Take{Path: "..", Real: w.home, Tree: true}, "it is not in the workspace"},
		"nobody knows what":                 {toolward.Take{Path: "x\ny"}, "nobody can tell what that is"},
		"only other names":                  {toolward.Take{Path: ".", Real: w.project, Tree: true, Name: "*.pyc"}, ""},
		"its name":                          {toolward.Take{Path: ".", Real: w.project, Tree: true, Name: "*.sqlite"}, large},
		"the name of its directory":         {toolward.Take{Path: ".", Real: w.project, Tree: true, Name: "build"}, large},
		"a pattern that nobody understands": {toolward.Take{Path: "build", Real: at("build"), Tree: true, Name: "[a"}, large},
	} {
		got := w.kept.Gap(t.Context(), w.takes(tt.take))
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	// The workspace as such is kept: the call can be taken back but for what is lost.
	if id, err := w.kept.Begin(t.Context(), w.takes(toolward.Take{Path: ".", Real: w.project, Tree: true})); id == "" || err != nil {
		t.Errorf("kept as %q, %v", id, err)
	}
}

// A file tool names its targets.
func TestTargetsAreTaken(t *testing.T) {
	w := newWorld(t, undo.Limits{})
	w.sparse("db")
	r := request(w.project)
	for op, want := range map[toolward.Op]bool{toolward.OpDelete: true, toolward.OpWrite: true, toolward.OpRead: false} {
		r.Facts.Targets = []toolward.Target{{Path: "db", Real: filepath.Join(w.project, "db"), Op: op, Zone: toolward.ZoneWorkspace}}
		if gap := w.kept.Gap(t.Context(), r); strings.Contains(gap, "db: 6.1 GB") != want {
			t.Errorf("%s: %q", op, gap)
		}
	}
}

func TestWhatCannotBeLookedThroughIsALoss(t *testing.T) {
	w := newWorld(t, undo.Limits{Entries: 3})
	w.write("dir/one", "")
	tree := toolward.Take{Path: "dir", Real: filepath.Join(w.project, "dir"), Tree: true}
	if gap := w.kept.Gap(t.Context(), w.takes(tree)); gap != "" {
		t.Errorf("two names: %q", gap)
	}
	w.write("dir/two", "")
	w.write("dir/three", "")
	if gap := w.kept.Gap(t.Context(), w.takes(tree)); !strings.Contains(gap, "dir: it holds more than can be looked through") {
		t.Errorf("four names: %q", gap)
	}
}

// Git leaves alone what it does not know, or what it knows.
func TestWhatGitTakes(t *testing.T) {
	w := newWorld(t, undo.Limits{File: 10})
	for _, name := range []string{"src/tracked", "src/trackedtoo", "target/untracked"} {
		w.write(name, "larger than is kept")
	}
	git := func(args ...string) {
		t.Helper()
		command := exec.Command("git", append([]string{"-C", w.project, "-c", "core.fsync=none"}, args...)...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
	}
	gap := func(which string) string {
		return w.kept.Gap(t.Context(), w.takes(toolward.Take{Path: ".", Real: w.project, Tree: true, Git: which}))
	}
	if got := gap("tracked"); !strings.Contains(got, "src/tracked") || !strings.Contains(got, "target/untracked") {
		t.Errorf("where there is no repository: %q", got)
	}
	git("init", "-q")
	git("add", "src")
	for _, version := range []string{"2", "4"} {
		git("update-index", "--index-version", version)
		if got := gap("tracked"); !strings.Contains(got, "src/trackedtoo") || strings.Contains(got, "untracked") {
			t.Errorf("index %s: tracked: %q", version, got)
		}
		if got := gap("untracked"); !strings.Contains(got, "target/untracked") || strings.Contains(got, "src/tracked") || strings.Contains(got, ".git") {
			t.Errorf("index %s: untracked: %q", version, got)
		}
	}
	git("update-index", "--split-index")
	if got := gap("tracked"); !strings.Contains(got, "target/untracked") {
		t.Errorf("an index in two files: %q", got)
	}
	index := filepath.Join(w.project, ".git", "index")
	for _, damaged := range []string{"", "DIRC", "DIRC\x00\x00\x00\x02\x00\x00\x00\x05 and no more"} {
		if err := os.WriteFile(index, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := gap("tracked"); !strings.Contains(got, "target/untracked") {
			t.Errorf("damaged: %q", got)
		}
	}
}
