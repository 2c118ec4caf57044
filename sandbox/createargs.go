package sandbox

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
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
	Own            []Variable // that Toolward sets itself
	Access         Access
	WorkspaceDir   string
	AgentDir       string   // the agent's workspace
	Protected      []string // paths inside that nobody may write, below what can be written
	Ptrace         bool
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
	for _, v := range slices.Concat(c.Own, c.EnvRules.Filter(variables(d.Env)).Allowed) {
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
	add("--workdir", d.workdir())
	return append(args, c.mountArgs()...)
}

// mountArgs are the arguments for what is mounted: the workspace first, then the agent's, then binds.
func (c *Creation) mountArgs() []string {
	workspace := c.WorkspaceDir + ":" + c.Docker.workdir()
	if c.Access == AccessReadOnly {
		workspace += ":ro"
	}
	args := []string{"-v", workspace}
	if c.Access == AccessReadOnly && c.AgentDir != "" && c.AgentDir != c.WorkspaceDir {
		args = append(args, "-v", c.AgentDir+":"+AgentTarget+":ro")
	}
	for _, bind := range c.Docker.Binds {
		args = append(args, "-v", trim(bind))
	}
	return args
}

func (d *DockerConfig) workdir() string { return cmp.Or(trim(d.Workdir), WorkspaceTarget) }

// Mounts is what the container gets of the host.
func (c *Creation) Mounts() ([]Mount, error) {
	var binds []Bind
	for _, text := range c.Docker.Binds {
		b, err := ParseBind(text)
		if err != nil {
			return nil, err
		}
		binds = append(binds, b)
	}
	return Mounts(c.Access, c.Docker.workdir(), c.WorkspaceDir, c.AgentDir, binds), nil
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
func (r *Resolved) Creation(ctx context.Context, q Request) (*Creation, error) {
	layout, err := r.Layout(Site{Engine: EngineDocker}, q)
	if err != nil {
		return nil, err
	}
	c := &Creation{
		Name: layout.Name, ScopeKey: layout.ScopeKey, Created: time.Now(), Docker: r.Docker.WithEngineDefaults(), Ptrace: r.AllowPtrace,
		EnvRules: r.EnvRules(), Access: layout.Access, WorkspaceDir: layout.WorkspaceDir, AgentDir: layout.AgentDir,
	}
	if err := c.settle(r.view(EngineDocker), layout); err != nil {
		return nil, err
	}
	c.Own = layout.cacheVariables(variables(r.Docker.Env), r.EnvStrict)
	if !r.AllowProtected {
		c.Protected, err = layout.protected(ctx)
	}
	return c, err
}

// settle writes every setting as the engine understands it: what people compare and paste is what holds.
func (c *Creation) settle(v Neutral, layout *Layout) error {
	d := &c.Docker
	limits, err := v.Limits.parse()
	if err != nil {
		return err
	}
	if n, err := d.MemorySwap.Count(); err != nil || n != limits.MemorySwap() {
		d.MemorySwap = Bytes(limits.MemorySwap())
	}
	memory, err := layout.tmpfs(v.Tmpfs)
	if err != nil {
		return err
	}
	d.Tmpfs = nil
	for _, t := range memory {
		d.Tmpfs = append(d.Tmpfs, t.Target+":"+t.Options(limits.Memory))
	}
	network, err := ParseNetwork(d.network(), true)
	if err != nil {
		return err
	}
	if network == NetworkEgress {
		network = NetworkNone // the proxy is a socket
	}
	d.Network = new(string(network))
	if len(d.CapDrop) == 0 {
		d.CapDrop = []string{"ALL"}
	}
	d.DNS, d.ExtraHosts, d.Workdir, d.Binds = trimmed(d.DNS), trimmed(d.ExtraHosts), layout.Workdir, nil
	if layout.CacheDir != "" {
		d.Binds = append(d.Binds, layout.CacheDir+":"+CacheTarget)
	}
	for _, b := range layout.Binds {
		d.Binds = append(d.Binds, b.String())
	}
	user := likelyUser(layout.WorkspaceDir, layout.Access)
	if d.User != "" {
		if user, err = ParseUser(d.User); err != nil {
			return err
		}
	}
	d.User = strconv.Itoa(user.UID) + ":" + strconv.Itoa(user.GID)
	return nil
}

// protected are the paths inside that would be read-only. Of a directory that is not there yet, nothing is.
func (l *Layout) protected(ctx context.Context) ([]string, error) {
	mounts := Mounts(l.Access, l.Workdir, l.WorkspaceDir, l.AgentDir, l.Binds)
	for i := range mounts {
		if f, err := pin(mounts[i].Source); err == nil {
			mounts[i].Pinned = f
			defer f.Close()
		}
	}
	s, protected, err := newSurvey(ctx, mounts, l.Table.Shows, false)
	if err != nil {
		return nil, err
	}
	s.Close()
	return protected, nil
}

// likelyUser is who would run inside, as far as it can be told before the directory is made.
func likelyUser(dir string, access Access) User {
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
	return u
}
