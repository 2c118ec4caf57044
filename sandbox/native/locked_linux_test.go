package native

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
)

// What a command finds around itself, line by line of how a sandbox is made.
func TestDoorIsLocked(t *testing.T) {
	handle := ensure(t, testEngine(t, Options{}), testSpec(t, t.TempDir()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	say := func(command string) string {
		out, err := output(ctx, handle, command)
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		return out
	}
	status := map[string]string{}
	for line := range strings.Lines(say("cat /proc/self/status")) {
		name, value, _ := strings.Cut(line, ":")
		status[name] = strings.TrimSpace(value)
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if strings.Trim(status[set], "0") != "" {
			t.Errorf("capabilities %s: %s", set, status[set])
		}
	}
	if status["NoNewPrivs"] != "1" || status["Seccomp"] != "2" || status["Umask"] != "0022" {
		t.Errorf("no_new_privs %s, seccomp %s, umask %s", status["NoNewPrivs"], status["Seccomp"], status["Umask"])
	}
	if os.Geteuid() == 0 && status["Groups"] != "" {
		t.Errorf("root's groups are there: %s", status["Groups"])
	}
	for command, want := range map[string]string{
		"ulimit -Hc": "0",
		"hostname || cat /proc/sys/kernel/hostname":    "sandbox",
		"ls /proc/self/fd | grep -v '^[012]$' | wc -l": "1", // that which ls reads
		"tail -n +3 /proc/net/dev | cut -d: -f1":       "lo",
		"cat /proc/sys/user/max_user_namespaces":       "0",
		"cut -d: -f3 /proc/self/cgroup | sort -u":      "/",
		"ls /sys 2>/dev/null | wc -l":                  "0",
		"ls /dev | tr '\\n' ' '":                       "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero",
		"ls /dev/pts":                                  "ptmx",
		"test \"$(ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat)\" != 1 && echo": "",
	} {
		if got := strings.TrimSpace(say(command)); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	bits := say("setpriv --dump | grep -i securebits")
	for _, want := range []string{"noroot_locked", "no_setuid_fixup_locked", "keep_caps_locked", "0xc0"} {
		// Programs that know the last two print their names: of raising ambient capabilities.
		if !strings.Contains(strings.Replace(bits, "no_cap_ambient_raise,no_cap_ambient_raise_locked", "0xc0", 1), want) {
			t.Errorf("securebits: %s", bits)
		}
	}
	mountsAreLocked(t, say("cat /proc/self/mountinfo"))
}

// mountsAreLocked looks at every mount of a sandbox: nothing is shared with the host, nothing gives rights.
func mountsAreLocked(t *testing.T, mountinfo string) {
	t.Helper()
	writable := []string{"/workspace", "/tmp", "/var/tmp", "/run", "/dev/shm", "/proc", "/dev/pts"}
	program := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/", "/workspace", "/dev/shm"}
	seen := map[string]bool{}
	for line := range strings.Lines(mountinfo) {
		before, _, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		at, flags := fields[4], strings.Split(fields[5], ",")
		seen[at] = true
		device := strings.HasPrefix(at, "/dev/") && slices.Contains(devices, filepath.Base(at))
		masked := strings.HasPrefix(at, "/proc/") && slices.Contains(procMasked, filepath.Base(at))
		if len(fields) > 6 {
			t.Errorf("%s is shared: %v", at, fields[6:])
		}
		if !slices.Contains(flags, "nosuid") {
			t.Errorf("setuid programs count on %s: %v", at, flags)
		}
		if !slices.Contains(flags, "nodev") && !device && !masked && at != "/dev" && at != "/dev/pts" {
			t.Errorf("devices count on %s: %v", at, flags)
		}
		if !slices.Contains(flags, "ro") && !device && !masked && !slices.Contains(writable, at) {
			t.Errorf("%s can be written to: %v", at, flags)
		}
		if !slices.Contains(flags, "noexec") && !slices.Contains(program, at) {
			t.Errorf("programs can be run on %s: %v", at, flags)
		}
	}
	for _, at := range []string{"/", "/usr", "/proc", "/proc/sys", "/proc/irq", "/dev", "/dev/null", "/dev/pts", "/dev/shm", "/workspace", "/tmp", "/run"} {
		if !seen[at] {
			t.Errorf("nothing is mounted at %s", at)
		}
	}
}

func TestDoorIsLockedAsUser(t *testing.T) {
	if asUser(t) {
		return
	}
	TestDoorIsLocked(t)
}

// What is mounted on the host later does not appear inside: it would come with the rights that it has there, also below
// what can only be read.
func TestLaterMountsOfTheHostStayOut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: only root mounts")
	}
	shared := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.Mount("tmpfs", shared, "tmpfs", 0, ""))
	t.Cleanup(func() { unix.Unmount(shared, unix.MNT_DETACH) })
	must(unix.Mount("", shared, "", unix.MS_SHARED, ""))
	workspace := filepath.Join(shared, "workspace")
	must(os.MkdirAll(filepath.Join(workspace, "disk"), 0o755))
	spec := testSpec(t, workspace)
	spec.Mounts[0].Writable = false
	// The workspace is the sandbox's user's: in memory file systems, owners are mapped since Linux 6.3 only.
	spec.User = sandbox.User{UID: nobody, GID: nobody}
	must(os.Chown(workspace, nobody, nobody))
	handle := ensure(t, testEngine(t, Options{}), spec)
	must(unix.Mount("tmpfs", filepath.Join(workspace, "disk"), "tmpfs", 0, "mode=1777"))
	must(os.WriteFile(filepath.Join(workspace, "disk/secret"), []byte("x"), 0o644))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if out, err := output(ctx, handle, "cat disk/secret; echo x > disk/made"); err == nil || strings.Contains(out, "x") {
		t.Errorf("a later mount is there: %q, %v", out, err)
	}
	must(unix.Unmount(filepath.Join(workspace, "disk"), unix.MNT_DETACH))
	if _, err := handle.Stat(ctx, "/workspace/disk"); err != nil && sandbox.CodeOf(err) != sandbox.CodeNotFound {
		t.Error(err)
	}
}
