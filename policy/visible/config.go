package visible

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/toolward/toolward"
)

// Config is the part of the configuration that decides which tools callers see.
type Config struct {
	Tools     Tools
	Agents    []Agent // agents.list of the file, in its order: errors name positions in it
	Subagents SubagentDefaults
	Channels  map[string]Channel
	HTTP      HTTPTools
	Around    Surroundings
}

// Agent is one entry of agents.list.
type Agent struct {
	ID        string
	Tools     Tools
	Subagents AgentSubagents
}

// Surroundings is what the program knows and the file does not say.
type Surroundings struct {
	// Confined says whether the session of a caller runs in a sandbox, and whether nothing in that can be written to; nil:
	// what the caller states counts alone. A caller that says it is confined is.
	Confined func(toolward.Caller) (yes, readOnly bool)
	// WhyConfined says by what mode a session runs in a sandbox, for people; may be nil.
	WhyConfined func(toolward.Caller) string
	// ClientTools are names of tools that clients may bring along.
	ClientTools []string
	// Channels are the ids of the chat channels that are registered; nil stands for those built in.
	Channels []string
	// Admits says why a tool whose name is sound may not be registered all the same; nil: nothing is against any.
	Admits func(*toolward.Tool) error
}

// Tools is the section "tools", of the whole gateway and of one agent.
type Tools struct {
	Profile    string                   `json:"profile,omitempty" jsonschema:"list to start from: minimal, coding, messaging or full"`
	Allow      []string                 `json:"allow,omitempty" jsonschema:"names, globs, groups, plug-in ids; empty: everything"`
	AlsoAllow  []string                 `json:"alsoAllow,omitzero" jsonschema:"added to the profile; never restricts; not together with allow"`
	Deny       []string                 `json:"deny,omitempty" jsonschema:"the same; wins over allow"`
	ByProvider map[string]ProviderTools `json:"byProvider,omitempty" jsonschema:"lists for one provider, or provider/model, of models; the most exact entry counts alone"`
	Exec       Exec                     `json:"exec,omitzero" jsonschema:"policy for commands"`
	FS         FS                       `json:"fs,omitzero" jsonschema:"policy for files"`
	Sandbox    Sandbox                  `json:"sandbox,omitzero" jsonschema:"tools of sandboxed sessions"`

	Subagents          Subagents `json:"subagents,omitzero" jsonschema:"tools of sub-agents; of the gateway only"`
	UnmatchedAllowlist string    `json:"unmatchedAllowlist,omitempty" jsonschema:"strip (default): a list of a group that names only plug-ins that are not there is ignored; closed: it leaves nothing; of the gateway only"`
	SelfLimit          []string  `json:"selfLimit,omitempty" jsonschema:"tools that the agent gives up for itself, not for its sub-agents; of agents only"`
}

// lists are the lists of the scope.
func (t *Tools) lists() Lists { return Lists{t.Allow, t.AlsoAllow, t.Deny} }

// ProviderTools is one entry of byProvider.
type ProviderTools struct {
	Profile   string   `json:"profile,omitempty" jsonschema:"as tools.profile, for these models"`
	Allow     []string `json:"allow,omitzero" jsonschema:"as tools.allow"`
	AlsoAllow []string `json:"alsoAllow,omitzero" jsonschema:"as tools.alsoAllow"`
	Deny      []string `json:"deny,omitzero" jsonschema:"as tools.deny"`
}

func (t *ProviderTools) lists() Lists { return Lists{t.Allow, t.AlsoAllow, t.Deny} }

// Lists is one scope of lists. An absent list and an empty one are not the same everywhere.
type Lists struct {
	Allow     []string `json:"allow,omitzero" jsonschema:"names, globs, groups, plug-in ids; empty: everything"`
	AlsoAllow []string `json:"alsoAllow,omitzero" jsonschema:"named besides everything else; never restricts"`
	Deny      []string `json:"deny,omitzero" jsonschema:"the same; wins over allow"`
}

// Sandbox is tools.sandbox.
type Sandbox struct {
	Tools SandboxLists `json:"tools,omitzero" jsonschema:"lists for sandboxed sessions"`
}

// SandboxLists are the lists of sandboxed sessions. A list replaces that of the wider scope, even if it is empty.
type SandboxLists struct {
	Allow     []string `json:"allow,omitzero" jsonschema:"replaces the default list; empty: everything"`
	AlsoAllow []string `json:"alsoAllow,omitzero" jsonschema:"added to the list in force"`
	Deny      []string `json:"deny,omitzero" jsonschema:"replaces the default list"`
	AlsoDeny  []string `json:"alsoDeny,omitzero" jsonschema:"added to the list in force"`
}

// Subagents is tools.subagents.
type Subagents struct {
	Tools   Lists `json:"tools,omitzero" jsonschema:"exact names in allow and alsoAllow are taken off the default deny list"`
	Inherit *bool `json:"inherit,omitempty" jsonschema:"a sub-agent has no tool that its parent lacks; default true"`
}

// SubagentDefaults is agents.defaults.subagents.
type SubagentDefaults struct {
	MaxSpawnDepth *float64 `json:"maxSpawnDepth,omitempty" jsonschema:"levels of sub-agents; those of the last level spawn none; default 1"`
}

// Channel is channels.<id>.
type Channel struct {
	Groups   map[string]Group   `json:"groups,omitzero" jsonschema:"chat groups by id; * stands for all others"`
	Accounts map[string]Account `json:"accounts,omitempty" jsonschema:"accounts of the channel by id"`
}

// Account is one account of a channel. Its groups replace those of the channel.
type Account struct {
	Groups map[string]Group `json:"groups,omitzero" jsonschema:"as groups of the channel, which they replace"`
}

// Group is one chat group.
type Group struct {
	Tools         *Lists  `json:"tools,omitempty" jsonschema:"lists for everybody in the group"`
	ToolsBySender Senders `json:"toolsBySender,omitempty" jsonschema:"lists for one sender: id:…, e164:…, username:…, name:…, or *"`
}

// HTTPTools is gateway.tools: what the HTTP tool endpoint offers.
type HTTPTools struct {
	Allow []string `json:"allow,omitempty" jsonschema:"exact names of tools that the endpoint denies by default"`
	Deny  []string `json:"deny,omitempty" jsonschema:"names, globs, groups; wins over allow"`
}

// Exec is the policy for commands, tools.exec.
type Exec struct {
	Security   string     `json:"security,omitempty" jsonschema:"which commands may run: deny, allowlist (default) or full"`
	Ask        string     `json:"ask,omitempty" jsonschema:"when people are asked: off, on-miss (default) or always"`
	ApplyPatch ApplyPatch `json:"applyPatch,omitzero" jsonschema:"which models get the tool apply_patch"`
}

// ApplyPatch is tools.exec.applyPatch.
type ApplyPatch struct {
	Enabled       *bool    `json:"enabled,omitempty" jsonschema:"offer apply_patch to models; default false"`
	WorkspaceOnly *bool    `json:"workspaceOnly,omitempty" jsonschema:"refuse patches outside the workspace; default true"`
	AllowModels   []string `json:"allowModels,omitzero" jsonschema:"provider/model, or the model alone for openai; empty: all of openai"`
}

// FS is the policy for files, tools.fs.
type FS struct {
	WorkspaceOnly *bool `json:"workspaceOnly,omitempty" jsonschema:"refuse files outside the workspace; default false"`
}

// AgentSubagents is agents.list[].subagents.
type AgentSubagents struct {
	OwnTools bool `json:"ownTools,omitempty" jsonschema:"as a sub-agent it keeps its own tools, whatever its parent lacks; default false"`
}

// Senders are the lists of single senders: keys are id:…, e164:…, username:…, name:…, * or a bare id. Of keys that
// are equal once they are normalized the first one of the file counts.
type Senders map[string]Lists

// UnmarshalJSON keeps the first of equal keys, which a map could not tell from the others.
func (s *Senders) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return fmt.Errorf("toolsBySender: expected an object")
	}
	*s = Senders{}
	seen := map[senderKey]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		var lists Lists
		if err := d.Decode(&lists); err != nil {
			return err
		}
		key, ok := parseSenderKey(name)
		key.untyped = false
		if ok && seen[key] {
			continue
		}
		seen[key] = true
		(*s)[name] = lists
	}
	_, err := d.Token()
	return err
}
