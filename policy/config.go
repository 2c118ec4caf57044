package policy

import (
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/redact"
)

// Config is what policy reads of the configuration file. Unknown keys are refused by whoever decodes it.
type Config struct {
	Tools  visible.Tools `json:"tools"`
	Agents []Agent       `json:"agents"` // agents.list of the file, in its order: errors name positions in it
	TEG    TEG           `json:"teg"`

	Subagents visible.SubagentDefaults   `json:"subagents,omitzero"` // agents.defaults.subagents of the file
	Channels  map[string]visible.Channel `json:"channels,omitempty"`
	HTTP      visible.HTTPTools          `json:"http,omitzero"` // gateway.tools of the file

	Around Surroundings `json:"-"`
}

// Surroundings is what the program knows and the file does not say.
type Surroundings struct {
	// Addresses knows which hosts no call may reach, such as those of the machine's own network; nil: nobody does.
	Addresses AddressPolicy
	// Recipients knows to whom messages of a session may go without a question about the recipient; nil: to nobody
	// but the present conversation.
	Recipients RecipientPolicy
	// Confined says whether the session of a caller runs in a sandbox, and whether nothing in that can be written to; nil:
	// what the caller states counts alone. A caller that says it is confined is.
	Confined func(toolward.Caller) (yes, readOnly bool)
	// WhyConfined says by what mode a session runs in a sandbox, for people; may be nil.
	WhyConfined func(toolward.Caller) string
	// ClientTools are names of tools that clients may bring along (toolward.Call.Form), so that lists may name them
	// without a warning.
	ClientTools []string
	// Channels are the ids of the chat channels that are registered; nil stands for those built in. A sandboxed agent
	// does not see tools of these names.
	Channels []string
	// Secrets are those that the gateway holds itself; a call that would send one of them anywhere is refused. Nil:
	// only what looks like a secret is noticed.
	Secrets *redact.Redactor
	// GatewayURL and GatewayToken are the values that a tool's gatewayUrl and gatewayToken parameters may repeat.
	GatewayURL, GatewayToken string
}

// Agent is what policy reads of one entry of agents.list.
type Agent struct {
	ID        string                 `json:"id" jsonschema:"name of the agent, without colons and spaces"`
	Tools     visible.Tools          `json:"tools,omitzero" jsonschema:"which tools the agent sees, of those that the gateway allows"`
	Subagents visible.AgentSubagents `json:"subagents,omitzero" jsonschema:"this agent as a sub-agent"`
	TEG       AgentTEG               `json:"teg,omitzero" jsonschema:"how risky the agent's calls are; can only tighten"`
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
	Rules        []Rule               `json:"rules,omitempty" jsonschema:"conditions on calls of a tool, and what follows: ask, deny or allow"`
	Enable       []string             `json:"enable,omitempty" jsonschema:"blocked rows that may be asked for, by exact name"`
	Exec         TEGExec              `json:"exec,omitzero" jsonschema:"commands in the sandbox"`
	Approval     Approval             `json:"approval,omitzero" jsonschema:"questions to people"`
	Web          Web                  `json:"web,omitzero" jsonschema:"the web"`
	MCP          map[string]MCPServer `json:"mcp,omitempty" jsonschema:"MCP servers by name"`
}

// Rule is one entry of teg.rules.
type Rule struct {
	Name   string `json:"name" jsonschema:"its own name, for records and people"`
	Tool   string `json:"tool" jsonschema:"which tools: a name, a glob, a group or the id of a plug-in"`
	Action string `json:"action,omitempty" jsonschema:"which action of the tool; default: every one"`
	When   string `json:"when" jsonschema:"the condition, in CEL, over params, facts, caller and level; true for every call"`
	Then   string `json:"then" jsonschema:"ask or deny, which raise; allow, which lets run at level normal what people would decide"`
	Reason string `json:"reason" jsonschema:"why, for people"`
	WaitMs int64  `json:"waitMs,omitempty" jsonschema:"with ask: how long the question waits, up to 7 days; default: teg.approval.waitMs of the tool, else teg.approval.timeoutMs"`
}

// TEGExec is teg.exec.
type TEGExec struct {
	Sandbox string `json:"sandbox,omitempty" jsonschema:"auto (default): the container guards commands at level normal; ask: people do"`
}

// Approval is teg.approval.
type Approval struct {
	TimeoutMs            int64            `json:"timeoutMs,omitempty" jsonschema:"how long a question waits; default 120000"`
	WaitMs               map[string]int64 `json:"waitMs,omitempty" jsonschema:"how long questions about a tool wait instead, up to 7 days: tool, tool.action or glob → milliseconds; the most exact entry counts"`
	MaxPendingPerSession int              `json:"maxPendingPerSession,omitempty" jsonschema:"default 20"`
	Absent               string           `json:"absent,omitempty" jsonschema:"refuse (default) or wait, when nobody is there to answer"`
	Socket               string           `json:"socket,omitempty" jsonschema:"off (default), or once: where nobody is there to answer, the program that listens at the socket of exec-approvals.json may allow a call once or deny it"`
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
	maxWaitMs            = 7 * 24 * 60 * 60 * 1000
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
	if t.Approval.Socket == "" {
		t.Approval.Socket = "off"
	}
	return t
}

// AddressPolicy refuses addresses by the host that a URL names, before anything is resolved. Package netguard implements
// it, and the dialer repeats the check on the address that it dials. Refuses is called on the path of a call: it must
// not touch network or disk.
type AddressPolicy interface {
	// Refuses says why a URL may not be reached; "" if nothing is known against it.
	Refuses(url string) string
}

// RecipientPolicy knows the people and rooms that a session has to do with. It is called on the path of a call: it must
// not touch network or disk.
type RecipientPolicy interface {
	// Known reports whether an owner has used the recipient ("channel:account:target") in the session.
	Known(session toolward.SessionKey, recipient string) bool
	// Granted reports whether a grant of the caller names the recipient.
	Granted(call *toolward.Call, recipient string) bool
}

// forVisible is what decides which tools callers see. admits says why a tool may not be registered.
func (c *Config) forVisible(admits func(*toolward.Tool) error) visible.Config {
	agents := make([]visible.Agent, len(c.Agents))
	for i, a := range c.Agents {
		agents[i] = visible.Agent{ID: a.ID, Tools: a.Tools, Subagents: a.Subagents}
	}
	return visible.Config{
		Tools: c.Tools, Agents: agents, Subagents: c.Subagents, Channels: c.Channels, HTTP: c.HTTP,
		Around: visible.Surroundings{
			Confined: c.Around.Confined, WhyConfined: c.Around.WhyConfined, ClientTools: c.Around.ClientTools,
			Channels: c.Around.Channels, Admits: admits,
		},
	}
}
