package gateway

import (
	"cmp"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/policy"
)

// tightened says which remembered answers a new configuration takes back: those for tools whose row it makes
// stricter, and those of agents that no longer see the tool. An operator who tightens a row means the answers given
// before, too; left in the store they would come back with the next loosening.
func tightened(before, after config.File, snapshot *policy.Snapshot) func(*approval.Grant) bool {
	return func(g *approval.Grant) bool {
		if tool, _ := snapshot.Find(toolward.Caller{Agent: g.Agent, Owner: true}, g.Tool); tool == nil && !byClient(g.Tool) {
			return true
		}
		if before.TEG.Preset == policy.PresetWorkspace && after.TEG.Preset == policy.PresetStrict && writesFiles(g.Tool) {
			return true
		}
		if g.Tool == "exec" && stricterCommands(before, after, g.Agent) {
			return true
		}
		return stricterFor(g.Tool, before.TEG.Tools, after.TEG.Tools) ||
			stricterFor(g.Tool, agentTools(before, g.Agent), agentTools(after, g.Agent))
	}
}

// byClient reports whether a tool comes with its client's calls and is in no catalog.
func byClient(tool string) bool {
	return strings.Contains(tool, "/") || strings.HasPrefix(tool, "mcp__")
}

// stricterCommands reports whether commands of an agent are judged more strictly than before.
func stricterCommands(before, after config.File, agent string) bool {
	was, is := before.Commands(), after.Commands()
	if is.Stricter(&was, agent) {
		return true
	}
	securityBefore, askBefore := commandModes(before, agent)
	security, ask := commandModes(after, agent)
	return security.StricterThan(securityBefore) || ask.StricterThan(askBefore)
}

// commandModes are the configured modes of an agent.
func commandModes(f config.File, agent string) (modes.Security, modes.Ask) {
	words := f.Tools.Exec.Exec
	for i := range f.Agents.List {
		if own := f.Agents.List[i].Tools.Exec; strings.EqualFold(strings.TrimSpace(f.Agents.List[i].ID), agent) {
			words.Security, words.Ask = cmp.Or(own.Security, words.Security), cmp.Or(own.Ask, words.Ask)
		}
	}
	return modes.Security(words.Security), modes.Ask(words.Ask) // what is not known is the strictest
}

func writesFiles(tool string) bool {
	return tool == "write" || tool == "edit" || tool == "apply_patch"
}

func agentTools(f config.File, agent string) map[string]string {
	for _, a := range f.Agents.List {
		if a.ID == agent {
			return a.TEG.Tools
		}
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
		if policy.Matches([]string{key}, nil, tool, nil) || policy.Matches([]string{name}, nil, tool, nil) {
			return true
		}
	}
	return false
}
