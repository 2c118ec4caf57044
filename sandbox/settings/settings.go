package settings

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/toolchain"

	"github.com/toolward/toolward/netguard/registries"
)

// The defaults of images.
const (
	DefaultImage        = sandbox.Brand + "-sandbox:bookworm-slim"
	DefaultBrowserImage = sandbox.Brand + "-sandbox-browser:bookworm-slim"
	browserNetwork      = sandbox.Brand + "-sandbox-browser"
)

// EngineAuto lets the machine decide: native if it works, else docker.
const EngineAuto = "auto"

// Configuration is everything that the configuration says about sandboxes.
type Configuration struct {
	Defaults Defaults
	Agents   []AgentConfig
	Sessions Sessions
}

// AgentConfig is one entry of agents.list.
type AgentConfig struct {
	ID     string
	Config Config
}

// Surroundings is what the configuration does not say.
type Surroundings struct {
	StateDir string // Toolward's home
	Home     string // of the gateway's user
	// OtherHomes are [BindRules.OtherHomes].
	OtherHomes []string
	// Programs are [BindRules.Programs].
	Programs []string
	Instance string // name of this Toolward home on the machine
	Person   Person
	Tools    toolchain.Found // of the person's machine
	// Undecided is the mode where the configuration names none: what the first start found. "" is off, by nobody's word.
	Undecided Mode
	// Network is that of sandboxes where the configuration names none; "" is none.
	Network sandbox.NetworkMode
	// Registries are the package registries that the machine's own configuration names.
	Registries []registries.Registry
	FoldCase   bool
	Files      FileSystem // nil is Host
}

// Settings is a configuration that was checked. It is immutable and safe for concurrent use.
type Settings struct {
	config Configuration
	around Surroundings
	agents map[string]*Config
	byID   map[string]*Resolved // of the agents that the configuration names
	anyone *Resolved
}

// Compile checks a configuration. Problems name keys of the configuration file.
func Compile(c Configuration, around Surroundings) (*Settings, []Problem) {
	if around.Files == nil {
		around.Files = Host
	}
	s := &Settings{config: c, around: around, agents: map[string]*Config{}, byID: map[string]*Resolved{}}
	problems := c.check(around)
	for i := range c.Agents {
		id := AgentID(c.Agents[i].ID)
		s.agents[id] = &c.Agents[i].Config
		s.byID[id] = s.resolve(id, &c.Agents[i].Config)
		problems = append(problems, s.byID[id].bindsTwice(i)...)
	}
	s.anyone = s.resolve("", nil)
	return s, problems
}

// Source says where a setting comes from.
type Source struct {
	Level string `json:"source"` // agent, global, default or probe
	Key   string `json:"key"`    // the key to edit
}

// The levels of a Source.
const (
	FromAgent   = "agent"
	FromGlobal  = "global"
	FromDefault = "default"
	FromProbe   = "probe" // the first start has found out, and it was kept
)

const (
	agentPrefix  = "agents.list[].sandbox."
	globalPrefix = "agents.defaults.sandbox."
)

// Resolved is what holds for the sandboxes of one agent.
type Resolved struct {
	Agent         string `json:"agentId,omitempty"`
	Mode          Mode   `json:"mode"`
	Scope         Scope  `json:"scope"`
	PerSession    bool   `json:"perSession"`
	Access        Access `json:"workspaceAccess"`
	WorkspaceRoot string `json:"workspaceRoot"`
	Engine        string `json:"engine"`
	Workdir       string `json:"workdir,omitempty"` // "" is the workspace's own path

	DegradeOK      []string `json:"degradeOk,omitempty"`
	AllowPtrace    bool     `json:"allowPtrace,omitempty"`
	AllowProtected bool     `json:"allowProtected,omitempty"`
	Hardlinks      bool     `json:"hardlinks,omitempty"`
	Detach         bool     `json:"detach,omitempty"`
	Cgroup         string   `json:"cgroup,omitempty"`
	EnvAllow       []string `json:"envAllow,omitempty"`
	EnvStrict      bool     `json:"envStrict,omitempty"`

	Toolchains ToolchainsConfig `json:"toolchains,omitzero"`

	// Neutral is what engines other than docker get; Docker is the docker engine's view of the same.
	Neutral Neutral       `json:"neutral"`
	Docker  DockerConfig  `json:"docker"`
	Browser BrowserConfig `json:"browser"`
	Egress  EgressConfig  `json:"egress"`
	Prune   PruneConfig   `json:"prune"`

	Sources map[string]Source `json:"sources"`

	dockerAsked bool // the configuration names an image, or a network that only containers have
	reach       *Reach
	values      map[string]any
	settings    *Settings
}

// Reach is what the agent's programs reach through the network egress.
func (r *Resolved) Reach() *Reach { return r.reach }

// Setting is one leaf of what holds, and where it comes from.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"` // JSON; "" is nothing
	From  Source `json:"from"`
}

// Settings lists every leaf, by key.
func (r *Resolved) Settings() []Setting {
	var all []Setting
	for _, leaf := range slices.Sorted(maps.Keys(r.values)) {
		s := Setting{Key: leaf, From: r.Sources[leaf]}
		if raw, err := json.Marshal(r.values[leaf]); err == nil && string(raw) != "null" && string(raw) != `""` {
			s.Value = string(raw)
		}
		all = append(all, s)
	}
	return all
}

// Neutral is what can be written for every engine.
type Neutral struct {
	Limits  LimitsConfig      `json:"limits,omitzero"`
	Network string            `json:"network"`
	Tmpfs   []string          `json:"tmpfs"`
	Env     map[string]string `json:"env"`
	Binds   []string          `json:"binds,omitempty"`
	User    string            `json:"user,omitempty"`
}

// BrowserBinds are the binds of a browser's sandbox: its own if there are any, even none at all, else docker's.
func (r *Resolved) BrowserBinds() []string {
	if r.Browser.Binds != nil {
		return r.Browser.Binds
	}
	return r.Docker.Binds
}

// EnvRules are the rules for variables in the agent's sandboxes.
func (r *Resolved) EnvRules() EnvRules { return EnvRules{Allow: r.EnvAllow, Strict: r.EnvStrict} }

// For is what holds for an agent.
func (s *Settings) For(agent string) *Resolved {
	agent = AgentID(agent)
	if r, ok := s.byID[agent]; ok {
		return r
	}
	r := *s.anyone
	r.Agent = agent
	return &r
}

// Instance is the name of this Toolward home on the machine.
func (s *Settings) Instance() string { return s.around.Instance }

// ForScope is what holds for the sandbox of a scope key: the settings of its own agent, or those for all.
func (s *Settings) ForScope(scopeKey string) *Resolved {
	if agent := ScopeAgentID(scopeKey); agent != "" {
		return s.For(agent)
	}
	return s.anyone
}

// Sandboxed reports whether a session of an agent is sandboxed, and why.
func (s *Settings) Sandboxed(agent, session string) (yes bool, why string) {
	return s.config.Sessions.Sandboxed(s.For(agent).Mode, agent, session)
}

// Confines reports whether what a request is for runs in a sandbox, whether nothing in that one can be written to, and why.
func (s *Settings) Confines(q Request) (yes, readOnly bool, why string) {
	if yes, why = s.Sandboxed(q.Agent, q.Session); !yes {
		return false, false, why
	}
	return true, s.For(q.Agent).ReadOnly(q.Workspace), why
}

// Images are the images that sandboxes need. auto is the engine of those whose configuration leaves it to the machine.
func (s *Settings) Images(auto string) (names []string) {
	for _, r := range append(slices.Collect(maps.Values(s.byID)), s.anyone) {
		if r.Mode != ModeOff && (r.Engine == sandbox.EngineDocker || r.Engine == EngineAuto && auto == sandbox.EngineDocker) {
			names = append(names, strings.TrimSpace(r.Docker.Image))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Sessions is what was given of the sessions' configuration.
func (s *Settings) Sessions() Sessions { return s.config.Sessions }

func (s *Settings) resolve(agent string, own *Config) *Resolved {
	res := &resolver{sources: map[string]Source{}, values: map[string]any{}}
	if own == nil {
		own = &Config{}
	}
	all := []layer{{FromAgent, agentPrefix, own}, {FromGlobal, globalPrefix, &s.config.Defaults.Config}}
	r := &Resolved{Agent: agent, Sources: res.sources, values: res.values, settings: s}
	res.layers = all
	r.Mode = Mode(canonical(modeWords, choose(res, "mode", string(s.undecided()), at("mode", func(c *Config) string { return c.Mode }))))
	if s.around.Undecided != "" && res.sources["mode"].Level == FromDefault {
		res.sources["mode"] = Source{FromProbe, globalPrefix + "mode"}
	}
	r.Access = Access(canonical(accessWords, choose(res, "workspaceAccess", string(AccessNone), at("workspaceAccess", func(c *Config) string { return c.WorkspaceAccess }))))
	r.WorkspaceRoot = choose(res, "workspaceRoot", filepath.Join(s.around.StateDir, "sandboxes"), at("workspaceRoot", func(c *Config) string { return c.WorkspaceRoot }))
	r.Engine = strings.ToLower(choose(res, "engine", EngineAuto, at("engine", func(c *Config) string { return c.Engine })))
	r.Scope = res.scope()
	r.PerSession = r.Scope == ScopeSession
	if r.Scope == ScopeShared {
		// One agent must not change what the others' commands run in.
		res.layers = all[1:]
	}
	r.Workdir = choose(res, "workdir", "", at("workdir", func(c *Config) string { return c.Workdir }))
	r.EnvAllow = choose(res, "envAllow", []string(nil), at("envAllow", func(c *Config) []string { return c.EnvAllow }))
	r.EnvStrict = flag(res, "envStrict", false, func(c *Config) *bool { return c.EnvStrict })
	r.Toolchains = res.toolchains()
	r.DegradeOK = choose(res, "degradeOk", []string(nil), at("degradeOk", func(c *Config) []string { return c.DegradeOK }))
	r.AllowPtrace = flag(res, "allowPtrace", false, func(c *Config) *bool { return c.AllowPtrace })
	r.AllowProtected = flag(res, "fs.allowProtected", false, func(c *Config) *bool { return c.FS.AllowProtected })
	r.Hardlinks = choose(res, "fs.hardlinks", "refuse", at("fs.hardlinks", func(c *Config) string { return c.FS.Hardlinks })) == "read"
	r.Detach = flag(res, "native.detach", false, func(c *Config) *bool { return c.Native.Detach })
	r.Cgroup = choose(res, "native.cgroup", "", at("native.cgroup", func(c *Config) string { return c.Native.Cgroup }))
	network := cmp.Or(s.around.Network, sandbox.NetworkNone)
	r.Docker = res.docker(network)
	r.Neutral = res.neutral(network)
	for _, leaf := range []string{"network", "docker.network"} {
		if s.around.Network != "" && res.sources[leaf].Level == FromDefault {
			res.sources[leaf] = Source{FromProbe, globalPrefix + leaf}
		}
	}
	r.explainDefaults()
	r.Browser = res.browser()
	r.Egress = res.egress()
	r.reach = r.Egress.reach(res.sources, s.around.Registries)
	r.Prune = res.prune()
	r.dockerAsked = res.sources["docker.image"].Level != FromDefault || onlyContainers(r.Docker.network())
	return r
}

// explainDefaults says what containers get where nothing is written: no value would read as if there were no limit.
func (r *Resolved) explainDefaults() {
	d := r.Docker.WithEngineDefaults()
	v := r.view(sandbox.EngineDocker)
	if limits, err := v.Limits.parse(); err == nil && r.Docker.MemorySwap.Text() == "" && limits.Swap != 0 {
		d.MemorySwap = Bytes(limits.MemorySwap())
	}
	for leaf, value := range map[string]any{
		"docker.pidsLimit": d.PidsLimit, "docker.memory": d.Memory, "docker.memorySwap": d.MemorySwap,
		"docker.ulimits.core": d.Ulimits["core"], "docker.seccompProfile": "(the one that is shipped)",
	} {
		if source, written := r.Sources[leaf]; !written || source.Level == FromDefault {
			r.Sources[leaf], r.values[leaf] = Source{FromDefault, globalPrefix + leaf}, value
		}
	}
}

// EngineOrder is of which engines an agent's sandboxes may be, in the order of preference.
func (r *Resolved) EngineOrder() []string {
	switch {
	case r.Engine != EngineAuto:
		return []string{r.Engine}
	case r.dockerAsked:
		return []string{sandbox.EngineDocker, sandbox.EngineNative}
	}
	return []string{sandbox.EngineNative, sandbox.EngineDocker}
}

// LimitsOf are the limits of an agent's sandboxes with an engine.
func (r *Resolved) LimitsOf(engine string) (sandbox.Limits, error) {
	limits := r.view(engine).Limits
	return limits.parse()
}

// NetworkOf is the network of an agent's sandboxes with an engine, as it is written where it is none that is known.
func (r *Resolved) NetworkOf(engine string) sandbox.NetworkMode {
	written := r.view(engine).Network
	if mode, err := ParseNetwork(written, true); err == nil {
		return mode
	}
	return sandbox.NetworkMode(written)
}

// onlyContainers reports whether a network is one that only container engines have.
func onlyContainers(network string) bool {
	mode, err := ParseNetwork(network, true)
	return err == nil && mode != sandbox.NetworkNone && mode != sandbox.NetworkEgress
}

func (s *Settings) undecided() Mode {
	if s.around.Undecided == "" {
		return ModeOff
	}
	return s.around.Undecided
}

// canonical is the word that explanations print; one that is not known stays, and was reported.
func canonical[W ~string](words map[string]W, word string) string {
	if w, ok := words[strings.ToLower(sandbox.Trim(word))]; ok {
		return string(w)
	}
	return word
}

// Anyone is what holds for agents that the configuration does not name.
func (s *Settings) Anyone() *Resolved { return s.anyone }

// Agents are the agents that the configuration names.
func (s *Settings) Agents() map[string]*Resolved { return maps.Clone(s.byID) }
