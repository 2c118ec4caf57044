package attacks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
	"github.com/toolward/toolward/sandbox/docker/rootfs"
	"github.com/toolward/toolward/sandbox/native"
)

// insideUser owns the workspaces of a gateway of root's: nobody is root inside.
const insideUser = 10001

// TestAttackVectorsInSandboxes runs the attacks on files against the tools of sandboxed sessions, in real sandboxes: with
// the path as it is on the machine, with the path inside, and by commands, which nothing checks but the sandbox.
func TestAttackVectorsInSandboxes(t *testing.T) {
	for name, engine := range map[string]func(*testing.T) (sandbox.Engine, string){"native": nativeEngine, "docker": dockerEngine} {
		t.Run(name, func(t *testing.T) {
			e, image := engine(t)
			score := newTallies()
			for _, c := range loadAttacks(t) {
				if !onFiles(c) {
					continue
				}
				var o outcome
				for range chances {
					t.Run(c.ID, func(t *testing.T) {
						o = contain(t, c, func(t *testing.T, c *attack) (outcome, error) { return judgeConfined(t, c, e, image) })
					})
					if o.skip != "" || o.took <= slowest {
						break
					}
				}
				named := *c
				named.Class += " in " + name + " sandboxes"
				if !score.count(&named, o) && c.Level == "core" {
					t.Errorf("%s %s %s: wanted %s, got %q after %v (%s%s): %s", c.ID, c.Class, c.Level, c.Want, o.answer, o.took, o.skip, o.why, c.Why)
				}
			}
			score.print(t)
		})
	}
}

// What the machine would obey later is not made by a file tool of a sandbox without a person, also where there was none.
func TestSandboxedToolsMakeNothingProtected(t *testing.T) {
	e, _ := nativeEngine(t)
	for _, path := range []string{".git/hooks/post-merge", "sub/.git/config", ".vscode/tasks.json", ".envrc", "/ws/.github/workflows/x.yml", "@.idea/x", "~/.mcp.json"} {
		for _, tool := range []string{"write", "apply_patch"} {
			o, err := judgeConfined(t, &attack{Want: string(asked), Attempt: fields{"tool": tool, "path": path}}, e, "")
			if err != nil || !o.holds(string(asked)) {
				t.Errorf("%s %s: %+v %v", tool, path, o, err)
			}
		}
	}
}

// onFiles reports whether a case is about a path and a tool for files.
func onFiles(c *attack) bool {
	switch c.Class {
	case "path.traversal", "path.tool-parity", "path.alias", "path.sensitive":
		return c.Attempt.has("path")
	}
	return false
}

func nativeEngine(t *testing.T) (sandbox.Engine, string) {
	e := native.New(native.Options{Instance: t.Name()})
	t.Cleanup(func() { must(t, e.Close()) })
	if found, err := e.Probe(t.Context()); err != nil || found.Level < sandbox.LevelNoCgroup {
		if live.All() {
			t.Fatalf("TOOLWARD_LIVE=all, but this machine has no native sandboxes: %v, %+v", err, found.Checks)
		}
		t.Skipf("not run: this machine has no native sandboxes: %v, %+v", err, found.Checks)
	}
	return e, ""
}

func dockerEngine(t *testing.T) (sandbox.Engine, string) {
	t.Setenv("DOCKER_HOST", live.Docker(t))
	live.Need(t, live.Program("busybox"))
	e := docker.New(docker.Options{Instance: t.Name()})
	image := fmt.Sprintf("toolward-attacks-%d:busybox", os.Getpid())
	t.Cleanup(func() {
		must(t, errors.Join(e.RemoveImage(context.Background(), image), e.Close(), live.StopDocker()))
	})
	var root bytes.Buffer
	must(t, rootfs.Busybox(t.Context(), &root))
	_, err := e.ImportImage(t.Context(), image, &root)
	must(t, err)
	return e, image
}

// judgeConfined is judgeFiles for a session in a sandbox with the workspace of the world.
func judgeConfined(t *testing.T, c *attack, engine sandbox.Engine, image string) (outcome, error) {
	err := errors.Join(setupOnly(c, "profile", "symlinks", "hardlinks", "files", "fs", "race", "rootIsSymlink"), c.Check.only("check", "no_read_outside"))
	if err != nil {
		return outcome{}, err
	}
	tool, args, err := fileCall(c)
	if err != nil {
		return outcome{}, err
	}
	w := newWorld(t, func(w *world) {
		w.engines = []sandbox.Engine{engine}
		w.foldCase = c.Setup.text("fs") == "case-insensitive"
		for link, target := range c.Setup.object("rootIsSymlink") {
			w.link(link, fmt.Sprint(target))
		}
		own := map[string]any{"mode": "all", "scope": "session", "workspaceAccess": "rw", "engine": engine.Name(), "degradeOk": []any{"cgroup"}}
		if image != "" {
			own["docker"] = map[string]any{"image": image}
		}
		w.set(own, "agents", "defaults", "sandbox")
		w.set("workspace", "teg", "preset")
		w.set(true, "tools", "exec", "applyPatch", "enabled")
		w.set(c.Setup.text("profile") != "fs-open", "tools", "fs", "workspaceOnly")
	})
	if err := w.build(c); err != nil {
		return outcome{}, err
	}
	w.giveWorkspace()
	lease, err := w.sandboxes.Acquire(t.Context(), w.request()) // how long one takes to be made is not the gate's time
	if err != nil {
		return outcome{}, err
	}
	defer lease.Release()
	before, o := w.beyond(), outcome{}
	asked, _ := args["path"].(string)
	for i, where := range []string{w.at("/ws"), lease.Layout.Workdir} {
		if asked != "" {
			args["path"] = w.at(asked)
			if rest, ok := strings.CutPrefix(asked, "/ws"); i == 1 && ok && (rest == "" || rest[0] == '/') {
				args["path"] = where + rest
			}
		}
		if o = w.tryConfined(c, tool, args); !o.holds(c.Want) {
			return o, nil
		}
	}
	if !c.Control {
		w.tryOthers(c, o)
	}
	if got := w.beyond(); got != before {
		return outcome{answer: harmful, why: "it got out of the workspace: " + got}, nil
	}
	return o, nil
}

// giveWorkspace makes what lies in the workspace that of who runs inside. What another name of a file leads to is not.
func (w *world) giveWorkspace() {
	if os.Geteuid() != 0 {
		return
	}
	real, err := filepath.EvalSymlinks(w.at("/ws"))
	must(w.t, err)
	must(w.t, filepath.WalkDir(real, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(p, &stat); err != nil || stat.Nlink > 1 && !e.IsDir() {
			return err
		}
		return os.Lchown(p, insideUser, insideUser)
	}))
}

// beyond is what lies outside the workspace, wherever that really is.
func (w *world) beyond() string {
	real, err := filepath.EvalSymlinks(w.at("/ws"))
	must(w.t, err)
	var b strings.Builder
	for line := range strings.Lines(w.outside()) {
		if !strings.HasPrefix(line, real+"/") && !strings.HasPrefix(line, real+" ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// tryConfined makes one call, and runs what is admitted.
func (w *world) tryConfined(c *attack, tool string, args map[string]any) outcome {
	caller, _ := w.main("s1")
	w.checkParameters(w.find(caller, tool), args)
	a := w.admit(w.newCall(caller, tool, args))
	o := w.outcome(a)
	if a.answer != allowed {
		if c.Want == string(contained) {
			o.answer = contained
		}
		return o
	}
	if host := a.pass.Request().Host(); host != toolward.HostSandbox && tool == "exec" {
		return outcome{answer: harmful, why: "it runs on " + string(host)}
	}
	for link, target := range c.Setup.object("race").object("symlink") {
		must(w.t, os.RemoveAll(w.at(link))) // between the decision and the run
		must(w.t, os.Symlink(w.at(fmt.Sprint(target)), w.at(link)))
	}
	var result toolward.Result
	var err error
	w.watch.time(func() { result, err = a.pass.Run(context.Background()) })
	o.took = w.watch.longest
	switch text := fmt.Sprint(result.Content); {
	case strings.Contains(text, "SECRET"):
		o.answer, o.why = harmful, "it read what lies outside: "+text
	case c.Want == string(contained):
		o.answer = contained
	case err != nil || result.IsError:
		o.answer, o.why = denied, fmt.Sprintf("admitted, but it failed: %.200s %v", text, err)
	}
	return o
}

// tryOthers reaches for the same path in every other way that a sandboxed session has. Whatever each of them answers,
// nothing outside is read or changed.
func (w *world) tryOthers(c *attack, o outcome) {
	path := w.at(c.Attempt.text("path"))
	word := "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	calls := []struct {
		tool string
		args map[string]any
	}{
		{"read", map[string]any{"path": path}},
		{"list", map[string]any{"path": path}},
		{"search", map[string]any{"path": path, "pattern": "SECRET"}},
		{"write", map[string]any{"path": path, "content": "PWNED"}},
		{"edit", map[string]any{"path": path, "oldText": "S", "newText": "PWNED"}},
		{"apply_patch", map[string]any{"patch": "*** Begin Patch\n*** Delete File: " + path + "\n*** End Patch\n"}},
		{"exec", map[string]any{"command": "ls", "workdir": path}},
	}
	if !strings.ContainsRune(path, 0) && len(c.Setup.object("hardlinks")) == 0 { // a file of the workspace by whatever other name is one
		for _, command := range []string{"head -c 65536 -- %s", "printf PWNED > %s", "ln -s /outside/secret x; head -c 99 x; rm -f -- %s"} {
			calls = append(calls, struct {
				tool string
				args map[string]any
			}{"exec", map[string]any{"command": fmt.Sprintf(command, word), "timeout": 0.5}})
		}
	}
	for _, call := range calls {
		caller, _ := w.main("s1")
		a := w.admit(w.newCall(caller, call.tool, call.args))
		if a.answer != allowed {
			continue
		}
		result, _ := a.pass.Run(context.Background()) // it may fail
		if text := fmt.Sprint(result.Content); call.tool != "search" && strings.Contains(text, "SECRET") {
			w.t.Errorf("%s %v after %s: it read what lies outside: %s", call.tool, call.args, o.answer, text)
		}
	}
}
