package docker

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
	"github.com/toolward/toolward/sandbox/inside/join"
	"github.com/toolward/toolward/sandbox/native/setup"
)

// What of /proc and /sys is about the machine. The lists of container engines grow with their versions; these hold
// whatever the version.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys",
		"/proc/kmsg", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
		"/sys/devices/virtual/powercap", "/sys/firmware",
	}
	readOnlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

const (
	hostname    = "sandbox"
	stopSignal  = "SIGTERM"
	shmSize     = 64 << 20
	stopSeconds = 3 // the program inside ends commands politely first
)

// creation is what the container engine is asked for.
func (e *Engine) creation(spec *sandbox.Spec, m *mounts, daemon *daemon) (client.ContainerCreateOptions, error) {
	options, err := e.securityOptions(spec, daemon)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	user, err := daemon.user(spec.User)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	return request(spec, m, user, options, e.options.Instance)
}

// request describes the container of a Spec, with nothing that would add a right: there is no way from a Spec to a privileged
// container, a device, an added capability or a namespace of the host. It is the only description; [CommandLine] renders it.
func request(spec *sandbox.Spec, m *mounts, user string, security []string, instance string) (client.ContainerCreateOptions, error) {
	var none client.ContainerCreateOptions
	dns, err := nameServers(spec.Docker.DNS)
	if err != nil {
		return none, err
	}
	no, stop := false, stopSeconds
	config := &container.Config{
		Image: spec.Docker.Image, Hostname: hostname, User: user, WorkingDir: spec.Workdir, Env: spec.Env, Labels: labels(spec, instance),
		Entrypoint: append([]string{agentTarget}, m.program.Args...), Cmd: command(spec),
		AttachStdout: true, AttachStderr: true,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}, // an image's check would run beside our commands
		StopSignal:  stopSignal, StopTimeout: &stop,
	}
	// When the channel ends, so does what the container runs: a gateway that was killed leaves nothing behind that works on.
	if m.door != "" {
		config.Cmd = append([]string{join.Argument, doorTarget + "/" + doorName}, config.Cmd...)
	} else {
		config.AttachStdin, config.OpenStdin, config.StdinOnce = true, true, true
	}
	host := &container.HostConfig{
		ReadonlyRootfs: !spec.Writable, Tmpfs: tmpfs(spec), NetworkMode: networkMode(spec.Network), CapDrop: capDrop(spec),
		SecurityOpt: security, DNS: dns, ExtraHosts: spec.Docker.ExtraHosts, Runtime: spec.Docker.Runtime, Mounts: m.list,
		IpcMode: container.IPCModePrivate, CgroupnsMode: container.CgroupnsModePrivate, ShmSize: shmSize,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled}, Init: &no,
		// A log of the channel would fill the host's disk.
		LogConfig:   container.LogConfig{Type: "none"},
		MaskedPaths: maskedPaths, ReadonlyPaths: readOnlyPaths,
		Resources: resources(spec),
	}
	return client.ContainerCreateOptions{Name: spec.Name, Config: config, HostConfig: host}, nil
}

// command is what the program inside is told to be.
func command(spec *sandbox.Spec) []string {
	if spec.Network.Mode == sandbox.NetworkEgress {
		return []string{setup.ForwardTo(spec.Network.Forwards), inside.Serve}
	}
	return []string{inside.Serve}
}

func labels(spec *sandbox.Spec, instance string) map[string]string {
	labels := maps.Clone(spec.Docker.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.DeleteFunc(labels, func(key, value string) bool { return strings.TrimSpace(key) == "" || strings.TrimSpace(value) == "" })
	maps.Copy(labels, map[string]string{
		labelSandbox: "1", labelScope: spec.ScopeKey, labelInstance: instance,
		labelCreated: strconv.FormatInt(time.Now().UnixMilli(), 10),
	})
	if spec.Hash != "" {
		labels[labelHash] = spec.Hash
	}
	return labels
}

// capDrop is never less than everything unless the configuration says so.
func capDrop(spec *sandbox.Spec) []string {
	if len(spec.Docker.CapDrop) == 0 {
		return []string{"ALL"}
	}
	return spec.Docker.CapDrop
}

func networkMode(network sandbox.Network) container.NetworkMode {
	switch network.Mode {
	case "", sandbox.NetworkNone, sandbox.NetworkEgress: // the proxy is a socket
		return container.NetworkMode(sandbox.NetworkNone)
	}
	return container.NetworkMode(network.Mode)
}

func nameServers(list []string) ([]netip.Addr, error) {
	var servers []netip.Addr
	for _, text := range list {
		address, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return nil, sandbox.Errorf(sandbox.CodeConfig, "sandbox.docker.dns: %q is no address", text)
		}
		servers = append(servers, address)
	}
	return servers, nil
}

// tmpfs are the file systems in memory.
func tmpfs(spec *sandbox.Spec) map[string]string {
	list := map[string]string{}
	for _, t := range spec.Tmpfs {
		list[path.Clean(t.Target)] = t.Options(spec.Limits.Memory)
	}
	return list
}

// resources are limits of the container. Those of one process (limits.openFiles, limits.fileSize) are set by the program
// inside, as far as the machine has them: a container engine that has less refuses to start.
func resources(spec *sandbox.Spec) container.Resources {
	limits := spec.Limits
	r := container.Resources{Memory: limits.Memory, NanoCPUs: int64(math.Round(limits.CPUs * 1e9))}
	if limits.Memory > 0 {
		r.MemorySwap = limits.MemorySwap() // without it there would be as much swap again
	}
	if limits.Pids > 0 {
		r.PidsLimit = &limits.Pids
	}
	for _, u := range spec.Docker.Ulimits {
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	return r
}

// CheckImage refuses an image that is not there, and one that would bring writable places of its own.
func (e *Engine) CheckImage(ctx context.Context, name string) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	image, err := c.ImageInspect(ctx, name)
	if isNotFound(err) {
		return &sandbox.Error{
			Code: sandbox.CodeUnavailable, Text: "there is no image " + name + " in the container engine, and images are never pulled",
			Fix: "toolward sandbox image build, or set sandbox.docker.image to one that is there",
		}
	}
	if err != nil {
		return explain(ctx, "look for the image "+name, err)
	}
	// Its commands would not run, each with an error that names no cause.
	if image.Os != "" && image.Os != "linux" || image.Architecture != "" && !sameArchitecture(image.Architecture) {
		return &sandbox.Error{
			Code: sandbox.CodeUnavailable,
			Text: fmt.Sprintf("the image %s is for %s on %s, and this machine is linux on %s", name, image.Os, image.Architecture, runtime.GOARCH),
			Fix:  "toolward sandbox image build, or use an image for linux/" + runtime.GOARCH,
		}
	}
	if image.Config != nil && len(image.Config.Volumes) > 0 {
		return &sandbox.Error{
			Code: sandbox.CodeConfig,
			Text: fmt.Sprintf("the image %s declares volumes (%s), which would be writable and without a limit", name,
				strings.Join(slices.Sorted(maps.Keys(image.Config.Volumes)), ", ")),
			Fix: "use an image without VOLUME",
		}
	}
	return nil
}
