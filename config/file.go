// Package config reads the one configuration file, toolward.jsonc, checks it and compiles it.
//
// [Load] and [Parse] report everything that is wrong at once, each with file, line, column, the value and what to
// write instead. A file that does not pass changes nothing: whoever holds an earlier [Loaded] keeps it. Without a
// file the defaults apply; they are safe and useful at once.
package config

import (
	"github.com/toolward/toolward/audit/elsewhere"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/plugin"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/sandbox/settings"
	"github.com/toolward/toolward/server/protocol"
	"github.com/toolward/toolward/telemetry"
)

// File is the configuration file. Keys that are not here are refused.
type File struct {
	Server    Server                     `json:"server,omitzero" jsonschema:"where the gateway listens"`
	Agents    Agents                     `json:"agents,omitzero" jsonschema:"the agents that have settings of their own"`
	Tools     Tools                      `json:"tools,omitzero" jsonschema:"which tools agents see"`
	Channels  map[string]visible.Channel `json:"channels,omitempty" jsonschema:"which tools chat groups and their senders get"`
	Gateway   Gateway                    `json:"gateway,omitzero" jsonschema:"the gateway protocol and the HTTP tool endpoint"`
	TEG       TEG                        `json:"teg,omitzero" jsonschema:"how risky calls are and what follows from it"`
	Plugins   plugin.Config              `json:"plugins,omitzero" jsonschema:"programs and servers that are asked about calls and told of them"`
	Bridge    Bridge                     `json:"bridge,omitzero" jsonschema:"guarded agents that run their tools themselves"`
	Undo      Undo                       `json:"undo,omitzero" jsonschema:"what is kept of workspaces, so that calls can be taken back"`
	Telemetry telemetry.Config           `json:"telemetry,omitzero" jsonschema:"what is measured and where it goes"`
	Config    Self                       `json:"config,omitzero" jsonschema:"this file itself"`
	Limits    Limits                     `json:"limits,omitzero" jsonschema:"bounds of time, size and number"`
}

// Server says where the gateway listens.
type Server struct {
	Listen string   `json:"listen,omitempty" jsonschema:"address of console and API; default 127.0.0.1:7411"`
	Hosts  []string `json:"hosts,omitempty" jsonschema:"further host names that the console answers to, behind a reverse proxy"`

	PublicOrigin string `json:"publicOrigin,omitempty" jsonschema:"where people reach the console through a reverse proxy, such as https://gate.example.org: cookies, links and passkeys are for this address"`
}

// Agents lists the agents.
type Agents struct {
	Defaults AgentDefaults `json:"defaults,omitzero" jsonschema:"what holds for every agent"`
	List     []Agent       `json:"list,omitempty" jsonschema:"one entry for every agent"`
}

// AgentDefaults is agents.defaults.
type AgentDefaults struct {
	Subagents       visible.SubagentDefaults `json:"subagents,omitzero" jsonschema:"sub-agents"`
	Sandbox         settings.Defaults        `json:"sandbox,omitzero" jsonschema:"where commands and file tools run, confined"`
	ElevatedDefault string                   `json:"elevatedDefault,omitempty" jsonschema:"level of commands with more rights, of sessions that nobody has set one for: off (default), on, ask or full"`
}

// Gateway is the section "gateway".
type Gateway struct {
	protocol.Config
	Tools visible.HTTPTools `json:"tools,omitzero" jsonschema:"what the HTTP tool endpoint offers"`
}

// Agent is one entry of agents.list.
type Agent struct {
	policy.Agent
	Default   bool            `json:"default,omitempty" jsonschema:"the agent that is meant where nobody names one; default main, else the first of the list"`
	Tools     Tools           `json:"tools,omitzero" jsonschema:"which tools the agent sees, of those that the gateway allows"`
	Sandbox   settings.Config `json:"sandbox,omitzero" jsonschema:"as agents.defaults.sandbox, for this agent"`
	Workspace string          `json:"workspace,omitempty" jsonschema:"absolute directory that is the agent's own, when the client names none"`
}

// TEG is the section "teg".
type TEG struct {
	policy.TEG
	Mode    string  `json:"mode,omitempty" jsonschema:"enforce (default), or shadow: what would ask runs and is recorded; no protection"`
	Shadow  string  `json:"shadow,omitempty" jsonschema:"a second configuration file in the home: its policy judges every call beside this one, and only the difference is recorded"`
	Anomaly Anomaly `json:"anomaly,omitzero" jsonschema:"what counts as odd, and what follows"`
	Audit   Audit   `json:"audit,omitzero" jsonschema:"the record"`
}

// The values of teg.mode.
const (
	ModeEnforce = "enforce"
	ModeShadow  = "shadow" // what would ask is recorded and allowed; refusals stay
)

// Audit is teg.audit.
type Audit struct {
	Sync       string `json:"sync,omitempty" jsonschema:"auto (default) or always: reach the disk before every call, safe ones too"`
	RetainDays int    `json:"retainDays,omitempty" jsonschema:"how long records are kept; default 90"`

	Checkpoints elsewhere.Settings `json:"checkpoints,omitzero" jsonschema:"where signed checkpoints of the record are kept besides, so that what is cut off or forged with the record's own key shows"`
}

// Bridge is the section "bridge".
type Bridge struct {
	Attended    string `json:"attended,omitempty" jsonschema:"who answers for an attended session: toolward (default) or client"`
	EnforceText *bool  `json:"enforceText,omitempty" jsonschema:"the client runs the text that was judged, programs by their paths and words as they were expanded, in the place of a command that runs without a question; default true"`
}

// Enforces reports whether clients run what was judged. Where nothing is said they do: a text that they read once more
// may mean something else to their shell.
func (b Bridge) Enforces() bool { return b.EnforceText == nil || *b.EnforceText }

// Self is the section "config".
type Self struct {
	AutoApply bool `json:"autoApply,omitempty" jsonschema:"apply a changed file without a person's answer; default false"`
}

// Limits is the section "limits"; docs/limits.md shows every row with default and maximum.
type Limits struct {
	Pending              int            `json:"pending,omitempty"`
	PendingPerSession    int            `json:"pendingPerSession,omitempty"`
	PendingPerConnection int            `json:"pendingPerConnection,omitempty"`
	ApprovalMaxMs        int64          `json:"approvalMaxMs,omitempty"`
	MessageBytes         int            `json:"messageBytes,omitempty"`
	CallsPerSession      int            `json:"callsPerSession,omitempty"`
	Tools                builtin.Config `json:"tools,omitzero"`
}

// Limit is one row of the table of limits.
type Limit struct {
	Key                  string
	Default, Least, Most int64
	Unit, Meaning        string
	value                func(*Limits) int64
	set                  func(*Limits, int64)
}

// Table returns the limits of the gateway itself, in the order of the documentation. The tools' own limits are
// builtin's.
func Table() []Limit {
	count := func(field func(*Limits) *int) (func(*Limits) int64, func(*Limits, int64)) {
		return func(l *Limits) int64 { return int64(*field(l)) }, func(l *Limits, v int64) { *field(l) = int(v) }
	}
	row := func(key string, fallback, least, most int64, unit, meaning string, field func(*Limits) *int) Limit {
		get, set := count(field)
		return Limit{key, fallback, least, most, unit, meaning, get, set}
	}
	return []Limit{
		row("limits.pending", 500, 1, 1_000_000, "approvals", "waiting at once", func(l *Limits) *int { return &l.Pending }),
		row("limits.pendingPerSession", 20, 1, 100_000, "approvals", "waiting at once in one session", func(l *Limits) *int { return &l.PendingPerSession }),
		row("limits.pendingPerConnection", 50, 1, 100_000, "approvals", "waiting at once from one connection", func(l *Limits) *int { return &l.PendingPerConnection }),
		{
			"limits.approvalMaxMs", 600_000, 1_000, 7 * 24 * 3600 * 1000, "ms", "the longest that a program may let its question wait; a rule may set more",
			func(l *Limits) int64 { return l.ApprovalMaxMs }, func(l *Limits, v int64) { l.ApprovalMaxMs = v },
		},
		row("limits.messageBytes", 4<<20, 64<<10, 64<<20, "bytes", "one message of an MCP client", func(l *Limits) *int { return &l.MessageBytes }),
		row("limits.callsPerSession", 64, 1, 10_000, "calls", "in flight at once in one MCP session", func(l *Limits) *int { return &l.CallsPerSession }),
	}
}

const defaultListen = "127.0.0.1:7411"

// withDefaults fills in what the file leaves out.
func (f File) withDefaults() File {
	if f.Server.Listen == "" {
		f.Server.Listen = defaultListen
	}
	if f.TEG.Mode == "" {
		f.TEG.Mode = ModeEnforce
	}
	f.TEG.TEG = f.TEG.WithDefaults()
	if f.TEG.Audit.Sync == "" {
		f.TEG.Audit.Sync = "auto"
	}
	if f.TEG.Audit.Checkpoints.EveryMs == 0 {
		f.TEG.Audit.Checkpoints.EveryMs = elsewhere.DefaultEveryMs
	}
	if f.TEG.Audit.RetainDays == 0 {
		f.TEG.Audit.RetainDays = 90
	}
	if f.Bridge.Attended == "" {
		f.Bridge.Attended = "toolward"
	}
	enforces := f.Bridge.Enforces()
	f.Bridge.EnforceText = &enforces
	f.Undo = f.Undo.withDefaults()
	if f.Agents.Defaults.ElevatedDefault == "" {
		f.Agents.Defaults.ElevatedDefault = "off"
	}
	f.Tools.Exec = f.Tools.Exec.withDefaults()
	for _, l := range Table() {
		if l.value(&f.Limits) == 0 {
			l.set(&f.Limits, l.Default)
		}
	}
	f.Limits.Tools = f.Limits.Tools.Defaults()
	return f
}

// Policy is the part that policy compiles.
func (f File) Policy() policy.Config {
	agents := make([]policy.Agent, len(f.Agents.List))
	for i, a := range f.Agents.List {
		agents[i] = a.Agent
		agents[i].Tools = a.Tools.Policy()
	}
	return policy.Config{
		Tools: f.Tools.Policy(), Agents: agents, TEG: f.TEG.TEG,
		Subagents: f.Agents.Defaults.Subagents, Channels: f.Channels, HTTP: f.Gateway.Tools,
	}
}
