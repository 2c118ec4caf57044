package docker

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
)

// createArgs renders what of a request differs from sandbox to sandbox, up to what is mounted.
func createArgs(asked *client.ContainerCreateOptions) ([]string, error) {
	config, host := asked.Config, asked.HostConfig
	args := []string{"create", "--name", asked.Name}
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				args = append(args, flag, v)
			}
		}
	}
	for _, key := range labelOrder(config.Labels) {
		add("--label", key+"="+config.Labels[key])
	}
	if host.ReadonlyRootfs {
		args = append(args, "--read-only")
	}
	for _, target := range slices.Sorted(maps.Keys(host.Tmpfs)) {
		add("--tmpfs", target+":"+host.Tmpfs[target])
	}
	add("--network", string(host.NetworkMode))
	add("--user", config.User)
	add("--env", config.Env...)
	add("--cap-drop", host.CapDrop...)
	add("--security-opt", host.SecurityOpt...)
	for _, server := range host.DNS {
		add("--dns", server.String())
	}
	add("--add-host", host.ExtraHosts...)
	args = append(args, resourceArgs(&host.Resources)...)
	add("--workdir", config.WorkingDir)
	for i, m := range host.Mounts {
		volume, err := volumeOf(&m, i == 0)
		if err != nil {
			return nil, err
		}
		add("-v", volume)
	}
	return args, nil
}

// labelOrder is the order of labels: our own first, then the others by name.
func labelOrder(labels map[string]string) []string {
	own := []string{labelSandbox, labelScope, labelCreated, labelHash}
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(labels)), func(key string) bool { return slices.Contains(own, key) })
	return append(slices.DeleteFunc(own, func(key string) bool { return labels[key] == "" }), rest...)
}

func resourceArgs(r *container.Resources) (args []string) {
	if r.PidsLimit != nil {
		args = append(args, "--pids-limit", strconv.FormatInt(*r.PidsLimit, 10))
	}
	if r.Memory != 0 {
		args = append(args, "--memory", bytesText(r.Memory))
	}
	if r.MemorySwap != 0 {
		args = append(args, "--memory-swap", bytesText(r.MemorySwap))
	}
	if r.NanoCPUs != 0 {
		args = append(args, "--cpus", strconv.FormatFloat(float64(r.NanoCPUs)/1e9, 'f', -1, 64))
	}
	for _, u := range r.Ulimits {
		limit := strconv.FormatInt(u.Soft, 10)
		if u.Hard != u.Soft {
			limit += ":" + strconv.FormatInt(u.Hard, 10)
		}
		args = append(args, "--ulimit", u.Name+"="+limit)
	}
	return args
}

// bytesText is a number of bytes as people write it, and exactly that number.
func bytesText(n int64) string {
	switch {
	case n > 0 && n%(1<<30) == 0:
		return strconv.FormatInt(n>>30, 10) + "g"
	case n > 0 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + "m"
	}
	return strconv.FormatInt(n, 10)
}

// volumeOf is what is mounted, as one argument. That the workspace, which comes first, can be written to goes without saying.
func volumeOf(m *mount.Mount, first bool) (string, error) {
	if strings.Contains(m.Source, ":") {
		return "", sandbox.Errorf(sandbox.CodeConfig, "a command line cannot mount %s: it has a colon", m.Source)
	}
	volume := m.Source + ":" + m.Target
	switch {
	case m.ReadOnly:
		volume += ":ro"
	case !first:
		volume += ":rw"
	}
	return volume, nil
}

// constantArgs renders the rest of a request, up to and with the image.
func constantArgs(asked *client.ContainerCreateOptions) []string {
	config, host := asked.Config, asked.HostConfig
	args := []string{
		"--hostname", config.Hostname, "--ipc", string(host.IpcMode), "--cgroupns", string(host.CgroupnsMode),
		"--shm-size", strconv.FormatInt(host.ShmSize, 10), "--log-driver", host.LogConfig.Type, "--restart", string(host.RestartPolicy.Name),
		"--no-healthcheck", "--stop-signal", config.StopSignal, "--stop-timeout", strconv.Itoa(*config.StopTimeout),
		"--init=" + strconv.FormatBool(*host.Init), "--pull", "never",
	}
	if host.Runtime != "" {
		args = append(args, "--runtime", host.Runtime)
	}
	return append(args, "--interactive", "--entrypoint", config.Entrypoint[0], config.Image)
}
