package settings

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/toolward/toolward/sandbox"
)

// layer is one object of the configuration that a setting may come from.
type layer struct {
	level, prefix string
	config        *Config
}

// resolver picks settings and remembers where each comes from. Its layers are in order: the first that says something
// counts.
type resolver struct {
	layers  []layer
	sources map[string]Source
	values  map[string]any
}

// spot is one key of a layer where a setting may stand.
type spot[T any] struct {
	key string
	get func(*Config) T
}

func at[T any](key string, get func(*Config) T) spot[T] { return spot[T]{key, get} }

// choose returns the first value that is written. In one layer the spots count in their order.
func choose[T any](r *resolver, leaf string, fallback T, spots ...spot[T]) T {
	for _, l := range r.layers {
		for _, p := range spots {
			if v := p.get(l.config); !reflect.ValueOf(&v).Elem().IsZero() {
				r.sources[leaf], r.values[leaf] = Source{l.level, l.prefix + p.key}, v
				return v
			}
		}
	}
	r.sources[leaf], r.values[leaf] = Source{FromDefault, globalPrefix + spots[0].key}, fallback
	return fallback
}

func flag(r *resolver, leaf string, fallback bool, get func(*Config) *bool) bool {
	return *choose(r, leaf, &fallback, at(leaf, get))
}

// scope is the scope that is written, or the older form of it.
func (r *resolver) scope() Scope {
	word := choose(r, "scope", "", at("scope", func(c *Config) string { return c.Scope }))
	if word != "" {
		return Scope(canonical(scopeWords, word))
	}
	source := r.sources["scope"]
	per := choose(r, "scope", nil, at("perSession", func(c *Config) *bool { return c.PerSession }))
	switch {
	case per == nil:
		r.sources["scope"], r.values["scope"] = source, ScopeAgent
		return ScopeAgent
	case *per:
		return ScopeSession
	}
	return ScopeShared
}

// docker is the docker engine's view: what is written for it, then what is written for every engine.
func (r *resolver) docker(network sandbox.NetworkMode) DockerConfig {
	return DockerConfig{
		Image:           choose(r, "docker.image", DefaultImage, at("docker.image", func(c *Config) string { return c.Docker.Image })),
		ContainerPrefix: choose(r, "docker.containerPrefix", DefaultPrefix, at("docker.containerPrefix", func(c *Config) string { return c.Docker.ContainerPrefix })),
		Workdir:         choose(r, "docker.workdir", "", at("docker.workdir", func(c *Config) string { return c.Docker.Workdir })),
		ReadOnlyRoot:    choose(r, "docker.readOnlyRoot", new(true), at("docker.readOnlyRoot", func(c *Config) *bool { return c.Docker.ReadOnlyRoot })),
		Tmpfs:           choose(r, "docker.tmpfs", slices.Clone(defaultTmpfs), at("docker.tmpfs", dockerTmpfs), at("tmpfs", anyTmpfs)),
		Network:         choose(r, "docker.network", new(string(network)), at("docker.network", dockerNetwork), at("network", anyNetwork)),
		User:            choose(r, "docker.user", "", at("docker.user", dockerUser), at("user", anyUser)),
		CapDrop:         choose(r, "docker.capDrop", []string{"ALL"}, at("docker.capDrop", func(c *Config) []string { return c.Docker.CapDrop })),
		Env:             r.env("docker.env", dockerEnv, anyEnv),
		SetupCommand:    choose(r, "docker.setupCommand", "", at("docker.setupCommand", func(c *Config) string { return c.Docker.SetupCommand })),
		PidsLimit:       choose(r, "docker.pidsLimit", nil, at("docker.pidsLimit", dockerPids), at("limits.pids", anyPids)),
		Memory:          choose(r, "docker.memory", "", at("docker.memory", dockerMemory), at("limits.memory", anyMemory)),
		MemorySwap:      choose(r, "docker.memorySwap", "", at("docker.memorySwap", func(c *Config) Quantity { return c.Docker.MemorySwap })),
		CPUs:            choose(r, "docker.cpus", nil, at("docker.cpus", dockerCPUs), at("limits.cpus", anyCPUs)),
		Ulimits:         r.ulimits(),
		SeccompProfile:  choose(r, "docker.seccompProfile", "", at("docker.seccompProfile", func(c *Config) string { return c.Docker.SeccompProfile })),
		AppArmorProfile: choose(r, "docker.apparmorProfile", "", at("docker.apparmorProfile", func(c *Config) string { return c.Docker.AppArmorProfile })),
		DNS:             choose(r, "docker.dns", nil, at("docker.dns", func(c *Config) []string { return c.Docker.DNS })),
		ExtraHosts:      choose(r, "docker.extraHosts", nil, at("docker.extraHosts", func(c *Config) []string { return c.Docker.ExtraHosts })),
		Binds:           r.binds("docker.binds", dockerBinds, anyBinds),
		Runtime:         choose(r, "docker.runtime", "", at("docker.runtime", func(c *Config) string { return c.Docker.Runtime })),
		HostPathMap:     choose(r, "docker.hostPathMap", nil, at("docker.hostPathMap", func(c *Config) map[string]string { return c.Docker.HostPathMap })),

		AllowReservedTargets: choose(r, "docker.dangerouslyAllowReservedContainerTargets", new(false),
			at("docker.dangerouslyAllowReservedContainerTargets", func(c *Config) *bool { return c.Docker.AllowReservedTargets })),
		AllowExternalSources: choose(r, "docker.dangerouslyAllowExternalBindSources", new(false),
			at("docker.dangerouslyAllowExternalBindSources", func(c *Config) *bool { return c.Docker.AllowExternalSources })),
		AllowNamespaceJoin: choose(r, "docker.dangerouslyAllowContainerNamespaceJoin", new(false),
			at("docker.dangerouslyAllowContainerNamespaceJoin", func(c *Config) *bool { return c.Docker.AllowNamespaceJoin })),
	}
}

// neutral is the view of every other engine. Where somebody wrote a setting only for docker it counts too: a limit that
// was meant must not be lost because the machine chose another engine.
func (r *resolver) neutral(network sandbox.NetworkMode) Neutral {
	return Neutral{
		Limits: LimitsConfig{
			Memory:    choose(r, "limits.memory", `"4g"`, at("limits.memory", anyMemory), at("docker.memory", dockerMemory)),
			Swap:      choose(r, "limits.swap", "0", at("limits.swap", func(c *Config) Quantity { return c.Limits.Swap })),
			Pids:      choose(r, "limits.pids", new(int64(512)), at("limits.pids", anyPids), at("docker.pidsLimit", dockerPids)),
			CPUs:      choose(r, "limits.cpus", nil, at("limits.cpus", anyCPUs), at("docker.cpus", dockerCPUs)),
			Disk:      choose(r, "limits.disk", `"10g"`, at("limits.disk", func(c *Config) Quantity { return c.Limits.Disk })),
			OpenFiles: choose(r, "limits.openFiles", new(int64(65536)), at("limits.openFiles", func(c *Config) *int64 { return c.Limits.OpenFiles })),
			FileSize:  choose(r, "limits.fileSize", "", at("limits.fileSize", func(c *Config) Quantity { return c.Limits.FileSize })),
		},
		Network: *choose(r, "network", new(string(network)), at("network", anyNetwork), at("docker.network", dockerNetwork)),
		Tmpfs:   choose(r, "tmpfs", slices.Clone(defaultTmpfs), at("tmpfs", anyTmpfs), at("docker.tmpfs", dockerTmpfs)),
		Env:     r.env("env", anyEnv, dockerEnv),
		Binds:   r.binds("binds", anyBinds, dockerBinds),
		User:    choose(r, "user", "", at("user", anyUser), at("docker.user", dockerUser)),
	}
}

// defaultTmpfs: programs run in /tmp as they do on the machine. The workspace can hold programs, so nothing is kept from running
// by taking it away from them there.
var defaultTmpfs = []string{"/tmp:exec", "/var/tmp:exec", "/run"}

// What can be written for docker, and for any engine.
func dockerTmpfs(c *Config) []string        { return c.Docker.Tmpfs }
func anyTmpfs(c *Config) []string           { return c.Tmpfs }
func dockerNetwork(c *Config) *string       { return c.Docker.Network }
func anyNetwork(c *Config) *string          { return c.Network }
func dockerUser(c *Config) string           { return c.Docker.User }
func anyUser(c *Config) string              { return c.User }
func dockerEnv(c *Config) map[string]string { return c.Docker.Env }
func anyEnv(c *Config) map[string]string    { return c.Env }
func dockerPids(c *Config) *int64           { return c.Docker.PidsLimit }
func anyPids(c *Config) *int64              { return c.Limits.Pids }
func dockerMemory(c *Config) Quantity       { return c.Docker.Memory }
func anyMemory(c *Config) Quantity          { return c.Limits.Memory }
func dockerCPUs(c *Config) *float64         { return c.Docker.CPUs }
func anyCPUs(c *Config) *float64            { return c.Limits.CPUs }
func dockerBinds(c *Config) []string        { return c.Docker.Binds }
func anyBinds(c *Config) []string           { return c.Binds }

// env merges environments by name: an agent's adds to the one for all, and that replaces the default. first wins over
// second in one layer.
func (r *resolver) env(leaf string, first, second func(*Config) map[string]string) map[string]string {
	merged := map[string]string{}
	r.sources[leaf] = Source{FromDefault, globalPrefix + leaf}
	put := func(level, key string, env map[string]string) {
		for name, value := range env {
			merged[name] = value
			r.sources[leaf+"."+name], r.values[leaf+"."+name] = Source{level, key + "." + name}, "(not shown)"
		}
	}
	global := r.layers[len(r.layers)-1].config
	if first(global) == nil && second(global) == nil {
		put(FromDefault, globalPrefix+leaf, map[string]string{"LANG": "C.UTF-8"})
	}
	keys := []string{leaf, "env"}
	if leaf == "env" {
		keys[1] = "docker.env"
	}
	for _, l := range slices.Backward(r.layers) {
		for i, env := range []map[string]string{second(l.config), first(l.config)} {
			if env != nil {
				r.sources[leaf] = Source{l.level, l.prefix + keys[1-i]}
				put(l.level, l.prefix+keys[1-i], env)
			}
		}
	}
	return merged
}

// binds is what is written for all and then what is written for the agent; nil if there is nothing.
func (r *resolver) binds(leaf string, first, second func(*Config) []string) []string {
	var all []string
	other := "binds"
	if leaf == "binds" {
		other = "docker.binds"
	}
	r.sources[leaf] = Source{FromDefault, globalPrefix + leaf}
	for _, l := range slices.Backward(r.layers) {
		list, key := first(l.config), leaf
		if list == nil {
			list, key = second(l.config), other
		}
		for i, bind := range list {
			r.sources[leaf] = Source{l.level, l.prefix + key}
			item := leaf + "[" + strconv.Itoa(len(all)) + "]"
			r.sources[item], r.values[item] = Source{l.level, l.prefix + key + "[" + strconv.Itoa(i) + "]"}, bind
			all = append(all, bind)
		}
	}
	return all
}

// ulimits merges by name.
func (r *resolver) ulimits() map[string]UlimitConfig {
	var merged map[string]UlimitConfig
	r.sources["docker.ulimits"] = Source{FromDefault, globalPrefix + "docker.ulimits"}
	for _, l := range slices.Backward(r.layers) {
		if l.config.Docker.Ulimits == nil {
			continue
		}
		if merged == nil {
			merged = map[string]UlimitConfig{}
		}
		maps.Copy(merged, l.config.Docker.Ulimits)
		r.sources["docker.ulimits"] = Source{l.level, l.prefix + "docker.ulimits"}
		for name, limit := range l.config.Docker.Ulimits {
			leaf := "docker.ulimits." + name
			r.sources[leaf], r.values[leaf] = Source{l.level, l.prefix + leaf}, limit
		}
	}
	return merged
}

func (r *resolver) browser() BrowserConfig {
	number := func(leaf string, fallback int64, get func(*BrowserConfig) *int64) *int64 {
		return choose(r, leaf, &fallback, at(leaf, func(c *Config) *int64 { return get(&c.Browser) }))
	}
	truth := func(leaf string, fallback bool, get func(*BrowserConfig) *bool) *bool {
		return choose(r, leaf, &fallback, at(leaf, func(c *Config) *bool { return get(&c.Browser) }))
	}
	text := func(leaf, fallback string, get func(*BrowserConfig) string) string {
		return choose(r, leaf, fallback, at(leaf, func(c *Config) string { return get(&c.Browser) }))
	}
	b := BrowserConfig{
		Enabled:            truth("browser.enabled", false, func(b *BrowserConfig) *bool { return b.Enabled }),
		Image:              text("browser.image", DefaultBrowserImage, func(b *BrowserConfig) string { return b.Image }),
		ContainerPrefix:    text("browser.containerPrefix", DefaultBrowserPrefix, func(b *BrowserConfig) string { return b.ContainerPrefix }),
		Network:            choose(r, "browser.network", new(browserNetwork), at("browser.network", func(c *Config) *string { return c.Browser.Network })),
		CDPPort:            number("browser.cdpPort", 9222, func(b *BrowserConfig) *int64 { return b.CDPPort }),
		VNCPort:            number("browser.vncPort", 5900, func(b *BrowserConfig) *int64 { return b.VNCPort }),
		NoVNCPort:          number("browser.noVncPort", 6080, func(b *BrowserConfig) *int64 { return b.NoVNCPort }),
		Headless:           truth("browser.headless", false, func(b *BrowserConfig) *bool { return b.Headless }),
		EnableNoVNC:        truth("browser.enableNoVnc", true, func(b *BrowserConfig) *bool { return b.EnableNoVNC }),
		AllowHostControl:   truth("browser.allowHostControl", false, func(b *BrowserConfig) *bool { return b.AllowHostControl }),
		AutoStart:          truth("browser.autoStart", true, func(b *BrowserConfig) *bool { return b.AutoStart }),
		AutoStartTimeoutMs: number("browser.autoStartTimeoutMs", 12000, func(b *BrowserConfig) *int64 { return b.AutoStartTimeoutMs }),
		CDPSourceRange:     text("browser.cdpSourceRange", "", func(b *BrowserConfig) string { return b.CDPSourceRange }),
	}
	for _, l := range slices.Backward(r.layers) {
		if l.config.Browser.Binds != nil {
			r.sources["browser.binds"] = Source{l.level, l.prefix + "browser.binds"}
			b.Binds = append(append([]string{}, b.Binds...), l.config.Browser.Binds...)
		}
	}
	return b
}

func (r *resolver) prune() PruneConfig {
	return PruneConfig{
		IdleHours:  choose(r, "prune.idleHours", new(int64(24)), at("prune.idleHours", func(c *Config) *int64 { return c.Prune.IdleHours })),
		MaxAgeDays: choose(r, "prune.maxAgeDays", new(int64(7)), at("prune.maxAgeDays", func(c *Config) *int64 { return c.Prune.MaxAgeDays })),
		IdleAction: choose(r, "prune.idleAction", string(PruneStop), at("prune.idleAction", func(c *Config) string { return c.Prune.IdleAction })),
	}
}
