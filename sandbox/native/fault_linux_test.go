package native

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

// patience bounds every wait of these tests, on a busy machine.
const patience = 2 * time.Minute

func ensure(t *testing.T, e *Engine, spec *sandbox.Spec) sandbox.Handle {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	handle, err := e.Ensure(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

// output runs a shell command inside and returns what it wrote.
func output(ctx context.Context, handle sandbox.Handle, text string) (string, error) {
	process, err := handle.Start(ctx, sandbox.Command{Argv: []string{"/bin/bash", "-c", text}})
	if err != nil {
		return "", err
	}
	go io.Copy(io.Discard, process.Stderr()) // only the output is looked at
	out, err := io.ReadAll(process.Stdout())
	if err != nil {
		return "", err
	}
	status, err := process.Wait(ctx)
	if err == nil && status.Code != 0 {
		err = fmt.Errorf("%s: %+v", text, status)
	}
	return string(out), err
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// Two hundred sandboxes are made, used and removed, many at the same time, and nothing of them is left.
func TestManySandboxes(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp) // of what the engine makes
	e := testEngine(t, Options{})
	workspaces, err := os.MkdirTemp(filepath.Dir(temp), "workspaces")
	if err != nil {
		t.Fatal(err)
	}
	manySandboxes(t, e, workspaces, 2)
	eventually(t, "a helper waits for the next sandbox, as from now on", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		waiting := 0
		for _, list := range e.spares {
			waiting += len(list)
		}
		return waiting == 1 && !e.refilling
	})
	before := live.Hold()
	began := time.Now()
	many := live.Count(t, "TOOLWARD_SANDBOXES", 200, 200)
	manySandboxes(t, e, workspaces, many)
	t.Logf("%d sandboxes in %v", many, time.Since(began).Round(time.Millisecond))
	before.MustLetGo(t)
	if states, err := e.List(t.Context()); err != nil || len(states) != 0 {
		t.Errorf("%d sandboxes are left, %v", len(states), err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func manySandboxes(t *testing.T, e *Engine, workspaces string, many int) {
	t.Helper()
	const atOnce = 20
	slots := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i := range many {
		workspace, err := os.MkdirTemp(workspaces, "")
		if err != nil {
			t.Fatal(err)
		}
		spec := testSpec(t, workspace)
		spec.Name = fmt.Sprintf("many-%d", i)
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			handle, err := e.Ensure(ctx, spec)
			if err != nil {
				t.Error(err)
				return
			}
			if out, err := output(ctx, handle, "echo $$ > file; cat file; pwd"); err != nil || !strings.HasSuffix(out, "/workspace\n") {
				t.Errorf("%q, %v", out, err)
			}
			if err := e.Remove(ctx, spec.Name); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// What root and others do differs enough that everything is tried as both.
func TestFaultsAsUser(t *testing.T) {
	if asUser(t) {
		return
	}
	t.Run("owners and protected paths", TestOwnersAndProtectedPaths)
	t.Run("swapped sources", TestSwappedSources)
	t.Run("protected paths while links are swapped", TestProtectedPathsWhileLinksAreSwapped)
	t.Run("egress", TestEgress)
	t.Run("program inside is killed", TestProgramInsideIsKilled)
	t.Run("conflict", TestConflictingSandbox)
	t.Run("gateway is killed", TestGatewayIsKilled)
}

func TestEgress(t *testing.T) {
	e := testEngine(t, Options{})
	path := filepath.Join(t.TempDir(), "egress.sock")
	proxy, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				line, _ := bufio.NewReader(conn).ReadString('\n')
				fmt.Fprintf(conn, "the proxy was asked %s", line)
			}()
		}
	}()
	spec := testSpec(t, t.TempDir())
	spec.Network = sandbox.Network{Mode: sandbox.NetworkEgress, EgressDir: filepath.Dir(path)}
	handle := ensure(t, e, spec)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, port := range []string{"3128", "1080"} {
		out, err := output(ctx, handle, "exec 3<>/dev/tcp/127.0.0.1/"+port+"; echo for "+port+" >&3; cat <&3")
		if err != nil || out != "the proxy was asked for "+port+"\n" {
			t.Errorf("port %s: %q, %v", port, out, err)
		}
	}
	if out, err := output(ctx, handle, "echo $HTTPS_PROXY $all_proxy"); out != "http://127.0.0.1:3128 socks5h://127.0.0.1:1080\n" {
		t.Errorf("the variables are %q, %v", out, err)
	}
	if out, err := output(ctx, handle, "exec 3<>/dev/tcp/1.1.1.1/443 && echo out"); err == nil {
		t.Errorf("around the proxy: %q", out)
	}
}

func TestOwnersAndProtectedPaths(t *testing.T) {
	e := testEngine(t, Options{})
	workspace := t.TempDir()
	if err := os.MkdirAll(filepath.Join(workspace, "repo/.git/hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := testSpec(t, workspace)
	spec.Protected = []string{"/workspace/repo/.git/hooks", "/workspace/.envrc"}
	handle := ensure(t, e, spec)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, text := range []string{
		"touch repo/.git/hooks/pre-commit", "rmdir repo/.git/hooks", "mv repo/.git repo/other", "mv repo/.git/hooks repo/.git/other",
	} {
		if out, err := output(ctx, handle, text); err == nil {
			t.Errorf("%s: %q, and no error", text, out)
		}
	}
	if out, err := output(ctx, handle, "touch repo/.git/index made; stat -c %u made; id -u"); err != nil || out[:len(out)/2] != out[len(out)/2:] {
		t.Errorf("who owns what was made, and who made it: %q, %v", out, err)
	}
	info, err := os.Stat(filepath.Join(workspace, "made"))
	if err != nil {
		t.Fatal(err)
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != os.Geteuid() {
		t.Errorf("on the host it belongs to %d, and the workspace to %d", owner, os.Geteuid())
	}
	// The file tools, too: they do without openat2 where the filter cannot look at its mode.
	if _, err := handle.WriteFile(ctx, "/workspace/new/file", []byte("text"), sandbox.WriteOptions{Parents: true}); err != nil {
		t.Error(err)
	}
	if data, _, err := handle.ReadFile(ctx, "/workspace/new/file", 0, 100); err != nil || string(data) != "text" {
		t.Errorf("what was written is %q, %v", data, err)
	}
	if _, err := handle.WriteFile(ctx, "/workspace/repo/.git/hooks/pre-commit", []byte("x"), sandbox.WriteOptions{}); err == nil {
		t.Error("a file tool has written a hook")
	}
	if out, err := output(ctx, handle, "chmod u+s made && stat -c %a made"); err == nil && os.Geteuid() == 0 {
		t.Errorf("a program of the host's root was made: %q", out)
	}
}

func TestConflictingSandbox(t *testing.T) {
	e := testEngine(t, Options{})
	spec := testSpec(t, t.TempDir())
	handle := ensure(t, e, spec)
	if again := ensure(t, e, spec); again != handle {
		t.Error("the same Spec made another sandbox")
	}
	other := *spec
	other.Hash = "2"
	if _, err := e.Ensure(t.Context(), &other); sandbox.CodeOf(err) != sandbox.CodeConflict {
		t.Errorf("another configuration under the same name: %v", err)
	}
	state, err := e.Lookup(t.Context(), spec.Name)
	if err != nil || !state.Running || state.EngineID != handle.(*box).helper.id {
		t.Errorf("%+v, %v", state, err)
	}
	if err := e.Remove(t.Context(), spec.Name); err != nil {
		t.Error(err)
	}
	if _, err := e.Lookup(t.Context(), spec.Name); sandbox.CodeOf(err) != sandbox.CodeNotFound {
		t.Errorf("after it was removed: %v", err)
	}
	if err := e.Remove(t.Context(), spec.Name); err != nil {
		t.Errorf("removing what does not exist: %v", err)
	}
	bridge := *spec
	bridge.Network.Mode = sandbox.NetworkBridge
	if _, err := e.Ensure(t.Context(), &bridge); sandbox.CodeOf(err) != sandbox.CodeConfig {
		t.Errorf("a network that the engine has not: %v", err)
	}
	if _, err := e.Ensure(t.Context(), spec); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
}

// Where memory runs out, commands end before the program that runs them.
func TestCommandsEndFirst(t *testing.T) {
	e := testEngine(t, Options{})
	handle := ensure(t, e, testSpec(t, t.TempDir()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := output(ctx, handle, `for i in {1..200}; do read score < /proc/$$/oom_score_adj; [ $score = 500 ] && break; sleep 0.05; done; echo $score; cat /proc/1/oom_score_adj`)
	if err != nil || out != "500\n0\n" {
		t.Errorf("the command's and the program's: %q, %v", out, err)
	}
}

func TestDiskLimitEndsTheSandbox(t *testing.T) {
	e := testEngine(t, Options{})
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "before"), make([]byte, 4<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := testSpec(t, workspace)
	spec.Limits.Disk = 2 << 20
	handle := ensure(t, e, spec)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := output(ctx, handle, "head -c 1000000 /dev/zero > small"); err != nil {
		t.Fatal(err)
	}
	if _, err := output(ctx, handle, "head -c 5000000 /dev/zero > large; sleep 300"); sandbox.CodeOf(err) != sandbox.CodeUnavailable || !strings.Contains(err.Error(), "sandbox.limits.disk") {
		t.Errorf("a command that wrote too much: %v, want %s and the limit", err, sandbox.CodeUnavailable)
	}
	select {
	case <-handle.Done():
	case <-ctx.Done():
		t.Fatal("the sandbox goes on")
	}
	if reason := handle.(*box).reason; !strings.Contains(reason, "2 MiB are allowed") {
		t.Errorf("the reason is %q", reason)
	}
}
