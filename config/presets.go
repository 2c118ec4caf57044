package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/netguard/packs"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/sandbox/settings"
)

// Presets are those that an installation chooses: of the whole gateway for files, of the agent for commands. "" leaves
// what is. With the preset developer goes what builds need of the network, where nobody has written anything about it.
type Presets struct{ Files, Commands string }

// Proposed are the presets that an installation proposes.
var Proposed = Presets{Files: string(policy.PresetWorkspace), Commands: string(command.Developer)}

// Unwritten are the presets if a configuration does not speak of any; otherwise none, so that nothing that somebody has written, or
// written in a comment, is decided for him.
func (p Presets) Unwritten(source []byte) Presets {
	if bytes.Contains(source, []byte("preset")) {
		return Presets{}
	}
	return p
}

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
	list := f.Agents.List
	i := slices.IndexFunc(list, func(a Agent) bool { return strings.EqualFold(strings.TrimSpace(a.ID), agent) })
	commands := f.Commands()
	changes := p.Commands != "" && commands.For(agent).Preset != command.Preset(p.Commands)
	fetches := p.Commands == string(command.Developer) && !f.saysNetwork(i)
	if !changes && !fetches || err != nil {
		return changed, said, err
	}
	switch entry := map[string]any{"id": agent}; {
	case i >= 0:
	case len(list) > 0:
		i = len(list)
		changed, err = Set(changed, fmt.Sprintf("agents.list[%d]", i), entry)
	default:
		i = 0
		changed, err = Set(changed, "agents.list", []any{entry})
	}
	if changes {
		set(fmt.Sprintf("agents.list[%d].tools.exec.preset", i), p.Commands, fmt.Sprintf("tools.exec.preset of the agent %s is %q", agent, p.Commands))
	}
	if fetches {
		set(fmt.Sprintf("agents.list[%d].sandbox.network", i), "egress", fmt.Sprintf("sandbox.network of the agent %s is egress", agent))
		set(fmt.Sprintf("agents.list[%d].sandbox.egress.packs", i), packs.Names(),
			"its sandboxes fetch from package registries without a question (sandbox.egress.packs: strike out what they need not reach)")
	}
	return changed, said, err
}

// saysNetwork reports whether somebody has written what sandboxes reach: for all agents, or for that of a place in the list.
// What a person has written is not widened by a preset.
func (f *File) saysNetwork(agent int) bool {
	written := func(c *settings.Config) bool {
		return c.Network != nil || c.Docker.Network != nil || !reflect.ValueOf(c.Egress).IsZero()
	}
	return written(&f.Agents.Defaults.Sandbox.Config) || agent >= 0 && written(&f.Agents.List[agent].Sandbox)
}
