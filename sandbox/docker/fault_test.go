package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

// lost fails unless a command's end says that the sandbox is gone.
func lost(t *testing.T, p sandbox.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if status, err := p.Wait(ctx); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("the command that ran ended with %+v, %v; want %s", status, err, sandbox.CodeUnavailable)
	}
}

func begin(t *testing.T, h sandbox.Handle, argv ...string) sandbox.Process {
	t.Helper()
	p, err := h.Start(t.Context(), sandbox.Command{Argv: argv})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ended waits until a handle says that its sandbox has ended.
func ended(t *testing.T, h sandbox.Handle) {
	t.Helper()
	select {
	case <-h.Done():
	case <-time.After(patience):
		t.Fatal("the handle does not say that the sandbox has ended")
	}
}

func alive(t *testing.T, h sandbox.Handle) {
	t.Helper()
	if out, status := output(t, h, sandbox.Command{Argv: []string{"echo", "alive"}}); out != "alive\n" || status.Code != 0 {
		t.Errorf("a command says %q, %+v", out, status)
	}
}

func TestWhatIsKilledComesBack(t *testing.T) {
	for name, kill := range map[string]func(t *testing.T, container string){
		"container": func(t *testing.T, container string) { docker(t, "kill", container) },
		"program inside": func(t *testing.T, container string) {
			if os.Geteuid() != 0 {
				t.Skip("not run: only root can signal processes of others")
			}
			pid := docker(t, "inspect", "--format", "{{.State.Pid}}", container)
			if out, err := exec.Command("kill", "-9", pid).CombinedOutput(); err != nil {
				t.Fatalf("kill: %v: %s", err, out)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := testEngine(t)
			spec := testSpec(t, newWorkspace(t))
			h := ensure(t, e, spec)
			p := begin(t, h, "sleep", "600")
			kill(t, spec.Name)
			lost(t, p)
			ended(t, h)
			again := ensure(t, e, spec)
			alive(t, again)
			if again.State().EngineID != h.State().EngineID {
				t.Error("another container was made")
			}
		})
	}
}

func TestRemovedBehindOurBack(t *testing.T) {
	e := testEngine(t)
	spec := testSpec(t, newWorkspace(t))
	h := ensure(t, e, spec)
	docker(t, "rm", "--force", spec.Name)
	ended(t, h)
	alive(t, ensure(t, e, spec))
}

func TestManyWantTheSame(t *testing.T) {
	e := testEngine(t)
	spec := testSpec(t, newWorkspace(t))
	handles := make([]sandbox.Handle, 8)
	var wanting sync.WaitGroup
	for i := range handles {
		wanting.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			h, err := e.Ensure(ctx, spec)
			if err != nil {
				t.Error(err)
			}
			handles[i] = h
		})
	}
	wanting.Wait()
	ensure(t, e, spec)
	for _, h := range handles {
		if h != handles[0] {
			t.Error("two sandboxes were made")
		}
	}
	if states, err := e.List(t.Context()); err != nil || len(states) != 1 {
		t.Errorf("there are %v, %v", states, err)
	}
}

// gatewayVariable makes the test program a gateway that makes a sandbox in a workspace, runs commands and waits to be
// killed.
const gatewayVariable = "TOOLWARD_TEST_GATEWAY"

func TestGatewayKilled(t *testing.T) {
	if workspace := os.Getenv(gatewayVariable); workspace != "" {
		runGateway(t, workspace)
		return
	}
	e := testEngine(t)
	workspace := newWorkspace(t)
	spec := testSpec(t, workspace)
	spec.Name = killedName
	t.Cleanup(func() { remove(t, e, killedName) })
	remove(t, e, killedName)
	gateway := exec.Command(os.Args[0], "-test.run=^TestGatewayKilled$", "-test.v")
	gateway.Env = append(os.Environ(), gatewayVariable+"="+workspace, imageVariable+"="+imageName())
	said, err := gateway.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	defer gateway.Wait()         // it was killed
	defer gateway.Process.Kill() // as above
	told := make(chan string, 1)
	go func() {
		var all strings.Builder
		buffer := make([]byte, 4096)
		for !strings.Contains(all.String(), "gateway ready") {
			n, err := said.Read(buffer)
			all.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		told <- all.String()
	}()
	select {
	case text := <-told:
		if !strings.Contains(text, "gateway ready") {
			t.Fatalf("the gateway says %s", text)
		}
	case <-time.After(patience):
		t.Fatal("the gateway does not get ready")
	}
	id := docker(t, "inspect", "--format", "{{.Id}}", killedName)
	if err := gateway.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h := ensure(t, e, spec)
	if h.State().EngineID != id {
		t.Error("the container was not adopted")
	}
	if out, _ := output(t, h, shell("ps -o args | grep -c '[s]leep 601'; cat kept")); out != "0\nkept\n" {
		t.Errorf("of the 20 commands and the workspace there is %q", out)
	}
}

const killedName = "toolward-test-killed-gateway"

func runGateway(t *testing.T, workspace string) {
	e := New(Options{Instance: t.Name()})
	spec := testSpec(t, workspace)
	spec.Name = killedName
	h, err := e.Ensure(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	output(t, h, shell("echo kept > kept"))
	for range 20 {
		begin(t, h, "sleep", "601")
	}
	fmt.Println("gateway ready")
	time.Sleep(patience) // it is killed before
}

func TestForeignContainers(t *testing.T) {
	e := testEngine(t)
	spec := testSpec(t, newWorkspace(t))
	docker(t, "create", "--name", spec.Name, imageName())
	t.Cleanup(func() { docker(t, "rm", "--force", spec.Name) })
	ctx := t.Context()
	if _, err := e.Ensure(ctx, spec); sandbox.CodeOf(err) != sandbox.CodeConflict {
		t.Errorf("using somebody else's container: %v", err)
	}
	if err := e.Remove(ctx, spec.Name); sandbox.CodeOf(err) != sandbox.CodeConflict {
		t.Errorf("removing it: %v", err)
	}
	if err := e.Stop(ctx, spec.Name); sandbox.CodeOf(err) != sandbox.CodeConflict {
		t.Errorf("stopping it: %v", err)
	}
	if states, err := e.List(ctx); err != nil || len(states) != 0 {
		t.Errorf("it is listed: %v, %v", states, err)
	}
	if name := docker(t, "inspect", "--format", "{{.Name}}", spec.Name); name != "/"+spec.Name {
		t.Errorf("it is %q now", name)
	}
}

func TestAnotherConfigurationIsAConflict(t *testing.T) {
	e := testEngine(t)
	spec := testSpec(t, newWorkspace(t))
	h := ensure(t, e, spec)
	for what, change := range map[string]func(*sandbox.Spec){
		"hash": func(s *sandbox.Spec) { s.Hash = "2" }, "scope": func(s *sandbox.Spec) { s.ScopeKey = "agent:other" },
	} {
		other := *spec
		change(&other)
		if _, err := e.Ensure(t.Context(), &other); sandbox.CodeOf(err) != sandbox.CodeConflict {
			t.Errorf("another %s while it is held: %v", what, err)
		}
		second := New(Options{Instance: t.Name()}) // another gateway of the same home
		if _, err := second.Ensure(t.Context(), &other); sandbox.CodeOf(err) != sandbox.CodeConflict {
			t.Errorf("another %s for another gateway: %v", what, err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}
	alive(t, h)
}

func TestStoppedOneStartsAgain(t *testing.T) {
	e := testEngine(t)
	spec := testSpec(t, newWorkspace(t))
	h := ensure(t, e, spec)
	if err := e.Stop(t.Context(), spec.Name); err != nil {
		t.Fatal(err)
	}
	ended(t, h)
	if s, err := e.Lookup(t.Context(), spec.Name); err != nil || s.Running {
		t.Errorf("it is %+v, %v", s, err)
	}
	again := ensure(t, e, spec)
	alive(t, again)
	if again.State().EngineID != h.State().EngineID {
		t.Error("another container was made")
	}
}

func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: only root can mount a small disk")
	}
	e := testEngine(t)
	workspace, err := os.MkdirTemp("", "toolward-docker-disk") // tests of other packages look for mounts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(workspace) })
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "none", workspace).CombinedOutput(); err != nil {
		t.Skipf("not run: no small disk: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", workspace).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	h := ensure(t, e, testSpec(t, workspace))
	_, err = h.WriteFile(t.Context(), "/workspace/large", make([]byte, 8<<20), sandbox.WriteOptions{})
	if sandbox.CodeOf(err) != sandbox.CodeFull {
		t.Errorf("a file larger than the disk: %v", err)
	}
	if out, status := output(t, h, shell("dd if=/dev/zero of=large bs=1M count=8")); status.Code == 0 || !strings.Contains(out, "No space left") {
		t.Errorf("a command that fills it says %q, %+v", out, status)
	}
	if err := h.Remove(t.Context(), "/workspace/large", sandbox.RemoveOptions{}); err != nil {
		t.Errorf("remove it: %v", err)
	}
	alive(t, h)
}

func TestDiskLimit(t *testing.T) {
	e := testEngine(t)
	spec := testSpec(t, newWorkspace(t))
	spec.Limits.Disk = 4 << 20
	h := ensure(t, e, spec)
	p := begin(t, h, "sh", "-c", "dd if=/dev/zero of=large bs=1M count=16; sleep 600")
	lost(t, p)
	ended(t, h)
}

func TestReplacedMountIsRefused(t *testing.T) {
	e := testEngine(t)
	workspace, other := newWorkspace(t), t.TempDir()
	spec := testSpec(t, workspace)
	pinned, err := os.Open(workspace)
	if err != nil {
		t.Fatal(err)
	}
	defer pinned.Close()
	spec.Mounts[0].Pinned = pinned
	// As a sandbox that shares the directory above could do after the check.
	if err := errors.Join(os.Rename(workspace, workspace+"-old"), os.Symlink(other, workspace)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Ensure(t.Context(), spec); sandbox.CodeOf(err) != sandbox.CodeChanged {
		t.Errorf("a workspace that was replaced: %v", err)
	}
	if _, err := e.Lookup(t.Context(), spec.Name); sandbox.CodeOf(err) != sandbox.CodeNotFound {
		t.Errorf("its container is left: %v", err)
	}
}

func TestDaemonRestarts(t *testing.T) {
	own := live.OwnDockerd(t)
	t.Setenv(client.EnvOverrideHost, own.Host)
	haveImage(t, false)
	e := newEngine(t)
	spec := testSpec(t, newWorkspace(t))
	h := ensure(t, e, spec)
	p := begin(t, h, "sleep", "600")
	if err := own.Stop(); err != nil {
		t.Fatal(err)
	}
	// The container is asked to end before it is ended, so that the command may have been ended in order.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if status, err := p.Wait(ctx); sandbox.CodeOf(err) != sandbox.CodeUnavailable && status.Signal != syscall.SIGTERM {
		t.Errorf("the command that ran ended with %+v, %v", status, err)
	}
	ended(t, h)
	if _, err := e.Ensure(t.Context(), spec); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("while the container engine is away: %v", err)
	}
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	alive(t, ensure(t, e, spec))
}

func TestNobodyElseComesThroughTheDoor(t *testing.T) {
	e := testEngine(t)
	spec := testSpec(t, newWorkspace(t))
	h := ensure(t, e, spec)
	if out, _ := output(t, h, shell("ls -A /.toolward/door; echo x > /.toolward/door/socket; echo x > /.toolward/agent")); !strings.HasPrefix(out, "sh:") || strings.Contains(out, "socket\n") {
		t.Errorf("the door: %q", out)
	}
	at, err := e.doorDirectory(spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(at); err != nil || len(entries) != 0 {
		t.Errorf("the door's directory holds %v, %v", entries, err)
	}
	if info, err := os.Stat(filepath.Dir(at)); err != nil || info.Mode().Perm() != 0o700 || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		t.Errorf("the directory above is %v, %v", info.Mode(), err)
	}
}
