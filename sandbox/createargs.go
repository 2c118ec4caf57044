package sandbox

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Creation is what a container is created from.
type Creation struct {
	Name, ScopeKey string
	Created        time.Time
	Hash           string
	Labels         map[string]string // besides ours
	Docker         DockerConfig      // as it is resolved
	EnvRules       EnvRules
	Access         Access
	WorkspaceDir   string
	AgentDir       string // the agent's workspace
}

// Args is the command line of a container engine that creates the container, without the program's name, and up to
// the image. It is for people, who can read and compare it; the docker engine asks the engine's API for the same.
func (c *Creation) Args() []string {
	d := &c.Docker
	args := []string{"create", "--name", c.Name}
	add := func(flag string, values ...string) {
		for _, v := range values {
			if trim(v) != "" {
				args = append(args, flag, v)
			}
		}
	}
	add("--label", Brand+".sandbox=1", Brand+".sessionKey="+c.ScopeKey, Brand+".createdAtMs="+strconv.FormatInt(c.Created.UnixMilli(), 10))
	if c.Hash != "" {
		add("--label", Brand+".configHash="+c.Hash)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		if trim(key) != "" && trim(c.Labels[key]) != "" {
			add("--label", key+"="+c.Labels[key])
		}
	}
	if d.ReadOnlyRoot != nil && *d.ReadOnlyRoot {
		args = append(args, "--read-only")
	}
	add("--tmpfs", d.Tmpfs...)
	add("--network", d.network())
	add("--user", trim(d.User))
	for _, v := range c.EnvRules.Filter(variables(d.Env)).Allowed {
		args = append(args, "--env", v.Name+"="+v.Value)
	}
	add("--cap-drop", d.CapDrop...)
	add("--security-opt", "no-new-privileges")
	if p := trim(d.SeccompProfile); p != "" {
		add("--security-opt", "seccomp="+p)
	}
	if p := trim(d.AppArmorProfile); p != "" {
		add("--security-opt", "apparmor="+p)
	}
	add("--dns", d.DNS...)
	add("--add-host", d.ExtraHosts...)
	if d.PidsLimit != nil && *d.PidsLimit > 0 {
		add("--pids-limit", strconv.FormatInt(*d.PidsLimit, 10))
	}
	add("--memory", d.Memory.Text())
	add("--memory-swap", d.MemorySwap.Text())
	if d.CPUs != nil && *d.CPUs > 0 {
		add("--cpus", strconv.FormatFloat(*d.CPUs, 'f', -1, 64))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Ulimits)) {
		if value := d.Ulimits[name].Render(); value != "" && trim(name) != "" {
			add("--ulimit", trim(name)+"="+value)
		}
	}
	add("--workdir", d.Workdir)
	return append(args, c.mounts()...)
}

// mounts are the arguments for what is mounted: the workspace first, then the agent's, then binds.
func (c *Creation) mounts() []string {
	workspace := c.WorkspaceDir + ":" + c.Docker.Workdir
	if c.Access == AccessReadOnly {
		workspace += ":ro"
	}
	args := []string{"-v", workspace}
	if c.Access == AccessReadOnly && c.AgentDir != "" && c.AgentDir != c.WorkspaceDir {
		args = append(args, "-v", c.AgentDir+":"+AgentTarget+":ro")
	}
	for _, bind := range c.Docker.Binds {
		args = append(args, "-v", strings.TrimSpace(bind))
	}
	return args
}

func (d *DockerConfig) network() string {
	if d.Network == nil || trim(*d.Network) == "" {
		return string(NetworkNone)
	}
	return trim(*d.Network)
}

// variables is an environment in order of names.
func variables(env map[string]string) []Variable {
	list := make([]Variable, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, Variable{name, env[name]})
	}
	return list
}

// WithEngineDefaults fills in the limits that hold where nothing is written.
func (d DockerConfig) WithEngineDefaults() DockerConfig {
	if d.PidsLimit == nil {
		d.PidsLimit = new(int64(512))
	}
	if d.Memory.Text() == "" {
		d.Memory = `"4g"`
	}
	if d.MemorySwap.Text() == "" {
		d.MemorySwap = d.Memory // without it containers get as much swap again
	}
	if _, given := d.Ulimits["core"]; !given {
		d.Ulimits = maps.Clone(d.Ulimits)
		if d.Ulimits == nil {
			d.Ulimits = map[string]UlimitConfig{}
		}
		d.Ulimits["core"] = "0" // the memory of programs must not end up in the workspace
	}
	return d
}

// Creation is what a container engine would be asked for, without making anything. The hash is not known before.
func (r *Resolved) Creation(q Request) (*Creation, error) {
	layout, err := r.Layout(EngineDocker, q)
	if err != nil {
		return nil, err
	}
	c := &Creation{
		Name: layout.Name, ScopeKey: layout.ScopeKey, Created: time.Now(), Docker: r.Docker.WithEngineDefaults(),
		EnvRules: r.EnvRules(), Access: r.Access, WorkspaceDir: layout.WorkspaceDir, AgentDir: layout.AgentDir,
	}
	c.Docker.Binds = nil
	for _, b := range layout.Binds {
		c.Docker.Binds = append(c.Docker.Binds, b.String())
	}
	if c.Docker.User == "" {
		c.Docker.User = likelyUser(layout.WorkspaceDir, r.Access)
	}
	return c, nil
}

// likelyUser is who would run inside, as far as it can be told before the directory is made.
func likelyUser(dir string, access Access) string {
	u := User{os.Getuid(), os.Getgid()}
	if u.UID == 0 && access != AccessReadWrite {
		u = User{plainUser, plainUser}
	}
	if f, err := pin(dir); err == nil {
		defer f.Close()
		if owner, err := ownerOf(f); err == nil {
			u = owner
		}
	}
	return strconv.Itoa(u.UID) + ":" + strconv.Itoa(u.GID)
}
