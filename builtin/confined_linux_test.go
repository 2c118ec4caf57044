package builtin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/native"
)

// oneBox confines every call to one sandbox.
type oneBox struct{ confinement *Confinement }

func (o oneBox) Confinement(context.Context, *toolward.Call) (*Confinement, error) {
	return o.confinement, nil
}

// confine puts the tools of a world into a real sandbox with the workspace at /workspace.
func (w *world) confine() {
	w.Helper()
	engine := native.New(native.Options{Instance: w.Name()})
	w.Cleanup(func() {
		if err := engine.Close(); err != nil {
			w.Error(err)
		}
	})
	probed, err := engine.Probe(w.Context())
	if err != nil || probed.Level < sandbox.LevelNoCgroup {
		if live.All() {
			w.Fatalf("TOOLWARD_LIVE=all, but this machine has no native sandboxes: %v, %+v", err, probed.Checks)
		}
		w.Skipf("not run: this machine has no native sandboxes: %v, %+v", err, probed.Checks)
	}
	user := sandbox.User{UID: os.Geteuid(), GID: os.Getegid()}
	if user.UID == 0 { // root is nobody inside
		user = sandbox.User{UID: 10001, GID: 10001}
		for _, dir := range []string{w.workspace} {
			if err := filepath.Walk(dir, func(p string, _ os.FileInfo, _ error) error { return os.Lchown(p, 10001, 10001) }); err != nil {
				w.Fatal(err)
			}
		}
	}
	mounts := []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: w.workspace, Target: "/workspace", Writable: true}}
	handle, err := engine.Ensure(w.Context(), &sandbox.Spec{
		Name: "builtin", Hash: "1", ScopeKey: "agent:coder", Instance: w.Name(), Workdir: "/workspace", Mounts: mounts, User: user,
		Env:   []string{"LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/workspace"},
		Tmpfs: []sandbox.Tmpfs{{Target: "/tmp"}}, Network: sandbox.Network{Mode: sandbox.NetworkNone},
		Limits: sandbox.Limits{Memory: 1 << 30, Pids: 256}, DegradeOK: []string{"cgroup"},
	})
	if err != nil {
		w.Fatal(err)
	}
	w.box.deps.Sandboxes = oneBox{&Confinement{
		Workdir: "/workspace", Mounts: mounts,
		Acquire: func(context.Context, string) (sandbox.Handle, func(), error) { return handle, func() {}, nil },
	}}
}

func TestConfinedTools(t *testing.T) {
	w := newWorld(t)
	for name, text := range map[string]string{"main.go": "package main // here\n", "sub/b.txt": "one\ntwo here\n", "@types/a.d.ts": "export {}\n", ".env": "KEY=here\n"} {
		if err := os.MkdirAll(filepath.Dir(w.workspace+"/"+name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.workspace+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", w.workspace+"/out"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(w.workspace+"/tools", 0o755), os.WriteFile(w.workspace+"/tools/own", []byte("#!/bin/sh\necho mine\n"), 0o755),
		os.WriteFile(w.workspace+"/once", nil, 0o644), os.Link(w.workspace+"/once", w.workspace+"/twice")); err != nil {
		t.Fatal(err)
	}
	w.confine()
	for _, tt := range []struct {
		tool string
		args args
		want string
	}{
		{"read", args{"path": "main.go"}, "package main"},
		{"read", args{"path": "/workspace/sub/b.txt"}, "two here"},
		{"read", args{"path": w.workspace + "/main.go"}, "package main"}, // a path of the host that is mounted
		{"read", args{"path": "@types/a.d.ts"}, "export"},
		{"read", args{"path": "@main.go"}, "package main"}, // as models write paths
		{"list", args{}, "main.go"},
		{"search", args{"pattern": "here"}, "sub/b.txt"},
		{"write", args{"path": "new/file", "content": "written\n"}, "Created"},
		{"edit", args{"path": "new/file", "oldText": "written", "newText": "changed"}, "Changed"},
		{"apply_patch", args{"patch": "*** Begin Patch\n*** Update File: new/file\n@@\n-changed\n+patched\n*** Add File: added\n+text\n*** End Patch\n"}, "Done"},
		{"exec", args{"command": "pwd && cat new/file && id -u"}, "/workspace\npatched\n"},
		{"exec", args{"command": "cat main.go | wc -l"}, "1"},
		{"exec", args{"command": "echo $((6*7)); echo err >&2; echo *.go"}, "42\nerr\nmain.go"},
		{"exec", args{"command": "ls /proc | grep -c '^[0-9]*$'; test -e " + w.home + " || echo hidden"}, "hidden"},
		{"exec", args{"command": "false"}, "code 1"},
		{"exec", args{"command": "nosuchprogram -v"}, "toolward: nosuchprogram: command not found\n\n(Command exited with code 127"},
		{"exec", args{"command": "nosuchprogram -v", "background": true}, "toolward: nosuchprogram: command not found\n\n(Command exited with code 127"},
		{"exec", args{"command": "echo $X", "env": map[string]any{"X": "given"}}, "given"},
		{"exec", args{"command": "own; echo $PATH", "env": map[string]any{"PATH": "/workspace/tools"}}, "mine\n/workspace/tools:"},
		{"read", args{"path": "none.md"}, "none.md does not exist"},
		{"read", args{"path": "twice"}, "other names"},
		{"exec", args{"command": "sleep 60", "timeout": 0.3}, "timed out"},
	} {
		if got := text(w.run(tt.tool, tt.args)); !strings.Contains(got, tt.want) {
			t.Errorf("%s %v: %q, want %q", tt.tool, tt.args, got, tt.want)
		}
	}
	if raw, err := os.ReadFile(w.workspace + "/new/file"); err != nil || string(raw) != "patched\n" {
		t.Errorf("%q, %v", raw, err)
	}
	if r := w.facts("exec", args{"command": "ls"}); r.Host() != toolward.HostSandbox {
		t.Errorf("it runs on %q", r.Host())
	}
	for _, a := range []args{{"path": "out"}, {"path": "/etc/passwd"}, {"path": w.outside + "/x"}, {"path": "../etc/passwd"}} {
		if _, err := w.request("read", a); err == nil || !strings.Contains(err.Error(), "sandbox") {
			t.Errorf("read %v: %v", a, err)
		}
	}
	if _, err := w.request("exec", args{"command": "ls", "env": map[string]any{"MY_API_KEY": "x"}}); err == nil {
		t.Error("a key went into the sandbox")
	}
	if r := w.facts("read", args{"path": ".env"}); r.Facts.Targets[0].Zone != toolward.ZoneSecret {
		t.Errorf("a secret of the workspace is %q inside", r.Facts.Targets[0].Zone)
	}
}

func TestConfinedBackground(t *testing.T) {
	w := newWorld(t)
	w.confine()
	id := details[runningDetails](t, w.run("exec", args{"command": "read line; echo got $line", "background": true})).SessionID
	w.ok("process", args{"action": "write", "sessionId": id, "data": "hello\n"})
	w.shows(id, "got hello")
	long := details[runningDetails](t, w.run("exec", args{"command": "sleep 600 & sleep 600", "background": true})).SessionID
	w.ok("process", args{"action": "kill", "sessionId": long})
	for end := time.Now().Add(20 * time.Second); ; {
		left := w.ok("exec", args{"command": "cat /proc/[0-9]*/comm"})
		if !strings.Contains(left, "sleep") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("left behind: %q", left)
		}
	}
}

// What is wrong with the sandbox is not told as if it were wrong with the file.
func TestSandboxThatCannotBeUsed(t *testing.T) {
	w := newWorld(t)
	w.put("ws/file", "text\n")
	for _, cause := range []error{os.ErrNotExist, os.ErrPermission, syscall.ENOSPC} {
		w.box.deps.Sandboxes = oneBox{&Confinement{
			Workdir: "/workspace",
			Mounts:  []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: w.workspace, Target: "/workspace", Writable: true}},
			Acquire: func(context.Context, string) (sandbox.Handle, func(), error) {
				return nil, nil, sandbox.Errorf(sandbox.CodeUnavailable, "connect to the container engine: %v", cause)
			},
		}}
		for tool, a := range map[string]args{
			"read": {"path": "file"}, "write": {"path": "file", "content": "new"}, "edit": {"path": "file", "oldText": "text", "newText": "new"},
			"list": {}, "search": {"pattern": "text"}, "apply_patch": {"patch": "*** Begin Patch\n*** Delete File: file\n*** End Patch\n"},
		} {
			result := w.run(tool, a)
			if said := text(result); !result.IsError || !strings.Contains(said, "the sandbox cannot be used: connect to the container engine") {
				t.Errorf("%s: %q", tool, said)
			}
		}
	}
}

// A path inside means another file in another sandbox: an approval for one is none for the other.
func TestApprovalsAreForOneSandbox(t *testing.T) {
	w := newWorld(t)
	bound := func(identity, tool string, a args) string {
		t.Helper()
		w.box.deps.Sandboxes = oneBox{&Confinement{
			Name: "box", Identity: identity, Workdir: "/workspace",
			Mounts: []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: w.workspace, Target: "/workspace", Writable: true}},
		}}
		facts := w.facts(tool, a).Facts
		if facts.Sandbox != "box" {
			t.Errorf("%s: the record will name the sandbox %q", tool, facts.Sandbox)
		}
		return strings.Join(facts.Bound, "\n")
	}
	for tool, a := range map[string]args{
		"exec": {"command": "ls"}, "read": {"path": "file"}, "write": {"path": "file", "content": "new"}, "list": {}, "search": {"pattern": "text"},
		"edit": {"path": "file", "oldText": "text", "newText": "new"}, "apply_patch": {"patch": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"},
	} {
		if one, other := bound("1", tool, a), bound("2", tool, a); one == other {
			t.Errorf("%s: an approval is bound to %q in both", tool, one)
		}
	}
}

// A command that is to run in a sandbox is judged by what it meets there: its HOME, its PATH, and what it may be given.
func TestConfinedEnvironment(t *testing.T) {
	w := newWorld(t)
	w.box.deps.Sandboxes = oneBox{&Confinement{
		Workdir: "/workspace", Environ: []string{"PATH=/usr/bin:/bin", "HOME=/workspace", "GREETING=hello"},
		Mounts: []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: w.workspace, Target: "/workspace", Writable: true}},
	}}
	r := w.facts("exec", args{"command": "cat $HOME/notes $GREETING $GIVEN $LANG", "env": args{"GIVEN": "given"}})
	if got := Assessment(r).Segments[0].Argv; !slices.Equal(got, []string{"cat", "/workspace/notes", "hello", "given"}) {
		t.Errorf("people are shown %q", got)
	}
	for name, allowed := range map[string]bool{
		"PATH": true, "HOME": true, "TERM": true, "CI": true,
		"LD_PRELOAD": false, "BASH_ENV": false, "NODE_OPTIONS": false, "GIT_SSH": false, "TOOLWARD_X": false, "A=B": false, "PATH ": false, " CI": false,
	} {
		r := w.facts("exec", args{"command": "true", "env": args{name: "/x"}})
		dangerous := func(f toolward.Finding) bool { return f.Code == "env_dangerous" && f.Effect == toolward.EffectDeny }
		if refused := slices.ContainsFunc(r.Facts.Findings, dangerous); refused == allowed {
			t.Errorf("%q: findings %+v", name, r.Facts.Findings)
		}
	}
	if _, err := w.request("exec", args{"command": "true", "env": args{"MY_TOKEN": "x"}}); err == nil || !strings.Contains(err.Error(), "MY_TOKEN") {
		t.Errorf("a credential: %v", err)
	}
}
