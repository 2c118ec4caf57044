package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/policy"
)

// Presets are those that an installation chooses: of the whole gateway for files, of the agent for commands. "" leaves
// what is.
type Presets struct{ Files, Commands string }

// Write changes the source of a configuration where the presets differ, and says what it changed.
func (p Presets) Write(source []byte, f *File, agent string) (changed []byte, said []string, err error) {
	changed = source
	set := func(key string, value any, words string) {
		if err == nil {
			changed, err = Set(changed, key, value)
			said = append(said, words)
		}
	}
	if p.Files != "" && f.TEG.Preset != policy.Preset(p.Files) {
		set("teg.preset", p.Files, fmt.Sprintf("teg.preset is %q", p.Files))
	}
	commands := f.Commands()
	if p.Commands == "" || commands.For(agent).Preset == command.Preset(p.Commands) {
		return changed, said, err
	}
	words := fmt.Sprintf("tools.exec.preset of the agent %s is %q", agent, p.Commands)
	entry := map[string]any{"id": agent, "tools": map[string]any{"exec": map[string]any{"preset": p.Commands}}}
	list := f.Agents.List
	switch i := slices.IndexFunc(list, func(a Agent) bool { return strings.EqualFold(strings.TrimSpace(a.ID), agent) }); {
	case i >= 0:
		set(fmt.Sprintf("agents.list[%d].tools.exec.preset", i), p.Commands, words)
	case len(list) > 0:
		set(fmt.Sprintf("agents.list[%d]", len(list)), entry, words)
	default:
		set("agents.list", []any{entry}, words)
	}
	return changed, said, err
}
