package visible

import (
	"slices"
)

// Lists of sandboxed sessions when the configuration has none.
var (
	sandboxAllowed = [...]string{
		"exec", "process", "read", "write", "edit", "apply_patch", "image", "sessions_list", "sessions_history",
		"sessions_send", "sessions_spawn", "subagents", "session_status",
	}
	sandboxDenied   = [...]string{"browser", "canvas", "nodes", "cron", "gateway"}
	builtInChannels = [...]string{"telegram", "whatsapp", "discord", "irc", "googlechat", "slack", "signal", "imessage"}
)

// ListSource says where a list of sandboxed sessions comes from.
type ListSource struct {
	Source string `json:"source"` // agent, global or default
	Key    string `json:"key"`    // configuration key to edit
}

// SandboxPolicy is what holds for the sandboxed sessions of one agent: both lists with groups expanded, and where
// each comes from. An empty allow list is everything.
type SandboxPolicy struct {
	Allow       []string   `json:"allow"`
	Deny        []string   `json:"deny"`
	AllowSource ListSource `json:"allowSource"`
	DenySource  ListSource `json:"denySource"`
}

// Omits lists what the default list denies and a list that was written in its place does not: whoever writes one to deny
// something more gives all of that back.
func (p SandboxPolicy) Omits() (tools []string) {
	if p.DenySource.Source == "default" {
		return nil
	}
	l := newList(nil, p.Deny, func(string) bool { return false })
	for _, tool := range slices.Concat(sandboxDenied[:], builtInChannels[:]) {
		if _, denied := l.deny.Match(tool, ""); !denied {
			tools = append(tools, tool)
		}
	}
	return tools
}

// newSandboxPolicy resolves both lists, each for itself: the agent's, else the gateway's, else the default one. agent
// is nil for agents that the configuration does not name.
func newSandboxPolicy(global SandboxLists, agent *SandboxLists, channels []string) SandboxPolicy {
	if agent == nil {
		agent = &SandboxLists{}
	}
	if channels == nil {
		channels = builtInChannels[:]
	}
	var p SandboxPolicy
	p.Allow, p.AllowSource = pickList("allow", agent.Allow, global.Allow, sandboxAllowed[:])
	p.Deny, p.DenySource = pickList("deny", agent.Deny, global.Deny, slices.Concat(sandboxDenied[:], channels))
	if len(p.Allow) > 0 { // an empty list is open; adding to it would close it
		p.Allow = slices.Concat(p.Allow, global.AlsoAllow, agent.AlsoAllow)
	}
	p.Allow = ExpandGroups(p.Allow)
	p.Deny = ExpandGroups(slices.Concat(p.Deny, global.AlsoDeny, agent.AlsoDeny))
	// Reading images is how a model sees its own work; whoever does not want it denies it by name.
	if len(p.Allow) > 0 && !slices.Contains(p.Allow, "image") && !slices.Contains(p.Deny, "image") {
		p.Allow = append(p.Allow, "image")
	}
	return p
}

func pickList(name string, agent, global, standard []string) ([]string, ListSource) {
	key := "tools.sandbox.tools." + name
	switch {
	case agent != nil:
		return agent, ListSource{"agent", "agents.list[]." + key}
	case global != nil:
		return global, ListSource{"global", key}
	}
	return standard, ListSource{"default", key}
}
