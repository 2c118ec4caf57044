// Package escape tries to get out of sandboxes: the escape battery, for every engine. A program in the workspace makes
// the attempts as the user inside; what came of them is compared with a table, and the host is looked at as well: an
// attempt has failed only if nothing has changed there.
package escape

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

// Target is an engine and how a sandbox with defaults is specified for it.
type Target struct {
	Engine sandbox.Engine
	// Table is the column of the table that counts; "" is the engine's name.
	Table string
	// Spec makes the Spec of a sandbox whose workspace is a directory of the host.
	Spec func(t *testing.T, workspace string) *sandbox.Spec
	// Hidden are paths of the host that no sandbox may see: the gateway's state, its user's home.
	Hidden []string
}

const (
	memoryLimit = 256 << 20
	pidsLimit   = 64
	patience    = 5 * time.Minute // for one command of the battery, on a busy machine
)

// Run runs the battery.
func Run(t *testing.T, target Target) {
	probe := build(t)
	t.Run("attempts", func(t *testing.T) { attempts(t, target, probe) })
	t.Run("read-only workspace", func(t *testing.T) { readOnly(t, target) })
	t.Run("kill the program inside", func(t *testing.T) { killInside(t, target) })
	t.Run("fork bomb", func(t *testing.T) { forkBomb(t, target, probe) })
	t.Run("memory", func(t *testing.T) { memory(t, target, probe) })
	t.Run("empty files", func(t *testing.T) { emptyFiles(t, target, probe) })
	t.Run("fill", func(t *testing.T) { fillDisks(t, target, probe) })
}

// ProbeVariable names a built probe, for tests that run as a user who cannot build one.
const ProbeVariable = "TOOLWARD_TEST_PROBE"

// RunAttempts runs only what a program tries, for sandboxes whose files are where they are on the host.
func RunAttempts(t *testing.T, target Target) { attempts(t, target, build(t)) }

func build(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(ProbeVariable); path != "" {
		return path
	}
	program := filepath.Join(t.TempDir(), "probe")
	live.Build(t, "internal/escape/probe", program)
	return program
}

// start makes a sandbox with the probe in its workspace.
func start(t *testing.T, target Target, probe string, change func(*sandbox.Spec)) (sandbox.Handle, string) {
	t.Helper()
	workspace := filepath.Join(OnDisk(t), "workspace")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	if probe != "" {
		copyProbe(t, probe, workspace)
	}
	spec := target.Spec(t, workspace)
	if change != nil {
		change(spec)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	handle, err := target.Engine.Ensure(ctx, spec)
	if err != nil {
		t.Fatalf("make a sandbox: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := target.Engine.Remove(ctx, spec.Name); err != nil {
			t.Errorf("remove the sandbox: %v", err)
		}
	})
	return handle, workspace
}

func copyProbe(t *testing.T, probe, workspace string) {
	t.Helper()
	data, err := os.ReadFile(probe)
	if err == nil {
		err = os.WriteFile(filepath.Join(workspace, "probe"), data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const tmpfsMagic = 0x01021994 // type of Linux's file system in memory

// OnDisk is a temporary directory on a disk. Where /tmp is in memory, what is written to a workspace there is memory of the
// sandbox, not page cache that the kernel can give back.
func OnDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err != nil {
		t.Fatal(err)
	}
	if system.Type != tmpfsMagic {
		return dir
	}
	dir, err := os.MkdirTemp("/var/tmp", "toolward-escape")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// run runs a command to its end.
func run(t *testing.T, handle sandbox.Handle, argv ...string) (output string, status sandbox.ExitStatus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	process, err := handle.Start(ctx, sandbox.Command{Argv: argv})
	if err != nil {
		t.Fatalf("%v: %v", argv, err)
	}
	said := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(io.LimitReader(process.Stderr(), 1<<16))
		said <- string(data)
	}()
	out, err := io.ReadAll(process.Stdout())
	if err != nil {
		t.Fatalf("%v: output: %v", argv, err)
	}
	status, err = process.Wait(ctx)
	if err != nil {
		t.Fatalf("%v: %v", argv, err)
	}
	if text := <-said; text != "" {
		t.Logf("%v says: %s", argv, text)
	}
	return string(out), status
}

// attempts runs the attempts of the table.
func attempts(t *testing.T, target Target, probe string) {
	handle, workspace := start(t, target, probe, nil)
	attemptsIn(t, cmp.Or(target.Table, target.Engine.Name()), workspace, target.Hidden, func(command string) (string, int) {
		out, status := run(t, handle, strings.Fields(command)...)
		return out, status.Code
	})
}

// RunAttemptsIn runs the attempts of a table by whatever way commands get into the sandbox of a workspace.
func RunAttemptsIn(t *testing.T, table, workspace string, hidden []string, run func(command string) (output string, code int)) {
	copyProbe(t, build(t), workspace)
	attemptsIn(t, table, workspace, hidden, run)
}

func attemptsIn(t *testing.T, table, workspace string, hidden []string, run func(command string) (output string, code int)) {
	t.Helper()
	host := newHost(t, hidden)
	data, err := json.Marshal(host.target)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, "target.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	out, code := run("./probe battery target.json")
	if code != 0 {
		t.Fatalf("the probe ended with %d after:\n%s", code, out)
	}
	seen := map[string]bool{}
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		attempt, outcome, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			t.Errorf("the probe says %q", lines.Text())
			continue
		}
		number, _, _ := strings.Cut(attempt, " ")
		seen[number] = true
		if want := expected(table, attempt); !slices.Contains(want, outcome) {
			t.Errorf("%s: %s, want one of %v", attempt, outcome, want)
		}
	}
	for _, number := range []string{
		"1", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "15", "16", "17", "18", "19", "20", "21", "22", "23",
		"24", "25", "26", "30", "x",
	} {
		if !seen[number] {
			t.Errorf("attempt %s was not made", number)
		}
	}
	host.unchanged(t)
	setuidOf(t, workspace)
}

// setuidOf fails for files that the sandbox has left on the host and that run as somebody else than who made them.
func setuidOf(t *testing.T, workspace string) {
	t.Helper()
	entries, err := os.ReadDir(workspace)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t).Uid
		if group := info.Sys().(*syscall.Stat_t).Gid; info.Mode()&os.ModeSetuid != 0 && owner == 0 || info.Mode()&os.ModeSetgid != 0 && group == 0 {
			t.Errorf("the sandbox left %s, which runs as root for everybody on the host", entry.Name())
		}
		// What marks a file for the host's root, or gives it rights, would count there whoever starts it.
		for _, name := range []string{"security.capability", "trusted.escape", "security.ima"} {
			if _, err := unix.Getxattr(filepath.Join(workspace, entry.Name()), name, nil); err == nil {
				t.Errorf("the sandbox left %s with %s", entry.Name(), name)
			}
		}
		if info.Mode()&os.ModeDevice != 0 {
			t.Errorf("the sandbox left the device %s", entry.Name())
		}
	}
}

// probeTarget is what the probe is told of the host.
type probeTarget struct {
	Paths    []string
	Abstract string
	Port     int
	Victim   int
	Marker   string
}

// host is what must not be reached.
type host struct {
	target  probeTarget
	reached chan string
	before  map[string]string
	victim  *exec.Cmd
	died    chan struct{}
}

// watchedFiles are settings of the machine that an escape would change.
var watchedFiles = []string{
	"/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
}

func newHost(t *testing.T, hidden []string) *host {
	t.Helper()
	h := &host{reached: make(chan string, 16), before: map[string]string{}, died: make(chan struct{})}
	h.target.Paths = hidden
	h.target.Abstract = fmt.Sprintf("toolward-escape-%d", os.Getpid())
	h.listen(t, "unix", "@"+h.target.Abstract)
	h.target.Port = h.listen(t, "tcp", "127.0.0.1:0").(*net.TCPAddr).Port
	// A number that no process of a sandbox has, and arguments that none of them has.
	h.target.Marker = "86399.5"
	h.victim = exec.Command("sleep", h.target.Marker)
	if err := h.victim.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = h.victim.Wait() // that it ended is what counts
		close(h.died)
	}()
	t.Cleanup(func() {
		_ = h.victim.Process.Kill() // it may have ended
		<-h.died
	})
	h.target.Victim = h.victim.Process.Pid
	for _, path := range watchedFiles {
		h.before[path] = content(path)
	}
	return h
}

func (h *host) listen(t *testing.T, network, address string) net.Addr {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
			h.reached <- network
		}
	}()
	return listener.Addr()
}

func content(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// unchanged fails if an attempt had an effect on the host.
func (h *host) unchanged(t *testing.T) {
	t.Helper()
	select {
	case network := <-h.reached:
		t.Errorf("a listener of the host (%s) was reached", network)
	case <-h.died:
		t.Error("a process of the host was ended")
	default:
	}
	for path, before := range h.before {
		if now := content(path); now != before {
			t.Errorf("%s was %q and is %q", path, before, now)
		}
	}
	for _, dir := range []string{"/", "/usr", "/etc", "/bin", "/usr/bin", "/lib", "/dev"} {
		if _, err := os.Lstat(filepath.Join(dir, "toolward-escape")); err == nil {
			t.Errorf("the sandbox has made a file in the host's %s", dir)
		}
	}
}
