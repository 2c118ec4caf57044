package attacks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward"
)

// judgeFiles: a tool is given a path, in a tree with links and other traps.
func judgeFiles(t *testing.T, c *attack) (outcome, error) {
	if err := setupOnly(c, "profile", "symlinks", "hardlinks", "files", "fs", "race", "rootIsSymlink", "autoApproveWrites", "caller"); err != nil {
		return outcome{}, err
	}
	if c.Attempt.text("tool") == "exec" {
		return judgeShell(t, c)
	}
	if tool := c.Attempt.text("tool"); tool == "allowlist.add" || tool == "chat.command" {
		return judgeAllowlist(newWorld(t, withPrograms, withToolward), c)
	}
	tool, args, err := fileCall(c)
	if err != nil {
		return outcome{}, err
	}
	w := newWorld(t, func(w *world) {
		w.foldCase = c.Setup.text("fs") == "case-insensitive"
		for link, target := range c.Setup.object("rootIsSymlink") {
			w.link(link, fmt.Sprint(target))
		}
	})
	if err := w.build(c); err != nil {
		return outcome{}, err
	}
	w.set("workspace", "teg", "preset") // writes in the workspace run without a question
	w.set(true, "tools", "exec", "applyPatch", "enabled")
	w.set(c.Setup.text("profile") != "fs-open", "tools", "fs", "workspaceOnly")
	w.compile()
	if path, ok := args["path"].(string); ok {
		args["path"] = w.at(path)
	}
	caller, _ := w.main("s1")
	w.checkParameters(w.find(caller, tool), args)
	return w.judgeTargets(c, w.admit(w.newCall(caller, tool, args)))
}

// fileCall is the call of an attempt.
func fileCall(c *attack) (tool string, args map[string]any, err error) {
	a := c.Attempt
	path := a["path"]
	switch tool = a.text("tool"); tool {
	case "read":
		return tool, map[string]any{"path": path}, a.only(tool, "tool", "path")
	case "write":
		return tool, map[string]any{"path": path, "content": "x" + a.text("content")}, a.only(tool, "tool", "path", "content")
	case "edit":
		return tool, map[string]any{"path": path, "oldText": "{" + a.text("old"), "newText": "x" + a.text("new")}, a.only(tool, "tool", "path", "old", "new")
	case "apply_patch":
		patch := a.text("patch")
		if patch == "" {
			patch = fmt.Sprintf("*** Add File: %s\n+x", path)
		}
		return tool, map[string]any{"patch": "*** Begin Patch\n" + patch + "\n*** End Patch\n"}, a.only(tool, "tool", "path", "patch")
	case "list", "ls":
		return "list", map[string]any{"path": path}, a.only(tool, "tool", "path")
	case "search", "grep", "find":
		return "search", map[string]any{"path": path, "pattern": ".*"}, a.only(tool, "tool", "path")
	case "config.patch", "config.apply":
		return "gateway", map[string]any{"action": tool, "patch": a["patch"], "raw": a["raw"]}, a.only(tool, "tool", "patch", "raw")
	}
	return "", nil, unsupported{"tool " + a.text("tool")}
}

// checkParameters fails when a call has parameters that its tool does not know. Such a call is refused whatever it
// aims at, which would prove nothing.
func (w *world) checkParameters(tool *toolward.Tool, args map[string]any) {
	w.t.Helper()
	var declared struct{ Properties map[string]any }
	must(w.t, json.Unmarshal(tool.Schema, &declared))
	for name := range args {
		if _, ok := declared.Properties[name]; !ok {
			w.t.Fatalf("%s has no parameter %q", tool.Name, name)
		}
	}
}

// link makes a symbolic link of the corpus, and what it leads to if that is a workspace.
func (w *world) link(link, target string) {
	w.parents(link)
	if strings.HasPrefix(target, "/data") {
		must(w.t, os.MkdirAll(w.at(target), 0o755))
	}
	must(w.t, os.Symlink(w.at(target), w.at(link)))
}

func (w *world) parents(path string) {
	must(w.t, os.MkdirAll(filepath.Dir(w.at(path)), 0o755))
}

// build makes what the setup says, on top of the usual tree.
func (w *world) build(c *attack) error {
	for link, target := range c.Setup.object("symlinks") {
		w.link(link, fmt.Sprint(target))
	}
	for name, target := range c.Setup.object("hardlinks") {
		w.parents(name)
		must(w.t, os.Link(w.at(fmt.Sprint(target)), w.at(name)))
	}
	for name, what := range c.Setup.object("files") {
		if err := w.file(name, fmt.Sprint(what)); err != nil {
			return err
		}
	}
	must(w.t, os.MkdirAll(w.at("/var/run"), 0o755))
	must(w.t, syscall.Mknod(w.at("/var/run/docker.sock"), syscall.S_IFSOCK|0o600, 0))
	path := c.Attempt.text("path")
	if c.Control && c.Attempt.text("tool") == "read" && filepath.IsLocal(path) {
		w.parents("/ws/" + path)
		if _, err := os.Stat(w.at("/ws/" + path)); err != nil {
			return w.file("/ws/"+path, "content")
		}
	}
	return nil
}

// file makes a file of a kind.
func (w *world) file(name, what string) error {
	w.parents(name)
	at := w.at(name)
	switch {
	case what == "fifo":
		return syscall.Mkfifo(at, 0o600)
	case what == "chardev":
		if err := syscall.Mknod(at, syscall.S_IFCHR|0o600, 1<<8|3); err != nil {
			return os.Symlink("/dev/null", at) // without the right to make one, a link to one: refused as well
		}
		return nil
	case strings.HasPrefix(what, "sparse:"):
		if err := os.WriteFile(at, nil, 0o644); err != nil {
			return err
		}
		return os.Truncate(at, 20<<30)
	}
	return os.WriteFile(at, []byte(what), 0o644)
}

// judgeTargets runs what was admitted, if all of it lies in the tree, and says whether anything got out of the
// workspace.
func (w *world) judgeTargets(c *attack, a admission) (outcome, error) {
	if err := c.Check.only("check", "no_read_outside"); err != nil {
		return outcome{}, err
	}
	o := w.outcome(a)
	if a.answer != allowed {
		if c.Want == string(contained) {
			o.answer = contained
		}
		return o, nil
	}
	for _, target := range a.pass.Request().Facts.Targets {
		if !strings.HasPrefix(target.Real, w.root+"/") {
			return outcome{answer: allowed, why: "it would reach " + target.Real}, nil
		}
	}
	for link, target := range c.Setup.object("race").object("symlink") {
		// Swapped between the decision and the run.
		must(w.t, os.RemoveAll(w.at(link)))
		must(w.t, os.Symlink(w.at(fmt.Sprint(target)), w.at(link)))
	}
	before := w.outside()
	var result toolward.Result
	var err error
	w.watch.time(func() { result, err = a.pass.Run(context.Background()) })
	o.took = w.watch.longest
	text := fmt.Sprint(result.Content)
	switch got := w.outside(); {
	case got != before || strings.Contains(text, "SECRET"):
		o.answer, o.why = harmful, "it got out of the workspace: "+text
	case c.Want == string(contained):
		o.answer = contained
	case err != nil || result.IsError:
		o.answer, o.why = denied, fmt.Sprintf("admitted, but it failed: %.200s %v", text, err)
	}
	return o, nil
}

// outside is all that lies in the tree outside the workspace and the state, with sizes.
func (w *world) outside() string {
	var b strings.Builder
	for _, top := range []string{"/outside", "/data", "/var/run"} {
		_ = filepath.Walk(w.at(top), func(path string, info os.FileInfo, err error) error {
			if err == nil {
				fmt.Fprintln(&b, path, info.Size())
			}
			return nil
		})
	}
	return b.String()
}
