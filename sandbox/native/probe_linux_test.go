package native

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward/sandbox"
)

func TestDiagnose(t *testing.T) {
	clone := func(errno syscall.Errno) error {
		return fmt.Errorf("start the helper: %w", &os.PathError{Op: "fork/exec", Path: "/proc/self/fd/5", Err: errno})
	}
	step := func(text string, errno syscall.Errno) error {
		return explainSetup(&helperError{errno, text + ": " + errno.Error()})
	}
	cases := []struct {
		name       string
		err        error
		facts      facts
		cause, fix string
	}{
		{"no namespaces left", clone(syscall.ENOSPC), facts{maxNamespaces: "0"}, "user.max_user_namespaces is 0", "max_user_namespaces"},
		{"AppArmor, at the clone", clone(syscall.EACCES), facts{apparmorSwitch: "1", executable: "/usr/bin/toolward"}, "AppArmor", "profile for /usr/bin/toolward"},
		{"AppArmor, at the first mount", step("private mounts /", syscall.EACCES), facts{apparmorSwitch: "1"}, "AppArmor", "packaging/apparmor"},
		{"Debian's switch", clone(syscall.EPERM), facts{debianSwitch: "0"}, "unprivileged_userns_clone", "docker engine"},
		{"in a container", clone(syscall.EPERM), facts{filtered: true, root: true}, "seccomp filter of the container", "seccomp profile"},
		{"in a container that hides /proc", step("mount proc /proc", syscall.EPERM), facts{root: true}, "/proc is partly hidden", "systempaths"},
		{"root without rights", clone(syscall.EPERM), facts{root: true}, "root lacks the right", "CAP_SYS_ADMIN"},
		{"an old kernel", step("bind /usr", syscall.ENOSYS), facts{kernel: "5.4.0"}, "5.4.0", "5.12"},
	}
	for _, c := range cases {
		cause, fix := diagnose(c.err, c.facts)
		if !strings.Contains(cause, c.cause) || !strings.Contains(fix, c.fix) {
			t.Errorf("%s: %q, fix %q; want %q and %q", c.name, cause, fix, c.cause, c.fix)
		}
		if strings.Contains(fix, "apparmor_restrict_unprivileged_userns=0") {
			t.Errorf("%s: the remedy switches the protection off for everything: %s", c.name, fix)
		}
	}
}

func TestLevelsNeedConsent(t *testing.T) {
	missing := sandbox.Check{Name: "cgroup", Found: "not delegated", Fix: "delegate it"}
	cases := []struct {
		level   sandbox.Level
		consent []string
		allowed bool
	}{
		{sandbox.LevelFull, nil, true},
		{sandbox.LevelNoCgroup, nil, false},
		{sandbox.LevelNoCgroup, []string{"cgroup"}, true},
		{sandbox.LevelNoCgroup, []string{"namespaces"}, false},
		{sandbox.LevelLandlock, []string{"cgroup"}, false},
		{sandbox.LevelLandlock, []string{"namespaces"}, true},
		{sandbox.LevelNone, []string{"cgroup", "namespaces"}, false},
	}
	for _, c := range cases {
		err := allowed(sandbox.Capabilities{Level: c.level, Checks: []sandbox.Check{missing}}, c.consent)
		if (err == nil) != c.allowed {
			t.Errorf("level %d with consent to %v: %v", c.level, c.consent, err)
		}
		if err != nil && (sandbox.CodeOf(err) != sandbox.CodeUnavailable || !strings.Contains(err.Error(), "delegate it")) {
			t.Errorf("level %d: the refusal names no cause and remedy: %v", c.level, err)
		}
	}
}
