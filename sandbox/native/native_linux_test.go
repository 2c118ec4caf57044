package native

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/internal/escape"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

// testEngine is an engine for one test, which fails if the engine leaves anything behind.
func testEngine(t *testing.T, options Options) *Engine {
	t.Helper()
	if file := insideFile(t); file != nil {
		options.program = file
	}
	if options.Instance == "" {
		options.Instance = t.Name()
	}
	own := filepath.Dir(t.TempDir())
	mounts := machineMounts(own)
	e := New(options)
	if err := e.Sweep(t.Context()); err != nil { // of a run of this test that was killed
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
		nothingLeft(t, e, own, mounts)
	})
	capabilities := e.capabilities()
	if !capabilities.Works() || capabilities.Level == sandbox.LevelLandlock {
		for _, check := range capabilities.Checks {
			t.Logf("%s: %v, %s; %s", check.Name, check.OK, check.Found, check.Fix)
		}
		if live.All() { // an engine that has stopped working must not pass for a machine that cannot
			t.Fatal("TOOLWARD_LIVE=all, but there are no namespaces for sandboxes on this machine")
		}
		t.Skip("not run: there are no namespaces for sandboxes on this machine")
	}
	return e
}

// insideVariable names a built toolward-inside for tests that run as another user, who cannot build one.
const insideVariable = "TOOLWARD_TEST_INSIDE"

func insideFile(t *testing.T) *os.File {
	t.Helper()
	path := os.Getenv(insideVariable)
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// testSpec is a sandbox with defaults.
func testSpec(t *testing.T, workspace string) *sandbox.Spec {
	t.Helper()
	return &sandbox.Spec{
		Name: filepath.Base(t.Name()), Hash: "1", ScopeKey: "agent:test", Instance: t.Name(), Workdir: "/workspace",
		Mounts:    []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: workspace, Target: "/workspace", Writable: true}},
		Env:       []string{"LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/workspace"},
		User:      sandbox.User{UID: os.Geteuid(), GID: os.Getegid()},
		Tmpfs:     []sandbox.Tmpfs{{Target: "/tmp"}, {Target: "/var/tmp"}, {Target: "/run"}},
		Network:   sandbox.Network{Mode: sandbox.NetworkNone},
		Limits:    sandbox.Limits{Memory: 1 << 30, Pids: 512},
		DegradeOK: []string{"cgroup"},
	}
}

// nothingLeft fails for control groups, processes and mounts of an engine that was closed.
func nothingLeft(t *testing.T, e *Engine, own, mounts string) {
	t.Helper()
	if h, err := e.groups(); err == nil {
		for _, dir := range h.dirs("") {
			entries, _ := os.ReadDir(dir)
			for _, entry := range entries {
				if entry.IsDir() {
					t.Errorf("the control group %s/%s is left", dir, entry.Name())
				}
			}
		}
	}
	for _, pid := range helpers(os.Getpid()) {
		t.Errorf("process %d is left", pid)
	}
	if now := machineMounts(own); now != mounts {
		t.Errorf("mounts were\n%s\nand are\n%s", mounts, now)
	}
}

// machineMounts are the mounts of this machine, without what others have mounted meanwhile: systemd below /run when people
// log in, other tests their container engines and file systems in their temporary directories. An engine leaves none in a
// directory of ours unseen: it would be in the test's own.
func machineMounts(own string) string {
	var kept strings.Builder
	for line := range strings.Lines(content("/proc/self/mountinfo")) {
		fields := strings.Fields(line)
		if len(fields) < 5 || strings.Contains(line, "docker") {
			continue
		}
		at := fields[4]
		if strings.HasPrefix(at, "/run/user/") || strings.HasPrefix(at, "/run/credentials/") {
			continue
		}
		temporary := strings.HasPrefix(at, "/tmp/") || strings.HasPrefix(at, os.TempDir()+"/") // an ordinary user's are elsewhere
		if temporary && !strings.HasPrefix(at, own) {
			continue
		}
		kept.WriteString(line)
	}
	return kept.String()
}

func content(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

// helpers are the processes of the native engine that a process has started.
func helpers(parent int) []int {
	var found []int
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat := content("/proc/" + entry.Name() + "/stat")
		_, rest, ok := strings.Cut(stat, ") ")
		fields := strings.Fields(rest)
		if ok && len(fields) > 1 && fields[1] == strconv.Itoa(parent) && strings.HasPrefix(content("/proc/"+entry.Name()+"/cmdline"), "toolward-inside") {
			found = append(found, pid)
		}
	}
	return found
}

// nobody is whom tests of an ordinary user run as. The machine need not know the number.
const nobody = 12345

// asUser runs this test again as an ordinary user, if it runs as root. It returns true where the caller has nothing left
// to do: in the process of root.
func asUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		// As the gateway does. Nobody makes a user namespace in the ordinary way then.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		return false
	}
	dir, err := os.MkdirTemp("", "toolward-native")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	home := filepath.Join(dir, "home")
	executable, err := os.Executable()
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(home, 0o755), os.Chown(home, nobody, nobody))
	}
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, executable, filepath.Join(dir, "test"))
	live.Build(t, "cmd/toolward-inside", filepath.Join(dir, "inside"))
	live.Build(t, "internal/escape/probe", filepath.Join(dir, "probe"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "test"), "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "TOOLWARD_LIVE=" + os.Getenv("TOOLWARD_LIVE"), "HOME=" + home, "TMPDIR=" + home, insideVariable + "=" + filepath.Join(dir, "inside"),
		escape.ProbeVariable + "=" + filepath.Join(dir, "probe"),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as user %d: %v\n%s", nobody, err, out)
	}
	t.Logf("as user %d:\n%s", nobody, out)
	return true
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
