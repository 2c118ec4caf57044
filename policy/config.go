package policy

import (
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/redact"
)

// Config is what policy reads of the configuration file. Unknown keys are refused by whoever decodes it.
type Config struct {
	Tools  Tools   `json:"tools"`
	Agents []Agent `json:"agents"` // agents.list of the file, in its order: errors name positions in it
	TEG    TEG     `json:"teg"`

	Around Surroundings `json:"-"`
}

// Surroundings is what the program knows and the file does not say.
type Surroundings struct {
	// Commands judges commands; nil until command analysis is there, and then every command asks.
	Commands CommandPolicy
	// ClientTools are names of tools that clients may bring along (toolward.Call.Form), so that lists may name them
	// without a warning.
	ClientTools []string
	// Secrets are those that the gateway holds itself; a call that would send one of them anywhere is refused. Nil:
	// only what looks like a secret is noticed.
	Secrets *redact.Redactor
	// GatewayURL and GatewayToken are the values that a tool's gatewayUrl and gatewayToken parameters may repeat.
	GatewayURL, GatewayToken string
}

// Tools is the section "tools", of the whole gateway and of one agent.
type Tools struct {
	Allow []string `json:"allow,omitempty" jsonschema:"names, globs, groups, plug-in ids; empty: everything"`
	Deny  []string `json:"deny,omitempty" jsonschema:"the same; wins over allow"`
	Exec  Exec     `json:"exec,omitzero" jsonschema:"policy for commands"`
	FS    FS       `json:"fs,omitzero" jsonschema:"policy for files"`
}

// Exec is the policy for commands, tools.exec.
type Exec struct {
	Security string `json:"security,omitempty" jsonschema:"which commands may run: deny, allowlist (default) or full"`
	Ask      string `json:"ask,omitempty" jsonschema:"when people are asked: off, on-miss (default) or always"`
}

// FS is the policy for files, tools.fs.
type FS struct {
	WorkspaceOnly *bool `json:"workspaceOnly,omitempty" jsonschema:"refuse files outside the workspace; default false"`
}

// Agent is what policy reads of one entry of agents.list.
type Agent struct {
	ID    string   `json:"id" jsonschema:"name of the agent, without colons and spaces"`
	Tools Tools    `json:"tools,omitzero" jsonschema:"which tools the agent sees, of those that the gateway allows"`
	TEG   AgentTEG `json:"teg,omitzero" jsonschema:"how risky the agent's calls are; can only tighten"`
}

// AgentTEG is the section "teg" of one agent. It can only tighten.
type AgentTEG struct {
	Tools map[string]string `json:"tools,omitempty" jsonschema:"as teg.tools of the gateway; the stricter of both counts"`
}

// TEG is the part of the section "teg" that policy reads.
type TEG struct {
	Preset       Preset               `json:"preset,omitempty" jsonschema:"strict (default) or workspace"`
	DefaultLevel string               `json:"defaultLevel,omitempty" jsonschema:"level of sources without a context of their own; default normal"`
	HighWater    float64              `json:"highWater,omitempty" jsonschema:"share of the context that counts as full; default and maximum 0.8"`
	Tools        map[string]string    `json:"tools,omitempty" jsonschema:"classes changed by the operator: tool, tool.action or glob → safe, needs_approval or blocked"`
	Enable       []string             `json:"enable,omitempty" jsonschema:"blocked rows that may be asked for, by exact name"`
	Exec         TEGExec              `json:"exec,omitzero" jsonschema:"commands in the sandbox"`
	Approval     Approval             `json:"approval,omitzero" jsonschema:"questions to people"`
	Web          Web                  `json:"web,omitzero" jsonschema:"the web"`
	MCP          map[string]MCPServer `json:"mcp,omitempty" jsonschema:"MCP servers by name"`
}

// TEGExec is teg.exec.
type TEGExec struct {
	Sandbox string `json:"sandbox,omitempty" jsonschema:"auto (default): the container guards commands at level normal; ask: people do"`
}

// Approval is teg.approval.
type Approval struct {
	TimeoutMs            int64  `json:"timeoutMs,omitempty" jsonschema:"how long a question waits; default 120000"`
	MaxPendingPerSession int    `json:"maxPendingPerSession,omitempty" jsonschema:"default 20"`
	Absent               string `json:"absent,omitempty" jsonschema:"refuse (default) or wait, when nobody is there to answer"`
}

// Web is teg.web.
type Web struct {
	AllowHosts []string `json:"allowHosts,omitempty" jsonschema:"hosts that need no question at level elevated: example.org, https://example.org:8443"`
}

// MCPServer is teg.mcp.<server>.
type MCPServer struct {
	TrustHints bool `json:"trustHints,omitempty" jsonschema:"believe the server when it says that a tool only reads"`
}

// Preset names a variant of the class table.
type Preset string

// The presets.
const (
	PresetStrict    Preset = "strict"
	PresetWorkspace Preset = "workspace" // writes inside the workspace and answers to the present conversation run at level normal
)

// Limits of configured values.
const (
	maxHighWater         = 0.8
	defaultTimeoutMs     = 120_000
	minTimeoutMs         = 1_000
	maxTimeoutMs         = 24 * 60 * 60 * 1000
	defaultPendingPerKey = 20
	maxPendingPerKey     = 10_000
)

// WithDefaults fills in what the file leaves out.
func (t TEG) WithDefaults() TEG {
	if t.Preset == "" {
		t.Preset = PresetStrict
	}
	if t.DefaultLevel == "" {
		t.DefaultLevel = toolward.Normal.String()
	}
	if t.HighWater == 0 {
		t.HighWater = maxHighWater
	}
	if t.Exec.Sandbox == "" {
		t.Exec.Sandbox = "auto"
	}
	if t.Approval.TimeoutMs == 0 {
		t.Approval.TimeoutMs = defaultTimeoutMs
	}
	if t.Approval.MaxPendingPerSession == 0 {
		t.Approval.MaxPendingPerSession = defaultPendingPerKey
	}
	if t.Approval.Absent == "" {
		t.Approval.Absent = "refuse"
	}
	return t
}
