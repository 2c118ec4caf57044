package native

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolward/toolward/internal/escape"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

// landlockSpec is a sandbox without namespaces: nothing is mounted, so the workspace is where it is.
func landlockSpec(t *testing.T, workspace string) *sandbox.Spec {
	t.Helper()
	spec := testSpec(t, workspace)
	spec.Workdir, spec.Mounts[0].Target = workspace, workspace
	spec.DegradeOK = []string{"cgroup", "namespaces"}
	return spec
}

func landlockEngine(t *testing.T) *Engine {
	t.Helper()
	e := New(Options{Instance: t.Name(), program: insideFile(t), noNamespaces: true})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, abi := e.checkLandlock(); abi < landlockScopes {
		if live.All() {
			t.Fatalf("TOOLWARD_LIVE=all, but Landlock here is version %d", abi)
		}
		t.Skipf("not run: Landlock here is version %d", abi)
	}
	if level := e.capabilities().Level; level != sandbox.LevelLandlock {
		t.Fatalf("level %d: %+v", level, e.capabilities().Checks)
	}
	return e
}

func TestEscapeBatteryLandlock(t *testing.T) {
	if asUser(t) {
		return
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	escape.RunAttempts(t, escape.Target{Engine: landlockEngine(t), Table: "landlock", Spec: landlockSpec, Hidden: []string{secret}})
}

// What Landlock cannot take away must not be promised.
func TestLandlockRefusesToReadOnlyBelowWritable(t *testing.T) {
	workspace := t.TempDir()
	vendor := filepath.Join(workspace, "vendor")
	if err := os.Mkdir(vendor, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		source             string
		workspace, allowed bool // the workspace can be written to
	}{{vendor, true, false}, {workspace, true, false}, {vendor, false, true}, {t.TempDir(), true, true}} {
		spec := landlockSpec(t, workspace)
		spec.Mounts[0].Writable = test.workspace
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Kind: sandbox.MountBind, Source: test.source, Target: test.source})
		m, err := landlockMounts(spec)
		if (err == nil) != test.allowed || err != nil && sandbox.CodeOf(err) != sandbox.CodeConfig {
			t.Errorf("%s, read-only, beside a workspace that can be written to (%v): %v", test.source, test.workspace, err)
		}
		if m != nil {
			m.close()
		}
	}
}

func TestLandlockOnly(t *testing.T) {
	if asUser(t) {
		return
	}
	e := landlockEngine(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := landlockSpec(t, t.TempDir())
	for name, change := range map[string]func(*sandbox.Spec){
		"without consent":     func(s *sandbox.Spec) { s.DegradeOK = []string{"cgroup"} },
		"with another target": func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Source: "/tmp", Target: "/data"}} },
		"with egress":         func(s *sandbox.Spec) { s.Network.Mode = sandbox.NetworkEgress },
	} {
		refused := *spec
		change(&refused)
		if handle, err := e.Ensure(t.Context(), &refused); err == nil {
			handle.Close()
			t.Errorf("%s: a sandbox was made", name)
		}
	}
	handle := ensure(t, e, spec)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if out, err := output(ctx, handle, "echo x > file && cat file && pwd"); err != nil || out != "x\n"+spec.Workdir+"\n" {
		t.Errorf("in the workspace: %q, %v", out, err)
	}
	for _, text := range []string{"cat " + secret, "echo x > " + secret, "ls /home", "ls " + filepath.Dir(spec.Workdir), "exec 3<>/dev/tcp/127.0.0.1/22"} {
		if out, err := output(ctx, handle, text); err == nil {
			t.Errorf("%s: %q, and no error", text, out)
		}
	}
	process, err := handle.Start(ctx, sandbox.Command{Shell: "sleep 1000.75 & setsid sleep 1000.75"})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command runs", func() bool { return running("1000.75") })
	if err := syscall.Kill(os.Getpid(), 0); err != nil {
		t.Fatal(err)
	}
	if err := handle.Close(); err != nil {
		t.Error(err)
	}
	process.Wait(ctx) // it was ended with its sandbox
	eventually(t, "nothing is left", func() bool { return !running("1000.75") })
}
