package native

import (
	"errors"
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
		{"AppArmor, by the gateway's own profile", clone(syscall.EPERM), facts{profile: "editor", apparmorSwitch: "1"}, "AppArmor profile editor", "userns"},
		{"AppArmor, by a container's profile", step("private mounts /", syscall.EACCES), facts{profile: "docker-default", root: true}, "docker-default", "--security-opt apparmor"},
		{"a right that AppArmor does not take", clone(syscall.EPERM), facts{profile: "docker-default", root: true}, "root lacks the right", "CAP_SYS_ADMIN"},
		{"Debian's switch", clone(syscall.EPERM), facts{debianSwitch: "0"}, "unprivileged_userns_clone", "docker engine"},
		{"in a container", clone(syscall.EPERM), facts{filtered: true, root: true}, "seccomp filter of the container", "seccomp profile"},
		{"in a container that hides /proc", step("mount proc /proc", syscall.EPERM), facts{root: true}, "/proc is partly hidden", "systempaths"},
		{"root without rights", clone(syscall.EPERM), facts{root: true}, "root lacks the right", "CAP_SYS_ADMIN"},
		{"in a service with a filter", step("open /usr", syscall.ENOSYS), facts{filtered: true, kernel: "6.1.0"}, "seccomp filter on the gateway", "RestrictSUIDSGID"},
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

func TestProfilesThatConfine(t *testing.T) {
	for label, want := range map[string]string{
		"unconfined\n": "", "toolward (unconfined)\n": "", "editor (complain)\n": "", "editor (enforce)\n": "editor", "/usr/bin/x y (enforce)\x00": "/usr/bin/x y",
		"system_u:system_r:container_t:s0:c1,c2\x00": "", "": "",
	} {
		if got := confinedBy(label); got != want {
			t.Errorf("%q: %q, want %q", label, got, want)
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

// The gateway is taken out of what started it only where nothing lives by it.
func TestWhatTheGatewayMayLeave(t *testing.T) {
	for _, c := range []struct {
		group   string
		main    int // process that the unit lives by; 0 is unknown
		allowed bool
	}{
		{"/user.slice/user-1000.slice/session-3.scope", 0, true},
		{"/user.slice/user-1000.slice/user@1000.service/tmux-spawn-1.scope", 0, true},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-code@1.service/tab(3).scope", 0, true},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-code@1.service", 1, true},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-code@1.service", os.Getpid(), false},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-code@1.service", 0, false},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/toolward.service", 1, false},
		{"/system.slice/cron.service", 1, false},
		{"/system.slice/toolward.service/toolward-gateway", os.Getpid(), false},
		{"/user.slice/user-1000.slice/user@1000.service", 1, false},
		{"/init.scope", 0, false},
		{"/docker/0123", 0, false},
		{"/", 0, false},
	} {
		err := mayLeave(unitOf(c.group), func(string) (uint32, error) {
			if c.main == 0 {
				return 0, errors.New("no such unit")
			}
			return uint32(c.main), nil
		})
		if (err == nil) != c.allowed {
			t.Errorf("%s, which lives by %d: %v", c.group, c.main, err)
		}
		if why, ok := errors.AsType[*groupError](err); err != nil && (!ok || why.fix == "") {
			t.Errorf("%s: nothing helps with %v", c.group, err)
		}
	}
}

// Where systemd manages the machine and the user, hard limits need nobody's preparation.
func TestGroupsAreThereWithSystemd(t *testing.T) {
	_, err := dialManager(t.Context())
	own, _ := ownGroups()
	managed := err == nil && strings.HasSuffix(unitOf(own[""]), ".scope")
	var places []string
	for range 2 { // what one engine of a program has prepared is there for the next
		e := New(Options{})
		check := e.checkGroups()
		if managed && !check.OK {
			t.Errorf("%s (%s)", check.Found, check.Fix)
		}
		places = append(places, check.Found)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if places[0] != places[1] {
		t.Errorf("groups are made in %q", places)
	}
}
