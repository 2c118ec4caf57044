package docker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox"
)

func TestProtectedPaths(t *testing.T) {
	e := testEngine(t)
	workspace := newWorkspace(t)
	spec := testSpec(t, workspace)
	hooks := filepath.Join(workspace, ".git/hooks")
	if err := os.MkdirAll(hooks, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".git", ".git/hooks"} {
		if err := os.Chown(filepath.Join(workspace, dir), spec.User.UID, spec.User.GID); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(workspace, ".vscode")); err != nil {
		t.Fatal(err)
	}
	spec.Protected = []string{"/workspace/.git/hooks", "/workspace/.vscode", "/workspace/gone"}
	h := ensure(t, e, spec)
	out, _ := output(t, h, shell("echo x > .git/hooks/pre-commit; mv .git other; echo x > .git/fine && echo fine; ls .vscode/ | grep -c passwd-"))
	if !strings.Contains(out, "Read-only file system") || !strings.Contains(out, "fine\n") || !strings.HasSuffix(strings.TrimSpace(out), "0") {
		if !strings.Contains(out, "busy") {
			t.Errorf("the shell says %q", out)
		}
	}
	if entries, err := os.ReadDir(hooks); err != nil || len(entries) != 0 {
		t.Errorf("the hooks are %v, %v", entries, err)
	}
	if _, err := os.Lstat(filepath.Join(workspace, ".git/fine")); err != nil {
		t.Errorf("what is not protected could not be written: %v", err)
	}
	if _, err := h.WriteFile(t.Context(), "/workspace/.git/hooks/post-commit", []byte("x"), sandbox.WriteOptions{}); sandbox.CodeOf(err) != sandbox.CodeReadOnly {
		t.Errorf("the file tool: %v", err)
	}
	// Another path is protected the next time: the container is made anew.
	if err := e.Stop(t.Context(), spec.Name); err != nil {
		t.Fatal(err)
	}
	spec.Protected = append(spec.Protected, "/workspace/.git/fine")
	again := ensure(t, e, spec)
	if out, _ := output(t, again, shell("echo y > .git/fine")); !strings.Contains(out, "Read-only file system") {
		t.Errorf("what is protected now: %q", out)
	}
	if again.State().EngineID == h.State().EngineID {
		t.Error("the container of before is used")
	}
}

func TestSetupCommand(t *testing.T) {
	e := testEngine(t)
	spec := testSpec(t, newWorkspace(t))
	spec.Setup = "echo once >> /workspace/setup"
	ensure(t, e, spec)
	if err := e.Stop(t.Context(), spec.Name); err != nil {
		t.Fatal(err)
	}
	h := ensure(t, e, spec)
	if out, _ := output(t, h, sandbox.Command{Argv: []string{"cat", "setup"}}); out != "once\n" {
		t.Errorf("it ran %q", out)
	}
	failing := testSpec(t, newWorkspace(t))
	failing.Name += "-failing"
	failing.Setup = "echo went wrong >&2; exit 3"
	if _, err := e.Ensure(t.Context(), failing); err == nil || !strings.Contains(err.Error(), "3: went wrong") {
		t.Errorf("a set-up command that fails: %v", err)
	}
	if states, err := e.List(t.Context()); err != nil || len(states) != 1 {
		t.Errorf("there are %v, %v", states, err)
	}
}

func TestRefusals(t *testing.T) {
	e := testEngine(t)
	for name, c := range map[string]struct {
		change func(*sandbox.Spec)
		want   sandbox.Code
		says   string
	}{
		"image":         {func(s *sandbox.Spec) { s.Docker.Image = "toolward-test-none:none" }, sandbox.CodeUnavailable, "sandbox image build"},
		"runtime":       {func(s *sandbox.Spec) { s.Docker.Runtime = "other" }, sandbox.CodeConfig, "runc"},
		"mapping":       {func(s *sandbox.Spec) { s.Docker.HostPaths = map[string]string{"/nowhere": "/x"} }, sandbox.CodeConfig, "hostPathMap"},
		"name servers":  {func(s *sandbox.Spec) { s.Docker.DNS = []string{"dns.example"} }, sandbox.CodeConfig, "dns.example"},
		"filter":        {func(s *sandbox.Spec) { s.Docker.SeccompProfile = "/nonexistent" }, sandbox.CodeConfig, "nonexistent"},
		"apparmor":      {func(s *sandbox.Spec) { s.Docker.AppArmor = " Unconfined" }, sandbox.CodeConfig, "confines nothing"},
		"missing mount": {func(s *sandbox.Spec) { s.Mounts[0].Source = "/nonexistent" }, sandbox.CodeConfig, "nonexistent"},
	} {
		spec := testSpec(t, newWorkspace(t))
		c.change(spec)
		_, err := e.Ensure(t.Context(), spec)
		if sandbox.CodeOf(err) != c.want || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%s), want %s with %q", name, err, sandbox.CodeOf(err), c.want, c.says)
		}
	}
}

func TestEgress(t *testing.T) {
	e := testEngine(t)
	dir, err := os.MkdirTemp("", "egress") // names of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "egress.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	if err := errors.Join(os.Chmod(socket, 0o666), os.Chmod(dir, 0o711)); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "the proxy\n") // the test looks for it
			conn.Close()
		}
	}()
	spec := testSpec(t, newWorkspace(t))
	spec.Network = sandbox.Network{Mode: sandbox.NetworkEgress, EgressDir: dir}
	h := ensure(t, e, spec)
	if out, _ := output(t, h, shell("nc 127.0.0.1 3128 </dev/null; nc 127.0.0.1 1080 </dev/null; echo $https_proxy; ip -o link | grep -vc lo:")); out != "the proxy\nthe proxy\nhttp://127.0.0.1:3128\n0\n" {
		t.Errorf("inside: %q", out)
	}
}

// Where no socket can be shared, the standard streams are the channel.
func TestStandardStreams(t *testing.T) {
	e := testEngine(t)
	e.options.streams = true
	spec := testSpec(t, newWorkspace(t))
	h := ensure(t, e, spec)
	alive(t, h)
	const size = 3 << 20
	if out, status := output(t, h, shell(fmt.Sprintf("head -c %d /dev/zero", size))); len(out) != size || status.Code != 0 {
		t.Errorf("%d bytes came, %+v", len(out), status)
	}
	p := begin(t, h, "sleep", "600")
	docker(t, "kill", spec.Name)
	lost(t, p)
	ended(t, h)
	alive(t, ensure(t, e, spec))
}
