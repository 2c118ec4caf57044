package docker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
)

// daemon is what is known of the container engine.
type daemon struct {
	system.Info
	api      string
	rootless bool
	remapped bool // users inside are others outside
	podman   bool
}

// probeTime bounds how long the container engine may take to say what it is.
const probeTime = 10 * time.Second

// ask finds out what the container engine is.
func (e *Engine) ask(ctx context.Context) (*daemon, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	c, err := e.connect()
	if err != nil {
		return nil, err
	}
	info, err := c.Info(ctx, client.InfoOptions{})
	if client.IsErrConnectionFailed(err) && closedToUs(e.where()) {
		refusal := sandbox.Errorf(sandbox.CodeUnavailable, "the container engine at %s is not this user's to use", e.where())
		refusal.Fix = "use the native engine or a rootless container engine, or add the user to the group of the socket, which makes the user as powerful as root here"
		return nil, refusal
	}
	if err != nil {
		return nil, explain(ctx, "ask the container engine at "+e.where(), err)
	}
	version, err := c.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return nil, explain(ctx, "ask the container engine at "+e.where(), err)
	}
	d := &daemon{Info: info.Info, api: c.ClientVersion()}
	d.podman = slices.ContainsFunc(version.Components, func(c system.ComponentVersion) bool { return strings.Contains(c.Name, "Podman") })
	d.rootless, d.remapped = d.option("rootless"), d.option("userns")
	return d, nil
}

// option reports whether the container engine names a security option.
func (d *daemon) option(name string) bool {
	return slices.ContainsFunc(d.SecurityOptions, func(option string) bool {
		first, _, _ := strings.Cut(option, ",")
		return first == "name="+name || first == name
	})
}

// Probe asks the container engine what it can enforce.
func (e *Engine) Probe(ctx context.Context) (sandbox.Capabilities, error) {
	found := sandbox.Capabilities{Engine: Name}
	d, err := e.ask(ctx)
	if err != nil {
		check := sandbox.Check{Name: "container engine", Found: err.Error(), Fix: "install and start Docker or Podman, or set DOCKER_HOST"}
		if refusal, ok := err.(*sandbox.Error); ok && refusal.Fix != "" {
			check.Found, check.Fix = refusal.Text, refusal.Fix
		}
		found.Checks = []sandbox.Check{check}
		return found, nil
	}
	found.Version = fmt.Sprintf("%s, API %s", d.ServerVersion, d.api)
	found.Checks = append(e.checks(d), e.checkProgram(ctx))
	found.Level = sandbox.LevelFull
	for _, check := range found.Checks {
		switch {
		case check.OK || check.Name == checkSwap || check.Name == checkRootless:
		case check.Name == checkCgroup && found.Level == sandbox.LevelFull:
			found.Level = sandbox.LevelNoCgroup
		case check.Name != checkCgroup:
			found.Level = sandbox.LevelNone
		}
	}
	return found, nil
}

// Names of checks that do not decide alone.
const (
	checkCgroup   = "limits"
	checkSwap     = "swap limit"
	checkRootless = "rootless"
)

func (e *Engine) checks(d *daemon) []sandbox.Check {
	system := sandbox.Check{Name: "system", OK: d.OSType == "linux" && sameArchitecture(d.Architecture), Found: d.OSType + " " + d.Architecture}
	if !system.OK {
		system.Fix = "the program inside is built for linux " + runtime.GOARCH
	}
	filter := sandbox.Check{Name: "seccomp", OK: d.option("seccomp"), Found: "system calls can be filtered"}
	if !filter.OK {
		filter.Found, filter.Fix = "the container engine cannot filter system calls", "use one that was built with seccomp"
	}
	limits := sandbox.Check{
		Name: checkCgroup, OK: d.MemoryLimit && d.PidsLimit,
		Found: fmt.Sprintf("cgroup v%s, driver %s; memory %v, processes %v", d.cgroup(), d.CgroupDriver, d.MemoryLimit, d.PidsLimit),
	}
	if !limits.OK {
		limits.Fix = "delegate the memory and pids controllers to the container engine"
	}
	swap := sandbox.Check{Name: checkSwap, OK: d.SwapLimit, Found: "swap is limited"}
	if !swap.OK {
		swap.Found, swap.Fix = "swap is not limited, only memory", "boot with swapaccount=1, or without swap"
	}
	user := sandbox.Check{Name: checkRootless, OK: d.rootless, Found: "the container engine runs as an ordinary user"}
	if !user.OK {
		user.Found = "the container engine runs as root, so that whoever controls the gateway controls the machine"
		user.Fix = "run it rootless, or use the native engine"
	}
	runtimes := sandbox.Check{
		Name: "runtimes", OK: true, Found: strings.Join(slices.Sorted(maps.Keys(d.Runtimes)), ", ") + "; default " + d.DefaultRuntime,
	}
	checks := []sandbox.Check{system, filter, limits, swap, user, runtimes}
	if d.option("selinux") {
		checks = append(checks, sandbox.Check{
			Name: "SELinux", OK: true, Found: "containers have labels: workspaces, private directories and ~/.cache/toolward need the type container_file_t",
		})
	}
	if d.remapped && !d.rootless {
		checks = append(checks, sandbox.Check{
			Name: "users", Found: "users inside are others outside (userns-remap), so that workspaces cannot be used",
			Fix: "run the container engine without userns-remap, or rootless",
		})
	}
	return checks
}

func (e *Engine) checkProgram(ctx context.Context) sandbox.Check {
	check := sandbox.Check{Name: "program inside"}
	program, err := e.findProgram(ctx)
	if err != nil {
		check.Found = err.Error()
		if refusal, ok := err.(*sandbox.Error); ok {
			check.Found, check.Fix = refusal.Text, refusal.Fix
		}
		return check
	}
	check.OK, check.Found = true, program.Path
	return check
}

func (d *daemon) cgroup() string {
	if d.CgroupVersion == "" {
		return "1"
	}
	return d.CgroupVersion
}

func sameArchitecture(name string) bool {
	switch name {
	case "x86_64":
		name = "amd64"
	case "aarch64":
		name = "arm64"
	}
	return name == runtime.GOARCH
}

// user is who runs inside, in numbers of the container.
func (d *daemon) user(user sandbox.User) (string, error) {
	if d.rootless {
		// User 0 of a rootless engine's containers is whom the engine runs as: the gateway's own user, in general.
		if user.UID != os.Geteuid() {
			return "", &sandbox.Error{
				Code: sandbox.CodeConfig, Text: fmt.Sprintf("the container engine is rootless, and user %d of this machine is not one of its users", user.UID),
				Fix: "leave sandbox.user unset",
			}
		}
		return "0:0", nil
	}
	if user.UID < 0 || user.GID < 0 {
		return "", sandbox.Errorf(sandbox.CodeConfig, "user %d:%d has no numbers", user.UID, user.GID)
	}
	return strconv.Itoa(user.UID) + ":" + strconv.Itoa(user.GID), nil
}

// sharesKernel reports whether this machine's own kernel answers the system calls of a sandbox, as far as the name of its
// runtime tells.
func (d *daemon) sharesKernel(spec *sandbox.Spec) bool {
	switch cmp.Or(spec.Docker.Runtime, d.DefaultRuntime) {
	case "", "runc", "crun":
		return true
	}
	return false
}

// refuse names what a sandbox asks for and this container engine cannot enforce.
func (d *daemon) refuse(spec *sandbox.Spec) error {
	if d.OSType != "linux" || !sameArchitecture(d.Architecture) {
		return sandbox.Errorf(sandbox.CodeUnavailable, "the container engine runs %s on %s, and the program inside is for linux on %s", d.OSType, d.Architecture, runtime.GOARCH)
	}
	if !d.option("seccomp") {
		return sandbox.Errorf(sandbox.CodeUnavailable, "the container engine cannot filter system calls")
	}
	if d.remapped && !d.rootless {
		return sandbox.Errorf(sandbox.CodeUnavailable, "users inside the containers of this engine are others outside (userns-remap), so that workspaces cannot be used")
	}
	if i := slices.IndexFunc(spec.Mounts, func(m sandbox.Mount) bool { return m.SELinux != "" }); i >= 0 && d.option("selinux") {
		// The engine labels by name, as root and for good: a sandbox that put a symbolic link there meanwhile would have any
		// directory of the machine labeled anew.
		return &sandbox.Error{
			Code: sandbox.CodeConfig, Text: "the bind of " + spec.Mounts[i].Source + " asks for a label of SELinux, and Toolward has nothing labelled",
			Fix: "chcon --recursive --type container_file_t " + spec.Mounts[i].Source + ", and leave " + spec.Mounts[i].SELinux + " out",
		}
	}
	limits := spec.Limits
	missing := limits.Memory > 0 && !d.MemoryLimit || limits.Pids > 0 && !d.PidsLimit || limits.CPUs > 0 && !d.CPUCfsQuota
	if missing && !slices.Contains(spec.DegradeOK, "cgroup") {
		return &sandbox.Error{
			Code: sandbox.CodeUnavailable, Text: "the container engine cannot limit memory, processes or processors here",
			Fix: "delegate the controllers to it, or let sandbox.degradeOk name cgroup",
		}
	}
	if name := spec.Docker.Runtime; name != "" {
		if _, known := d.Runtimes[name]; !known {
			return &sandbox.Error{
				Code: sandbox.CodeConfig, Text: "the container engine does not know the runtime " + name + ", only " + strings.Join(slices.Sorted(maps.Keys(d.Runtimes)), ", "),
				Fix: "install it there, or change sandbox.docker.runtime",
			}
		}
	}
	return nil
}
