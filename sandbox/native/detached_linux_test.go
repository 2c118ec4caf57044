package native

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// detachedEngine is an engine of its own gateway: several of them, one after the other, have the same directory. The last
// one of a test ends what goes on.
func detachedEngine(t *testing.T, dir string) *Engine {
	t.Helper()
	e := testEngine(t, Options{Instance: t.Name(), Dir: dir})
	if err := e.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// supervisors is where they are met. Whatever a test does, nothing of it goes on after it.
func supervisors(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "supervisors")
	t.Cleanup(func() {
		all, _ := (&supervised{dir: dir}).load()
		for name, r := range all {
			if h, err := findHelper(r.ID); err == nil {
				t.Errorf("sandbox %s goes on after its test", name)
				h.end()
			}
		}
	})
	return dir
}

// daemonize is a shell command after which a process sleeps that belongs to nobody. One that is not there yet when the
// command ends would end with it.
func daemonize(seconds string) string {
	return "setsid -f sh -c 'touch /tmp/up; exec sleep " + seconds + "' </dev/null >/dev/null 2>&1; until test -e /tmp/up; do sleep 0.01; done"
}

func detachedSpec(t *testing.T, workspace string) *sandbox.Spec {
	t.Helper()
	spec := testSpec(t, workspace)
	spec.Detach = time.Hour
	return spec
}

func remove(t *testing.T, e *Engine, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := e.Remove(ctx, name); err != nil {
		t.Error(err)
	}
	if _, err := e.Lookup(ctx, name); sandbox.CodeOf(err) != sandbox.CodeNotFound {
		t.Errorf("it is still there: %v", err)
	}
}

// A sandbox that outlives its gateway keeps what daemonized and what is in memory, loses what the gateway had running, and is
// the same one for the next gateway.
func TestOutlivesItsGateway(t *testing.T) {
	asUser(t)
	const daemon, foreground = "1000.61", "1000.62"
	dir, workspace := supervisors(t), t.TempDir()
	first := detachedEngine(t, dir)
	spec := detachedSpec(t, workspace)
	handle := ensure(t, first, spec)
	if !handle.State().Detached {
		t.Error("it does not say that it goes on")
	}
	if out, err := output(t.Context(), handle, "echo kept > /tmp/file; "+daemonize(daemon)+"; echo done"); err != nil || out != "done\n" {
		t.Fatalf("%q %v", out, err)
	}
	process, err := handle.Start(t.Context(), sandbox.Command{Shell: "trap '' TERM; sleep " + foreground})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command runs", func() bool { return running(foreground) })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := process.Wait(t.Context()); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("a command of a gateway that has ended: %v", err)
	}

	second := detachedEngine(t, dir)
	states, err := second.List(t.Context())
	if err != nil || len(states) != 1 || states[0].EngineID != handle.State().EngineID || !states[0].Running || !states[0].Detached {
		t.Fatalf("the next gateway finds %+v, %v", states, err)
	}
	again := ensure(t, second, spec)
	if again.State().EngineID != handle.State().EngineID || !again.State().Created.Equal(handle.State().Created) {
		t.Errorf("it is another one: %+v, was %+v", again.State(), handle.State())
	}
	if running(foreground) {
		t.Error("a command of the earlier gateway goes on")
	}
	if !running(daemon) {
		t.Error("what has daemonised has ended")
	}
	if out, err := output(t.Context(), again, "cat /tmp/file; pgrep -fc 'sleep "+daemon+"'"); err != nil || out != "kept\n1\n" {
		t.Errorf("inside there is %q, %v", out, err)
	}
	if stats, err := again.Stats(t.Context()); err != nil || stats.Memory == 0 || stats.Pids == 0 {
		t.Errorf("it uses %+v, %v", stats, err)
	}
	remove(t, second, spec.Name)
	if running(daemon) {
		t.Error("something goes on after its sandbox was removed")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// The next gateway can end what it has never used, and what another configuration has made is not used.
func TestNextGatewayEndsWhatItDoesNotUse(t *testing.T) {
	dir, workspace := supervisors(t), t.TempDir()
	first := detachedEngine(t, dir)
	spec := detachedSpec(t, workspace)
	ensure(t, first, spec)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := detachedEngine(t, dir)
	other := *spec
	other.Hash = "2"
	if _, err := second.Ensure(t.Context(), &other); sandbox.CodeOf(err) != sandbox.CodeConflict {
		t.Errorf("another hash: %v", err)
	}
	remove(t, second, spec.Name)
	handle := ensure(t, second, &other)
	if out, err := output(t.Context(), handle, "cat /tmp/file 2>/dev/null || echo new"); err != nil || out != "new\n" {
		t.Errorf("%q %v", out, err)
	}
	remove(t, second, spec.Name)
}

// gatewayThatIsKilled has the test program be a gateway with one sandbox until it is killed.
func gatewayThatIsKilled(t *testing.T, dir, workspace, daemon, foreground string) {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	e := New(Options{Instance: t.Name(), Dir: dir, program: insideFile(t)})
	spec := detachedSpec(t, workspace)
	handle, err := e.Ensure(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := output(t.Context(), handle, "echo kept > /tmp/file; "+daemonize(daemon)); err != nil {
		t.Fatal(err)
	}
	process, err := handle.Start(t.Context(), sandbox.Command{Shell: "trap '' TERM; sleep " + foreground})
	if err != nil {
		t.Fatal(err)
	}
	process.Wait(t.Context())
}

// gatewayProcess starts this test again as a gateway.
func gatewayProcess(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	gateway := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	gateway.Env = append(os.Environ(), gatewayVariable+"="+dir, "TMPDIR="+t.TempDir())
	gateway.Stdout, gateway.Stderr = os.Stderr, os.Stderr
	hold, err := gateway.StdinPipe() // it ends when this process does
	if err == nil {
		err = gateway.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gateway.Process.Kill(); hold.Close() })
	return gateway
}

// A gateway that is killed leaves as much as one that ends in order.
func TestOutlivesAKilledGateway(t *testing.T) {
	const daemon, foreground = "1000.63", "1000.64"
	if dir := os.Getenv(gatewayVariable); dir != "" {
		gatewayThatIsKilled(t, dir, filepath.Join(filepath.Dir(dir), "workspace"), daemon, foreground)
		return
	}
	asUser(t)
	dir := supervisors(t)
	workspace := filepath.Join(filepath.Dir(dir), "workspace")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	e := detachedEngine(t, dir)
	gateway := gatewayProcess(t, dir)
	eventually(t, "its commands run", func() bool { return running(daemon) && running(foreground) })
	if err := gateway.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gateway.Wait()
	eventually(t, "what the gateway had running has ended", func() bool { return !running(foreground) })
	if err := e.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	handle := ensure(t, e, detachedSpec(t, workspace))
	if out, err := output(t.Context(), handle, "cat /tmp/file; pgrep -fc 'sleep "+daemon+"'"); err != nil || out != "kept\n1\n" {
		t.Errorf("inside there is %q, %v", out, err)
	}
	remove(t, e, handle.State().Name)
}

// Without a gateway for longer than it may be, a sandbox ends by itself, with everything in it.
func TestEndsAlone(t *testing.T) {
	const daemon = "1000.65"
	dir := supervisors(t)
	e := detachedEngine(t, dir)
	spec := detachedSpec(t, t.TempDir())
	spec.Detach = time.Second
	handle := ensure(t, e, spec)
	if _, err := output(t.Context(), handle, daemonize(daemon)); err != nil {
		t.Fatal(err)
	}
	if err := handle.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has ended", func() bool {
		states, err := e.List(t.Context())
		return err == nil && len(states) == 0 && !running(daemon)
	})
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// While there is no gateway, nobody uses up the machine: memory and disk are looked at from inside.
func TestLimitsWithoutAGateway(t *testing.T) {
	dir := supervisors(t)
	e := detachedEngine(t, dir)
	spec := detachedSpec(t, t.TempDir())
	spec.Limits.Disk = 32 << 20
	handle := ensure(t, e, spec)
	if _, err := output(t.Context(), handle, `setsid -f sh -c 'while test ! -e go; do sleep 0.1; done; head -c 60000000 /dev/zero > big; sleep 1000.66' </dev/null >/dev/null 2>&1; sleep 0.2`); err != nil {
		t.Fatal(err)
	}
	handle.Close()
	if err := os.WriteFile(filepath.Join(spec.Mounts[0].Source, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has ended", func() bool {
		states, err := e.List(t.Context())
		return err == nil && len(states) == 0
	})
}

// Without a gateway nothing gets out; the next one is reached as the first was.
func TestEgressOfTheNextGateway(t *testing.T) {
	dir := supervisors(t)
	proxies, err := os.MkdirTemp("", "tw") // the path of a socket holds about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(proxies) })
	if err := os.Chmod(proxies, 0o711); err != nil {
		t.Fatal(err)
	}
	proxy := func(name string) net.Listener {
		l, err := net.Listen("unix", filepath.Join(proxies, "egress.sock"))
		if err == nil {
			err = os.Chmod(l.Addr().String(), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				io.WriteString(conn, name)
				conn.Close()
			}
		}()
		return l
	}
	e := detachedEngine(t, dir)
	spec := detachedSpec(t, t.TempDir())
	spec.Network = sandbox.Network{Mode: sandbox.NetworkEgress, EgressDir: proxies}
	const ask = "cat < /dev/tcp/127.0.0.1/3128"
	first := proxy("first")
	handle := ensure(t, e, spec)
	if out, err := output(t.Context(), handle, ask); err != nil || out != "first" {
		t.Fatalf("%q %v", out, err)
	}
	daemon := "setsid -f bash -c 'touch started; until test -e asked; do if test -e go; then " + ask + " > said 2>&1; touch asked; fi; sleep 0.05; done' </dev/null >/dev/null 2>&1; until test -e started; do sleep 0.01; done"
	if _, err := output(t.Context(), handle, daemon); err != nil {
		t.Fatal(err)
	}
	handle.Close()
	first.Close()
	workspace := spec.Mounts[0].Source
	if err := os.WriteFile(filepath.Join(workspace, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a program has tried to get out", func() bool { _, err := os.Stat(filepath.Join(workspace, "asked")); return err == nil })
	if said := content(filepath.Join(workspace, "said")); strings.Contains(said, "first") || strings.Contains(said, "second") {
		t.Errorf("without a gateway it reached %q", said)
	}
	second := proxy("second")
	defer second.Close()
	if out, err := output(t.Context(), ensure(t, e, spec), ask); err != nil || out != "second" {
		t.Errorf("%q %v", out, err)
	}
	remove(t, e, spec.Name)
}

// Where nobody else limits memory, the first process does while there is no gateway.
func TestMemoryWithoutAGateway(t *testing.T) {
	if os.Geteuid() == 0 {
		asUser(t) // root has control groups
		return
	}
	dir := supervisors(t)
	e := detachedEngine(t, dir)
	if e.capabilities().Level != sandbox.LevelNoCgroup {
		t.Skip("not run: this user has control groups")
	}
	spec := detachedSpec(t, t.TempDir())
	spec.Limits.Memory = 128 << 20
	handle := ensure(t, e, spec)
	command := "setsid -f bash -c 'touch started; until test -e go; do sleep 0.05; done; (head -c 400000000 /dev/zero; sleep 5) | tail >/dev/null; echo $? > ended' </dev/null >/dev/null 2>&1; until test -e started; do sleep 0.01; done"
	if _, err := output(t.Context(), handle, command); err != nil {
		t.Fatal(err)
	}
	handle.Close()
	if err := os.WriteFile(filepath.Join(spec.Mounts[0].Source, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// tail keeps a line that never ends: without a limit it would take 400 MB and end in order.
	ended := filepath.Join(spec.Mounts[0].Source, "ended")
	eventually(t, "the largest process has ended", func() bool { return content(ended) != "" })
	if status := content(ended); status != "137\n" {
		t.Errorf("it has ended with %q", status)
	}
	remove(t, e, spec.Name)
}

// Without namespaces nothing would end the processes together: who asks for it is told.
func TestDetachNeedsNamespaces(t *testing.T) {
	if asUser(t) {
		return
	}
	e := landlockEngine(t)
	e.supervised.dir = supervisors(t)
	spec := landlockSpec(t, t.TempDir())
	spec.Detach = time.Hour
	if _, err := e.Ensure(t.Context(), spec); sandbox.CodeOf(err) != sandbox.CodeConfig || !strings.Contains(err.Error(), "outlive") {
		t.Errorf("%v", err)
	}
}
