package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/policy/visible"
)

// Tightened says which remembered answers a new configuration takes back: those for tools whose row it makes
// stricter, and those of agents that no longer see the tool. An operator who tightens a row means the answers given
// before, too; left in the store they would come back with the next loosening.
//
// The snapshot is that of the new configuration. stricterCommands reports whether it judges an agent's commands more strictly in
// what package command reads of it.
func Tightened(before, after Config, snapshot *Snapshot, stricterCommands func(agent string) bool) func(agent, tool string) bool {
	return func(agent, tool string) bool {
		if seen, _ := snapshot.Find(toolward.Caller{Agent: agent, Owner: true}, tool); seen == nil && !broughtByClient(tool) {
			return true
		}
		if before.TEG.Preset == PresetWorkspace && after.TEG.Preset != PresetWorkspace && writesFiles(tool) {
			return true
		}
		if tool == "exec" && (stricterCommands(agent) || stricterModes(before, after, agent)) {
			return true
		}
		return stricterFor(tool, before.TEG.Tools, after.TEG.Tools) ||
			stricterFor(tool, before.rowsOf(agent), after.rowsOf(agent))
	}
}

// broughtByClient reports whether a tool comes with its client's calls and is in no catalog.
func broughtByClient(tool string) bool {
	return strings.Contains(tool, "/") || strings.HasPrefix(tool, "mcp__")
}

func writesFiles(tool string) bool {
	return tool == "write" || tool == "edit" || tool == "apply_patch"
}

// stricterModes reports whether fewer commands of an agent run, or more of them ask.
func stricterModes(before, after Config, agent string) bool {
	securityBefore, askBefore := before.modesOf(agent)
	security, ask := after.modesOf(agent)
	return security.StricterThan(securityBefore) || ask.StricterThan(askBefore)
}

// modesOf are the configured modes of an agent. What is not known is the strictest.
func (c *Config) modesOf(agent string) (modes.Security, modes.Ask) {
	words := c.Tools.Exec
	if own := c.agentNamed(agent); own != nil {
		words.Security, words.Ask = cmp.Or(own.Tools.Exec.Security, words.Security), cmp.Or(own.Tools.Exec.Ask, words.Ask)
	}
	return modes.Security(words.Security), modes.Ask(words.Ask)
}

// rowsOf are the classes that the operator changed for one agent.
func (c *Config) rowsOf(agent string) map[string]string {
	if own := c.agentNamed(agent); own != nil {
		return own.TEG.Tools
	}
	return nil
}

// agentNamed is the entry of an agent, however its id is spelled; nil if it has none.
func (c *Config) agentNamed(id string) *Agent {
	if i := slices.IndexFunc(c.Agents, func(a Agent) bool { return visible.Fold(a.ID) == visible.Fold(id) }); i >= 0 {
		return &c.Agents[i]
	}
	return nil
}

// stricterFor reports whether a key that is about the tool was added or made stricter. Keys are a tool, a tool with an
// action, or a glob.
func stricterFor(tool string, before, after map[string]string) bool {
	strictness := map[string]int{"safe": 0, "": 1, "needs_approval": 2, "blocked": 3}
	for key, class := range after {
		if strictness[class] <= strictness[before[key]] {
			continue
		}
		name, _, _ := strings.Cut(key, ".")
		if visible.Matches([]string{key}, nil, tool, nil) || visible.Matches([]string{name}, nil, tool, nil) {
			return true
		}
	}
	return false
}
