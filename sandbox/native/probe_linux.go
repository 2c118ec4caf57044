package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/seccomp"
)

// Probe finds out what can be enforced here, by doing it in a helper that is thrown away. The answer is kept for the
// life of the engine: what it depends on changes when a machine is set up, not while it runs.
func (e *Engine) Probe(context.Context) (sandbox.Capabilities, error) {
	return e.capabilities(), nil
}

func (e *Engine) probe() sandbox.Capabilities {
	c := sandbox.Capabilities{Engine: Name, Version: "Linux " + kernelRelease()}
	program := e.checkProgram()
	filter := checkFilter()
	namespaces := sandbox.Check{Name: "namespaces", Found: "not tried"}
	if program.OK && filter.OK && !e.options.noNamespaces {
		namespaces = e.checkNamespaces()
	}
	landlock, abi := e.checkLandlock()
	groups := e.checkGroups()
	c.Checks = []sandbox.Check{program, namespaces, filter, landlock, groups}
	switch {
	case !program.OK || !filter.OK:
	case namespaces.OK && groups.OK:
		c.Level = sandbox.LevelFull
	case namespaces.OK:
		c.Level = sandbox.LevelNoCgroup
	case abi >= landlockScopes && !e.root:
		c.Level, c.InPlace = sandbox.LevelLandlock, true
	}
	return c
}

func (e *Engine) checkProgram() sandbox.Check {
	check := sandbox.Check{Name: "program inside", OK: true, Found: "found"}
	if _, err := e.program(context.Background()); err != nil {
		check.OK, check.Found, check.Fix = false, err.Error(), "go install ./cmd/..."
	}
	return check
}

func checkFilter() sandbox.Check {
	check := sandbox.Check{Name: "seccomp", OK: true, Found: "filters system calls"}
	if _, err := seccomp.New(seccomp.Options{}).Program(); err != nil {
		check.OK, check.Found, check.Fix = false, err.Error(), "the profile knows amd64 and arm64"
	} else if actions, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail"); err != nil || !strings.Contains(string(actions), "errno") {
		check.OK, check.Found, check.Fix = false, "this kernel filters no system calls", "use a kernel with CONFIG_SECCOMP_FILTER"
	}
	return check
}

// checkNamespaces makes a whole sandbox without mounts and lets it end.
func (e *Engine) checkNamespaces() sandbox.Check {
	check := sandbox.Check{Name: "namespaces", OK: true, Found: "user, mount, pid, net, ipc, uts and cgroup; a root of its own"}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	spec := &sandbox.Spec{Tmpfs: []sandbox.Tmpfs{{Target: "/tmp", Size: 1 << 20}}}
	who := e.identityOf(spec.User)
	s, err := e.newSpare(ctx, who)
	if err == nil {
		defer s.end() // the next start removes what could not be removed
		plan, planErr := e.lastPlan(spec, who, &mounts{})
		if err = planErr; err == nil {
			err = s.helper.send(ctx, plan, nil)
		}
	}
	if err != nil {
		check.OK = false
		check.Found, check.Fix = diagnose(err, machineFacts())
	}
	return check
}

func (e *Engine) checkGroups() sandbox.Check {
	check := sandbox.Check{Name: "cgroup", OK: true}
	h, err := e.groups()
	switch {
	case err != nil:
		check.OK, check.Found = false, err.Error()
		check.Fix = "see docs/sandbox.md, or let sandbox.degradeOk name cgroup"
		if why, ok := errors.AsType[*groupError](err); ok {
			check.Fix = why.fix
		}
	case h.v2 != "":
		check.Found = "version 2 in " + h.v2
	default:
		check.Found = "version 1"
	}
	return check
}

// facts are what the machine says about why something was refused.
type facts struct {
	root           bool   // the gateway is user 0
	kernel         string // release
	filtered       bool   // a seccomp filter is on the gateway itself: it runs in a container
	maxNamespaces  string // user.max_user_namespaces
	debianSwitch   string // kernel.unprivileged_userns_clone
	apparmorSwitch string // kernel.apparmor_restrict_unprivileged_userns
	profile        string // of AppArmor, which confines the gateway; "" is none
	executable     string // of the gateway
}

func machineFacts() facts {
	sysctl := func(name string) string {
		data, _ := os.ReadFile("/proc/sys/" + name)
		return strings.TrimSpace(string(data))
	}
	status, _ := os.ReadFile("/proc/self/status")
	executable, _ := os.Executable()
	label, _ := os.ReadFile("/proc/self/attr/current")
	return facts{
		profile: confinedBy(string(label)),
		root:    os.Geteuid() == 0, kernel: kernelRelease(), filtered: strings.Contains(string(status), "\nSeccomp:\t2"),
		maxNamespaces: sysctl("user/max_user_namespaces"), debianSwitch: sysctl("kernel/unprivileged_userns_clone"),
		apparmorSwitch: sysctl("kernel/apparmor_restrict_unprivileged_userns"), executable: executable,
	}
}

// confinedBy is the profile of AppArmor that a label names, if it refuses anything. Labels of SELinux have no mode.
func confinedBy(label string) string {
	profile, confines := strings.CutSuffix(strings.TrimRight(label, "\n\x00"), " (enforce)")
	if !confines {
		return ""
	}
	return profile
}

// diagnose names the cause of a refusal and the narrowest remedy. It never proposes to switch a protection off for the
// whole machine where there is another way.
func diagnose(err error, f facts) (cause, fix string) {
	errno, _ := errors.AsType[syscall.Errno](err)
	_, inside := errors.AsType[*helperError](err)
	refused := errno == unix.EPERM || errno == unix.EACCES
	switch {
	case errno == unix.ENOSYS && f.filtered:
		return fmt.Sprintf("a seccomp filter on the gateway hides what is needed: %v", err),
			"run it without: in a service of systemd RestrictSUIDSGID=no and RestrictNamespaces=no (deploy/toolward.service), in a container a profile that allows it"
	case errno == unix.ENOSYS || errno == unix.EINVAL && !inside:
		return fmt.Sprintf("the kernel (%s) lacks what is needed: %v", f.kernel, err), "use Linux 5.12 or newer with user namespaces"
	case errno == unix.ENOSPC || errno == unix.EUSERS:
		return fmt.Sprintf("there may be no more user namespaces (user.max_user_namespaces is %s)", f.maxNamespaces),
			"sysctl user.max_user_namespaces=15000"
	case refused && f.filtered:
		return fmt.Sprintf("the seccomp filter of the container that the gateway runs in refuses it: %v", err),
			"run that container with a seccomp profile that allows clone, unshare, mount, pivot_root and the new mount calls, or use the docker engine"
	case f.profile != "" && (errno == unix.EACCES || errno == unix.EPERM && !f.root && !inside):
		return fmt.Sprintf("the AppArmor profile %s, which the gateway runs in, refuses it: %v", f.profile, err),
			"give the gateway one that allows userns, mount and capabilities (packaging/apparmor/toolward; of a container --security-opt apparmor=NAME), or use the docker engine"
	case refused && !f.root && f.apparmorSwitch == "1":
		return fmt.Sprintf("AppArmor restricts user namespaces of programs without a profile: %v", err),
			"install the profile for " + f.executable + " (packaging/apparmor/toolward) and start the gateway again: it allows this one program to make user namespaces"
	case refused && !f.root && f.debianSwitch == "0":
		return "user namespaces are only for root here (kernel.unprivileged_userns_clone is 0)",
			"run the gateway as a service of root (sandboxes still run as another user), or use the docker engine"
	case refused && inside && strings.Contains(err.Error(), "mount proc"):
		return fmt.Sprintf("/proc is partly hidden by the container that the gateway runs in: %v", err),
			"run that container with an unmasked /proc (--security-opt systempaths=unconfined), or use the docker engine"
	case refused && f.root:
		return fmt.Sprintf("root lacks the right, as in a container: %v", err),
			"give that container CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID, or use the docker engine"
	}
	return err.Error(), "see docs/sandbox.md, or use the docker engine"
}

// allowed refuses a level that a Spec did not agree to, with what is missing and how to get it.
func allowed(c sandbox.Capabilities, degradeOK []string) error {
	var needs string
	switch c.Level {
	case sandbox.LevelFull:
		return nil
	case sandbox.LevelNoCgroup:
		needs = "cgroup"
	case sandbox.LevelLandlock:
		needs = "namespaces"
	}
	if needs != "" && slices.Contains(degradeOK, needs) {
		return nil
	}
	var missing, fixes []string
	for _, check := range c.Checks {
		if !check.OK && (check.Name != "landlock" || c.Level == sandbox.LevelNone) {
			missing = append(missing, check.Name+": "+check.Found)
			if check.Fix != "" {
				fixes = append(fixes, check.Fix)
			}
		}
	}
	err := sandbox.Errorf(sandbox.CodeUnavailable, "this machine cannot enforce the whole sandbox: %s", strings.Join(missing, "; "))
	if needs != "" {
		fixes = append(fixes, fmt.Sprintf("or accept it with sandbox.degradeOk: [%q]", needs))
	}
	err.Fix = strings.Join(fixes, "; ")
	return err
}
