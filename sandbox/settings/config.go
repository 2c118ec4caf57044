package settings

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/toolward/toolward/sandbox"
)

// Config is one "sandbox" object of the configuration: that of all agents, or that of one. What is left out is that of
// the wider one, or a default.
type Config struct {
	Mode            string   `json:"mode,omitempty" jsonschema:"which sessions are sandboxed: off, non-main (all but the main one) or all"`
	Scope           string   `json:"scope,omitempty" jsonschema:"who shares a sandbox: agent (default), session or shared"`
	PerSession      *bool    `json:"perSession,omitempty" jsonschema:"older form of scope: true is session, false is shared; counts only where no scope is set"`
	WorkspaceAccess string   `json:"workspaceAccess,omitempty" jsonschema:"what of the workspace is inside: none (default: a private directory), ro or rw"`
	WorkspaceRoot   string   `json:"workspaceRoot,omitempty" jsonschema:"absolute directory of private directories; default sandboxes in Toolward's home"`
	Engine          string   `json:"engine,omitempty" jsonschema:"auto (default), native or docker"`
	DegradeOK       []string `json:"degradeOk,omitzero" jsonschema:"controls that may be missing on this machine: cgroup, namespaces"`
	AllowPtrace     *bool    `json:"allowPtrace,omitempty" jsonschema:"debuggers may trace processes inside; default false"`

	Limits  LimitsConfig      `json:"limits,omitzero" jsonschema:"what a sandbox may use"`
	Network *string           `json:"network,omitempty" jsonschema:"none (default) or egress; with docker also bridge or the name of a network"`
	Egress  EgressConfig      `json:"egress,omitzero" jsonschema:"what is reached through the network egress"`
	Tmpfs   []string          `json:"tmpfs,omitzero" jsonschema:"file systems in memory: path, or path:options with size=, exec; default /tmp:exec /var/tmp:exec /run"`
	Env     map[string]string `json:"env,omitempty" jsonschema:"variables inside; default the machine's locale, LANG=C.UTF-8 with docker"`
	Binds   []string          `json:"binds,omitzero" jsonschema:"directories of the host inside: host:container or host:container:ro"`
	Workdir string            `json:"workdir,omitempty" jsonschema:"where the workspace is inside; default its own path, /workspace for a private directory"`

	Toolchains ToolchainsConfig `json:"toolchains,omitzero" jsonschema:"directories with the person's programs that are shown, read-only"`

	User string `json:"user,omitempty" jsonschema:"who runs inside, uid:gid; default the owner of the workspace"`

	EnvAllow  []string `json:"envAllow,omitzero" jsonschema:"exact names of variables that may look like credentials"`
	EnvStrict *bool    `json:"envStrict,omitempty" jsonschema:"only variables that every system has go in; default false"`

	FS      FSConfig      `json:"fs,omitzero" jsonschema:"files inside"`
	Native  NativeConfig  `json:"native,omitzero" jsonschema:"the native engine"`
	Docker  DockerConfig  `json:"docker,omitzero" jsonschema:"the docker engine; of what is also written without docker, this counts there"`
	Browser BrowserConfig `json:"browser,omitzero" jsonschema:"a browser in a sandbox; read and checked, not started yet"`
	Prune   PruneConfig   `json:"prune,omitzero" jsonschema:"when sandboxes that nobody uses end"`
}

// Defaults is agents.defaults.sandbox.
type Defaults struct {
	Config
	AllowAgentLoosening bool `json:"allowAgentLoosening,omitempty" jsonschema:"an agent may confine itself less than what is written for all; default false"`
}

// LimitsConfig bounds what a sandbox uses, whatever the engine.
type LimitsConfig struct {
	Memory    Quantity `json:"memory,omitempty" jsonschema:"bytes, or a number with k, m or g; default 4g"`
	Swap      Quantity `json:"swap,omitempty" jsonschema:"beyond memory; default 0"`
	Pids      *int64   `json:"pids,omitempty" jsonschema:"processes and threads; default 512"`
	CPUs      *float64 `json:"cpus,omitempty" jsonschema:"processors; default no limit"`
	Disk      Quantity `json:"disk,omitempty" jsonschema:"of the workspace; default 10g"`
	OpenFiles *int64   `json:"openFiles,omitempty" jsonschema:"files that a process has open; default 65536"`
	FileSize  Quantity `json:"fileSize,omitempty" jsonschema:"of one file; default no limit"`
}

// FSConfig is "fs".
type FSConfig struct {
	AllowProtected *bool  `json:"allowProtected,omitempty" jsonschema:"hooks and settings of repositories and editors can be written; default false"`
	Hardlinks      string `json:"hardlinks,omitempty" jsonschema:"files with several names: refuse (default) or read"`
}

// NativeConfig is "native".
type NativeConfig struct {
	Detach *bool  `json:"detach,omitempty" jsonschema:"sandboxes of the native engine go on when the gateway ends, and the next one uses them again; default false"`
	Cgroup string `json:"cgroup,omitempty" jsonschema:"for all agents: directory below /sys/fs/cgroup that was delegated to the gateway; default its own group, or a scope that systemd makes"`
}

// DockerConfig is "docker".
type DockerConfig struct {
	Image           string                  `json:"image,omitempty" jsonschema:"default toolward-sandbox:bookworm-slim"`
	ContainerPrefix string                  `json:"containerPrefix,omitempty" jsonschema:"of the names of containers; default toolward-sbx-"`
	Workdir         string                  `json:"workdir,omitempty" jsonschema:"where the workspace is inside; default as without docker"`
	ReadOnlyRoot    *bool                   `json:"readOnlyRoot,omitempty" jsonschema:"the image cannot be changed; default true"`
	Tmpfs           []string                `json:"tmpfs,omitzero" jsonschema:"as tmpfs"`
	Network         *string                 `json:"network,omitempty" jsonschema:"as network"`
	User            string                  `json:"user,omitempty" jsonschema:"as user"`
	CapDrop         []string                `json:"capDrop,omitzero" jsonschema:"capabilities that are dropped; default ALL"`
	Env             map[string]string       `json:"env,omitempty" jsonschema:"as env"`
	SetupCommand    string                  `json:"setupCommand,omitempty" jsonschema:"shell command that is run once in a new container"`
	PidsLimit       *int64                  `json:"pidsLimit,omitempty" jsonschema:"as limits.pids"`
	Memory          Quantity                `json:"memory,omitempty" jsonschema:"as limits.memory"`
	MemorySwap      Quantity                `json:"memorySwap,omitempty" jsonschema:"memory and swap together; default memory, which is no swap"`
	CPUs            *float64                `json:"cpus,omitempty" jsonschema:"as limits.cpus"`
	Ulimits         map[string]UlimitConfig `json:"ulimits,omitempty" jsonschema:"by name: a number, a text, or {soft, hard}; default core 0"`
	SeccompProfile  string                  `json:"seccompProfile,omitempty" jsonschema:"path of a profile; default the one that is shipped"`
	AppArmorProfile string                  `json:"apparmorProfile,omitempty" jsonschema:"name of a profile; default the engine's"`
	DNS             []string                `json:"dns,omitzero" jsonschema:"name servers"`
	ExtraHosts      []string                `json:"extraHosts,omitzero" jsonschema:"name:address"`
	Binds           []string                `json:"binds,omitzero" jsonschema:"as binds"`
	Runtime         string                  `json:"runtime,omitempty" jsonschema:"runc (default), runsc, or another that the engine knows"`
	HostPathMap     map[string]string       `json:"hostPathMap,omitempty" jsonschema:"where the gateway itself is in a container: its directories, and what they are on the engine's machine"`

	AllowReservedTargets *bool `json:"dangerouslyAllowReservedContainerTargets,omitempty" jsonschema:"binds may hide the workspace"`
	AllowExternalSources *bool `json:"dangerouslyAllowExternalBindSources,omitempty" jsonschema:"binds may come from outside the agent's directories"`
	AllowNamespaceJoin   *bool `json:"dangerouslyAllowContainerNamespaceJoin,omitempty" jsonschema:"the network may be another container's"`
}

// BrowserConfig is "browser".
type BrowserConfig struct {
	Enabled            *bool    `json:"enabled,omitempty" jsonschema:"default false"`
	Image              string   `json:"image,omitempty" jsonschema:"default toolward-sandbox-browser:bookworm-slim"`
	ContainerPrefix    string   `json:"containerPrefix,omitempty" jsonschema:"default toolward-sbx-browser-"`
	Network            *string  `json:"network,omitempty" jsonschema:"default toolward-sandbox-browser"`
	CDPPort            *int64   `json:"cdpPort,omitempty" jsonschema:"default 9222"`
	VNCPort            *int64   `json:"vncPort,omitempty" jsonschema:"default 5900"`
	NoVNCPort          *int64   `json:"noVncPort,omitempty" jsonschema:"default 6080"`
	Headless           *bool    `json:"headless,omitempty" jsonschema:"default false"`
	EnableNoVNC        *bool    `json:"enableNoVnc,omitempty" jsonschema:"default true"`
	AllowHostControl   *bool    `json:"allowHostControl,omitempty" jsonschema:"default false"`
	AutoStart          *bool    `json:"autoStart,omitempty" jsonschema:"default true"`
	AutoStartTimeoutMs *int64   `json:"autoStartTimeoutMs,omitempty" jsonschema:"default 12000"`
	CDPSourceRange     string   `json:"cdpSourceRange,omitempty" jsonschema:"addresses that reach the debugging port"`
	Binds              []string `json:"binds,omitzero" jsonschema:"in place of docker.binds, even if empty"`
}

// PruneConfig is "prune".
type PruneConfig struct {
	IdleHours  *int64 `json:"idleHours,omitempty" jsonschema:"unused for longer: idleAction; 0 is never; default 24"`
	MaxAgeDays *int64 `json:"maxAgeDays,omitempty" jsonschema:"older: removed; 0 is never; default 7"`
	IdleAction string `json:"idleAction,omitempty" jsonschema:"stop (default) or remove"`
}

// Quantity is a number of bytes as it is written: a JSON number, or a text such as "512m". "" is none.
type Quantity string

// Forms says what may stand in the configuration.
func (Quantity) Forms() string { return "a number of bytes, or a text such as 512m" }

// UnmarshalJSON takes a number or a text.
func (q *Quantity) UnmarshalJSON(raw []byte) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	switch v.(type) {
	case string, float64:
		*q = Quantity(raw)
		return nil
	}
	return sandbox.Errorf(sandbox.CodeConfig, "expected a number of bytes, or a text such as 512m")
}

// MarshalJSON is the value as it was written.
func (q Quantity) MarshalJSON() ([]byte, error) {
	if q == "" {
		return []byte("null"), nil
	}
	return []byte(q), nil
}

// noLimit is what container engines take for no limit.
const noLimit = "-1"

// Bytes makes a quantity.
func Bytes(n int64) Quantity { return Quantity(strconv.FormatInt(n, 10)) }

// Text is the quantity as container engines take it; "" is none.
func (q Quantity) Text() string { return literalText([]byte(q)) }

// Count is the number of bytes; 0 is none.
func (q Quantity) Count() (int64, error) {
	text := strings.ToLower(q.Text())
	if text == "" {
		return 0, nil
	}
	number := strings.TrimSuffix(text, "b")
	factor := int64(1)
	for unit, f := range map[string]int64{"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number, factor = rest, f
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if total := n * float64(factor); err == nil && total >= 0 && total < 1<<60 {
		return int64(total), nil
	}
	return 0, sandbox.Errorf(sandbox.CodeConfig, "%q is no number of bytes: write one, or a number with k, m or g", q.Text())
}

// UlimitConfig is one limit as it is written: a JSON number, a text, or {"soft", "hard"}.
type UlimitConfig string

// Forms says what may stand in the configuration.
func (UlimitConfig) Forms() string { return "a number, a text or {soft, hard}" }

// UnmarshalJSON takes any of the three forms.
func (u *UlimitConfig) UnmarshalJSON(raw []byte) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return err
	}
	if raw = compact.Bytes(); len(raw) > 0 && raw[0] == '{' {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&struct{ Soft, Hard *float64 }{}); err != nil {
			return sandbox.Errorf(sandbox.CodeConfig, "expected {soft, hard}: %v", err)
		}
	} else if len(raw) == 0 || raw[0] == '[' || raw[0] == 'n' || raw[0] == 't' || raw[0] == 'f' {
		return sandbox.Errorf(sandbox.CodeConfig, "expected a number, a text or {soft, hard}")
	}
	*u = UlimitConfig(raw)
	return nil
}

// MarshalJSON is the value as it was written.
func (u UlimitConfig) MarshalJSON() ([]byte, error) {
	if u == "" {
		return []byte("null"), nil
	}
	return []byte(u), nil
}

// Render is the limit as container engines take it, "soft:hard" or one value; "" is none.
func (u UlimitConfig) Render() string {
	if !strings.HasPrefix(string(u), "{") {
		return literalText([]byte(u))
	}
	var pair struct{ Soft, Hard *float64 }
	if json.Unmarshal([]byte(u), &pair) != nil {
		return ""
	}
	value := func(n *float64) string { return strconv.FormatFloat(max(0, *n), 'f', -1, 64) }
	switch {
	case pair.Soft == nil && pair.Hard == nil:
		return ""
	case pair.Hard == nil:
		return value(pair.Soft)
	case pair.Soft == nil:
		return value(pair.Hard)
	}
	return value(pair.Soft) + ":" + value(pair.Hard)
}

// literalText is the text of a JSON number or text, trimmed.
func literalText(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	switch v := v.(type) {
	case string:
		return sandbox.Trim(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func (d *DockerConfig) network() string {
	if d.Network == nil || sandbox.Trim(*d.Network) == "" {
		return string(sandbox.NetworkNone)
	}
	return sandbox.Trim(*d.Network)
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

// EgressConfig is "egress": what programs reach through the network egress.
type EgressConfig struct {
	Hosts     []string `json:"hosts,omitzero" jsonschema:"hosts that need no question: name, *.name for those below it, each with :port for another port than 80 and 443"`
	Packs     []string `json:"packs,omitzero" jsonschema:"hosts of package registries that need no question, by the name of their list: go, npm, pypi, crates, rubygems, maven, debian, containers, and remotes for the git remotes of the workspace"`
	Internal  []string `json:"internal,omitzero" jsonschema:"host:port of machines of the own network that need no question; others of it are never reached, but for registries that this machine's own configuration names, which ask"`
	HostPorts []int64  `json:"hostPorts,omitzero" jsonschema:"ports of services on this machine's loopback address that programs inside reach at the same port of localhost; they ask as hosts do"`
	Unlisted  string   `json:"unlisted,omitempty" jsonschema:"what becomes of other hosts: ask (default) or deny"`
	MaxSent   Quantity `json:"maxSent,omitempty" jsonschema:"bytes that may leave to one host within a day before a person is asked again; default 100m; 0 is no bound"`
}
