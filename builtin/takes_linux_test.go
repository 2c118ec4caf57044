package builtin

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/sandbox"
)

// boxed confines the calls of a world, without a sandbox that would run them: to the workspace at a path of the sandbox, with
// directories outside that a person has bound in.
func (w *world) boxed(inside string) {
	w.Helper()
	mounts := []sandbox.Mount{
		{Kind: sandbox.MountHome, Source: w.outside + "/own", Target: w.home, Writable: true},
		{Kind: sandbox.MountWorkspace, Source: w.workspace, Target: inside, Writable: true},
		{Kind: sandbox.MountBind, Source: w.outside + "/data", Target: "/data", Writable: true},
		{Kind: sandbox.MountBind, Source: w.outside + "/data", Target: inside + "/bound", Writable: true},
		{Kind: sandbox.MountBind, Source: w.outside + "/fixed", Target: "/fixed"},
	}
	w.box.deps.Sandboxes = oneBox{&Confinement{
		Name: "box", Workdir: inside, Home: w.home, Mounts: mounts, Environ: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + w.home},
	}}
}

// taken writes down what a call takes: "tree", "tracked", "*.pyc" before the path on this machine.
func (w *world) taken(r *toolward.Request) string {
	var list []string
	for _, t := range r.Facts.Takes {
		words := []string{}
		if t.Tree && t.Git == "" {
			words = append(words, "tree")
		}
		for _, word := range []string{t.Git, t.Name} {
			if word != "" {
				words = append(words, word)
			}
		}
		real := strings.TrimPrefix(strings.TrimPrefix(t.Real, w.workspace), w.root)
		list = append(list, strings.Join(append(words, "."+real), " "))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func takesWorld(t *testing.T) *world {
	w := newWorld(t)
	for _, name := range []string{"ws/a.txt", "ws/build/db", "ws/src/b.txt", "ws/.git/HEAD", "outside/data/x", "outside/own/y", "outside/fixed/z"} {
		w.put(name, "text\n")
	}
	if err := errors.Join(os.Symlink("build/db", w.workspace+"/link"), os.Mkdir(w.workspace+"/bound", 0o755)); err != nil {
		t.Fatal(err)
	}
	return w
}

// What a command takes of this machine decides whether a person is asked: see package undo/kept.
func TestWhatCommandsTake(t *testing.T) {
	const bound = "tree ./outside/data"
	for command, want := range map[string]string{
		"rm -rf .":                 "tree ., " + bound,
		"rm -rf *":                 "tree ./a.txt, tree ./build, tree ./link, tree ./outside/data, tree ./src",
		"rm -rf build/":            "tree ./build",
		"rm a.txt":                 "tree ./a.txt",
		"rm link":                  "tree ./link",
		"> a.txt":                  "./a.txt",
		">link":                    "./build/db",
		": > a.txt":                "./a.txt",
		"echo x > build/db 2>&1":   "./build/db",
		"echo x >> build/db":       "",
		"echo x > /dev/null":       "",
		"echo x > new":             "./new",
		"truncate -s 0 build/db":   "./build/db",
		"dd if=/dev/zero of=a.txt": "./a.txt",
		"sed -i s/a/b/ a.txt":      "./a.txt",
		"sed s/a/b/ a.txt":         "",
		"tee a.txt":                "./a.txt",
		"tee -a a.txt":             "",
		"touch build/db && chmod -R u+w build && mkdir -p build": "",
		"cp a.txt build/db":                               "./build/db",
		"mv build /tmp/gone":                              "tree ./build",
		"cd build && rm -rf *":                            "tree ./build/db",
		"bash -c 'rm -rf build'":                          "tree ./build",
		"env rm -rf build":                                "tree ./build",
		"find . -delete":                                  "tree ., " + bound,
		"find . -name '*.pyc' -delete":                    "tree *.pyc ., tree *.pyc ./outside/data",
		"find src -name '*.pyc' -o -size +1M -delete":     "tree ./src",
		"find build | xargs rm":                           "tree ./build",
		"find src -name x -exec rm -rf {} +":              "tree x ./src",
		"git rm -rf .":                                    "tracked ., tracked ./outside/data",
		"git rm -r --cached .":                            "",
		"git clean -fdx":                                  "untracked ., untracked ./outside/data",
		"git clean -fdx build":                            "untracked ./build",
		"git clean -ndx":                                  "",
		"git checkout -- .":                               "tracked ., tracked ./outside/data",
		"git checkout -- src/b.txt":                       "tracked ./src/b.txt",
		"git checkout -b new":                             "",
		"git restore .":                                   "tracked ., tracked ./outside/data",
		"git reset --hard":                                "tracked ., tracked ./outside/data",
		"git -C src reset --hard HEAD~1":                  "tracked ., tracked ./outside/data",
		"git reset HEAD a.txt":                            "",
		"git switch -f main":                              "tracked ., tracked ./outside/data",
		"git commit -am x && git branch -D old":           "",
		"rm -rf /data/x":                                  "tree ./outside/data/x",
		"echo x > /data/x":                                "./outside/data/x",
		"rm -rf bound/x":                                  "tree ./outside/data/x",
		"rm -rf /fixed/z /tmp/x ~/y":                      "",
		"make clean; python3 -c 'open(\"a.txt\", \"w\")'": "",
		"ls -la && cat a.txt":                             "",
	} {
		w := takesWorld(t)
		w.boxed(w.workspace)
		r := w.facts("exec", args{"command": command})
		if got := w.taken(r); got != want {
			t.Errorf("%q takes %q, want %q", command, got, want)
		}
		for _, f := range r.Facts.Findings {
			if f.Effect != toolward.EffectNote {
				t.Errorf("%q asks inside: %+v", command, f)
			}
		}
	}
}

// Where the sandbox has the workspace at a path of its own, patterns stand for what nobody has looked up.
func TestWhatCommandsTakeAtAnotherPath(t *testing.T) {
	for command, want := range map[string]string{
		"rm -rf *":                "tree * ., tree * ./outside/data",
		"rm -f build/*.o":         "tree *.o ./build",
		"rm -f */cache/*.o":       "tree ., tree ./outside/data",
		"rm -rf /project/build":   "tree ./build",
		"cd build && rm -rf ./db": "tree ./build/db",
	} {
		w := takesWorld(t)
		w.boxed("/srv/project")
		command = strings.Replace(command, "/project", "/srv/project", 1)
		if got := w.taken(w.facts("exec", args{"command": command})); got != want {
			t.Errorf("%q takes %q, want %q", command, got, want)
		}
	}
}

// A private directory is the sandbox's own: nothing in it is a person's.
func TestWhatCommandsTakeOfAPrivateDirectory(t *testing.T) {
	w := takesWorld(t)
	w.boxed("/srv/project")
	box := *w.box.deps.Sandboxes.(oneBox).confinement
	box.Private = true
	w.box.deps.Sandboxes = oneBox{&box}
	for command, want := range map[string]string{"rm -rf build": "", "rm -rf .": "tree ./outside/data", "echo x > /data/x": "./outside/data/x"} {
		if got := w.taken(w.facts("exec", args{"command": command})); got != want {
			t.Errorf("%q takes %q, want %q", command, got, want)
		}
	}
}

// On the machine the analysis asks about what lies outside the workspace.
func TestWhatCommandsTakeOnTheMachine(t *testing.T) {
	w := takesWorld(t)
	if got := w.taken(w.facts("exec", args{"command": "rm -rf build " + w.outside + "/data"})); got != "tree ./build" {
		t.Errorf("%q", got)
	}
}

func TestWhatFileToolsTakeInASandbox(t *testing.T) {
	w := takesWorld(t)
	w.boxed("/srv/project")
	for tool, a := range map[string]args{
		"write":       {"path": "a.txt", "content": "new"},
		"edit":        {"path": "/srv/project/a.txt", "oldText": "text", "newText": "new"},
		"apply_patch": {"patch": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"},
		"read":        {"path": "a.txt"},
	} {
		want := "./a.txt"
		if tool == "read" {
			want = ""
		}
		if got := w.taken(w.facts(tool, a)); got != want {
			t.Errorf("%s takes %q, want %q", tool, got, want)
		}
	}
}
