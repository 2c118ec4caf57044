package docker

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/toolward/toolward/internal/escape"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

func TestEscapeBattery(t *testing.T) { battery(t) }

// The gateway of an ordinary user who may use the container engine mounts files of its own user.
func TestEscapeBatteryAsUser(t *testing.T) {
	if !asUser(t) {
		battery(t)
	}
}

func battery(t *testing.T) {
	t.Helper()
	e := testEngine(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	escape.Run(t, escape.Target{
		Engine: e, Hidden: []string{home, t.TempDir(), "/etc/passwd-", "/var/lib/dpkg"},
		Spec: func(t *testing.T, workspace string) *sandbox.Spec { return testSpec(t, workspace) },
	})
}

// nobody is whom tests of an ordinary user run as. The machine need not know the number.
const nobody = 12345

// asUser runs this test again as an ordinary user with the group of the container engine's socket, if it runs as root.
// It returns true where the caller has nothing left to do: in the process of root.
func asUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	testEngine(t) // makes the image
	socket, local := strings.CutPrefix(os.Getenv(client.EnvOverrideHost), "unix://")
	if !local {
		t.Skip("not run: the container engine has no socket here")
	}
	info, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	group := info.Sys().(*syscall.Stat_t).Gid
	if group == 0 || info.Mode().Perm()&0o060 != 0o060 {
		t.Skip("not run: ordinary users cannot use the container engine: its socket has no group of its own")
	}
	dir, err := os.MkdirTemp("", "toolward-docker-user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	home := filepath.Join(dir, "home")
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(executable)
	err = errors.Join(err, os.Chmod(dir, 0o755), os.Mkdir(home, 0o755), os.Chown(home, nobody, nobody), os.WriteFile(filepath.Join(dir, "test"), binary, 0o755))
	if err != nil {
		t.Fatal(err)
	}
	live.Build(t, "cmd/toolward-inside", filepath.Join(dir, "toolward-inside")) // found beside the program
	live.Build(t, "internal/escape/probe", filepath.Join(dir, "probe"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "test"), "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, client.EnvOverrideHost + "=" + os.Getenv(client.EnvOverrideHost),
		escape.ProbeVariable + "=" + filepath.Join(dir, "probe"), imageVariable + "=" + imageName(),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, Groups: []uint32{group}}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "--- SKIP") {
		t.Fatalf("as user %d: %v\n%s", nobody, err, out)
	}
	t.Logf("as user %d:\n%s", nobody, out)
	return true
}
