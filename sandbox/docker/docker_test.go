package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/toolward/toolward/internal/escape"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker/rootfs"
)

// patience is for one step with a real container engine on a busy machine.
const patience = 2 * time.Minute

// testUser is who runs inside: somebody whom the machine need not know.
const testUser = 10001

var testImage struct {
	sync.Mutex
	made map[string]bool // by the address of the container engine
}

func TestMain(m *testing.M) {
	code := m.Run()
	for host := range testImage.made {
		os.Setenv(client.EnvOverrideHost, host)
		e := New(Options{})
		if err := e.RemoveImage(context.Background(), imageName()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		e.Close()
	}
	if err := live.StopDocker(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// imageVariable names an image for test programs that a test starts; theirs is the parent's.
const imageVariable = "TOOLWARD_TEST_IMAGE"

// runtimeVariable names a runtime of the container engine for the sandboxes of tests, in place of its default one.
const runtimeVariable = "TOOLWARD_TEST_RUNTIME"

func imageName() string {
	if name := os.Getenv(imageVariable); name != "" {
		return name
	}
	return fmt.Sprintf("toolward-test-%d:busybox", os.Getpid())
}

// testEngine is an engine for one test, which fails if anything is left in the container engine.
func testEngine(t testing.TB) *Engine {
	t.Helper()
	t.Setenv(client.EnvOverrideHost, live.Docker(t))
	haveImage(t, true)
	return newEngine(t)
}

// newEngine is an engine like another gateway of the same home.
func newEngine(t testing.TB) *Engine {
	t.Helper()
	e := New(Options{Instance: t.Name()})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		states, err := e.List(ctx)
		if err != nil && !e.closed {
			t.Errorf("list what is left: %v", err)
		}
		for _, s := range states {
			t.Errorf("the sandbox %s is left", s.Name)
			if err := e.Remove(ctx, s.Name); err != nil {
				t.Error(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return e
}

func haveImage(t testing.TB, keep bool) {
	t.Helper()
	if os.Getenv(imageVariable) != "" {
		return
	}
	live.Need(t, live.Program("busybox"))
	testImage.Lock()
	defer testImage.Unlock()
	host := os.Getenv(client.EnvOverrideHost)
	if testImage.made[host] {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var root bytes.Buffer
	if err := rootfs.Busybox(ctx, &root); err != nil {
		t.Fatal(err)
	}
	e := New(Options{})
	defer e.Close()
	if _, err := e.ImportImage(ctx, imageName(), &root); err != nil {
		t.Fatal(err)
	}
	if keep {
		if testImage.made == nil {
			testImage.made = map[string]bool{}
		}
		testImage.made[host] = true
	}
}

// testSpec is a sandbox with defaults.
func testSpec(t testing.TB, workspace string) *sandbox.Spec {
	t.Helper()
	if os.Geteuid() == 0 {
		if err := os.Chown(workspace, testUser, testUser); err != nil {
			t.Fatal(err)
		}
	}
	user := sandbox.User{UID: os.Geteuid(), GID: os.Getegid()}
	if user.UID == 0 {
		user = sandbox.User{UID: testUser, GID: testUser}
	}
	return &sandbox.Spec{
		Name: containerName(t), Hash: "1", ScopeKey: "agent:test", Instance: t.Name(), Workdir: "/workspace",
		Mounts:  []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: workspace, Target: "/workspace", Writable: true}},
		Env:     []string{"LANG=C.UTF-8"},
		User:    user,
		Tmpfs:   []sandbox.Tmpfs{{Target: "/tmp"}, {Target: "/var/tmp"}, {Target: "/run"}},
		Network: sandbox.Network{Mode: sandbox.NetworkNone},
		Limits:  sandbox.Limits{Memory: 1 << 30, Pids: 512},
		Docker:  sandbox.DockerSpec{Image: imageName(), Runtime: os.Getenv(runtimeVariable), CapDrop: []string{"ALL"}, Ulimits: []sandbox.Ulimit{{Name: "core"}}},
	}
}

// containerName is a name that containers can have, of this test alone.
func containerName(t testing.TB) string {
	return fmt.Sprintf("toolward-test-%d-%s", os.Getpid(), sandbox.Slug(t.Name()))
}

func newWorkspace(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workspace")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ensure makes a sandbox that is removed at the end of the test.
func ensure(t testing.TB, e *Engine, spec *sandbox.Spec) sandbox.Handle {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h, err := e.Ensure(ctx, spec)
	if err != nil {
		t.Fatalf("make a sandbox: %v", err)
	}
	t.Cleanup(func() { remove(t, e, spec.Name) })
	return h
}

func remove(t testing.TB, e *Engine, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := e.Remove(ctx, name); err != nil && !e.closed {
		t.Errorf("remove %s: %v", name, err)
	}
}

// starter is a sandbox or a lease of one.
type starter interface {
	Start(ctx context.Context, command sandbox.Command) (sandbox.Process, error)
}

// output runs a command to its end.
func output(t testing.TB, h starter, command sandbox.Command) (string, sandbox.ExitStatus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := h.Start(ctx, command)
	if err != nil {
		t.Fatalf("%+v: %v", command, err)
	}
	said := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(p.Stderr())
		said <- string(data)
	}()
	out, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatalf("%+v: output: %v", command, err)
	}
	status, err := p.Wait(ctx)
	if err != nil {
		t.Fatalf("%+v: %v", command, err)
	}
	return string(out) + <-said, status
}

func shell(text string) sandbox.Command { return sandbox.Command{Argv: []string{"sh", "-c", text}} }

func TestCommandsAndFiles(t *testing.T) {
	e := testEngine(t)
	workspace := newWorkspace(t)
	h := ensure(t, e, testSpec(t, workspace))
	if out, status := output(t, h, sandbox.Command{Argv: []string{"echo", "hello"}}); out != "hello\n" || status.Code != 0 {
		t.Errorf("echo says %q, %+v", out, status)
	}
	if out, status := output(t, h, shell("exit 7")); status.Code != 7 {
		t.Errorf("exit 7 is %+v, %q", status, out)
	}
	if out, _ := output(t, h, shell("id -u; pwd; cat /proc/self/status | grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:'; grep -c . /proc/net/route; hostname")); out !=
		fmt.Sprintf("%d\n/workspace\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n1\nsandbox\n", testSpec(t, workspace).User.UID) {
		t.Errorf("inside it is %q", out)
	}
	ctx := t.Context()
	if _, err := h.WriteFile(ctx, "/workspace/dir/file", []byte("text"), sandbox.WriteOptions{Parents: true}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(workspace, "dir/file")); string(data) != "text" {
		t.Errorf("on the host the file is %q, %v", data, err)
	}
	if data, info, err := h.ReadFile(ctx, "/workspace/dir/file", 1, 2); string(data) != "ex" || err != nil || info.Size != 4 {
		t.Errorf("a part is %q of %+v, %v", data, info, err)
	}
	if entries, more, err := h.List(ctx, "/workspace", sandbox.ListOptions{Limit: 10}); err != nil || more || len(entries) != 1 || entries[0].Name != "dir" {
		t.Errorf("the workspace holds %v, %v, %v", entries, more, err)
	}
	if _, err := h.WriteFile(ctx, "/etc/passwd", nil, sandbox.WriteOptions{}); sandbox.CodeOf(err) == "" {
		t.Error("a file of the image was written")
	}
	if out, _ := output(t, h, shell("echo x > /etc/new")); !strings.Contains(out, "Read-only file system") {
		t.Errorf("a shell that writes to the image says %q", out)
	}
	stats, err := h.Stats(ctx)
	if err != nil || stats.Memory <= 0 || stats.Pids <= 0 || stats.CPU <= 0 {
		t.Errorf("it uses %+v, %v", stats, err)
	}
	if s := h.State(); !s.Running || s.EngineID == "" || s.ScopeKey != "agent:test" || s.Hash != "1" || s.Instance != t.Name() || time.Since(s.Created) > time.Hour {
		t.Errorf("its state is %+v", s)
	}
}

func TestUsage(t *testing.T) {
	e := testEngine(t)
	workspace := filepath.Join(escape.OnDisk(t), "workspace")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	escape.Usage(t, ensure(t, e, testSpec(t, workspace)))
}

func TestNothingIsLeftOfARemovedSandbox(t *testing.T) {
	e := testEngine(t)
	spec := testSpec(t, newWorkspace(t))
	h := ensure(t, e, spec)
	ctx := t.Context()
	if s, err := e.Lookup(ctx, spec.Name); err != nil || !s.Running {
		t.Errorf("it is %+v, %v", s, err)
	}
	remove(t, e, spec.Name)
	select {
	case <-h.Done():
	default:
		t.Error("its handle does not say that it has ended")
	}
	if _, err := h.Start(ctx, sandbox.Command{Argv: []string{"true"}}); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("a command in it: %v", err)
	}
	if _, err := e.Lookup(ctx, spec.Name); sandbox.CodeOf(err) != sandbox.CodeNotFound {
		t.Errorf("looking for it: %v", err)
	}
	if err := e.Remove(ctx, spec.Name); err != nil {
		t.Errorf("removing it again: %v", err)
	}
}

// docker runs the command-line client.
func docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(live.Need(t, live.Program("docker")), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
