package config

import (
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
)

// Exec is tools.exec, of the gateway and of agents. Who is asked is policy's part; which commands need no question is
// package command's.
type Exec struct {
	visible.Exec
	command.Config
	Shell       string   `json:"shell,omitempty" jsonschema:"absolute path of the shell for what is run as text; default bash, else sh; of the gateway only, from the next start"`
	PathPrepend []string `json:"pathPrepend,omitempty" jsonschema:"absolute directories in front of the search path; of the gateway only, from the next start"`
	Light       *bool    `json:"lightConfinement,omitempty" jsonschema:"keys, Toolward's own files, settings that other programs obey and other processes are kept from commands of this machine that no person saw; default true; of the gateway only, from the next start"`
}

// withDefaults fills in what the gateway's section leaves out.
func (e Exec) withDefaults() Exec {
	if e.Security == "" {
		e.Security = string(modes.SecurityAllowlist)
	}
	if e.Ask == "" {
		e.Ask = string(modes.AskOnMiss)
	}
	if e.Preset == "" {
		e.Preset = command.Strict
	}
	return e
}

// Policy is the part that policy compiles.
func (t *Tools) Policy() visible.Tools {
	p := t.Tools
	p.Exec = t.Exec.Exec
	return p
}

// Commands is the part that package command judges commands by.
func (f *File) Commands() command.Configuration {
	c := command.Configuration{
		Gateway: f.Tools.Exec.Config, Agents: map[string]command.Config{},
		Writes:   f.TEG.Preset == policy.PresetWorkspace,
		Elevated: f.Tools.Elevated, AgentElevated: map[string]*command.ElevatedConfig{},
		ElevatedDefault: f.Agents.Defaults.ElevatedDefault,
	}
	for i := range f.Agents.List {
		a := &f.Agents.List[i]
		if id := strings.ToLower(strings.TrimSpace(a.ID)); id != "" {
			c.Agents[id], c.AgentElevated[id] = a.Tools.Exec.Config, &a.Tools.Elevated
		}
	}
	return c
}

// Builtin is the part that the built-in tools are made with.
func (f *File) Builtin() builtin.Config {
	c := f.Limits.Tools
	c.Shell, c.PathPrepend = f.Tools.Exec.Shell, f.Tools.Exec.PathPrepend
	c.EnforceText = f.Bridge.Enforces()
	return c
}

// ConfinesLightly reports whether commands of this machine that no person saw are confined.
func (f *File) ConfinesLightly() bool { return f.Tools.Exec.Light == nil || *f.Tools.Exec.Light }

// checkCommands checks the settings of commands.
func checkCommands(f File) (errs []error) {
	section := func(at string, t *Tools) {
		for _, wrong := range append(t.Exec.Config.Check(), t.Elevated.Check()...) {
			errs = append(errs, keyError{at + wrong.Key, wrong.Text})
		}
	}
	section("tools.", &f.Tools)
	for i := range f.Agents.List {
		t, at := &f.Agents.List[i].Tools, fmt.Sprintf("agents.list[%d].tools.", i)
		section(at, t)
		if t.Exec.Shell != "" {
			errs = append(errs, keyError{at + "exec.shell", "an agent has no shell of its own: write it in tools.exec of the gateway"})
		}
		if t.Exec.Light != nil {
			errs = append(errs, keyError{at + "exec.lightConfinement", "it is for commands of all agents: write it in tools.exec of the gateway"})
		}
		if len(t.Exec.PathPrepend) > 0 {
			errs = append(errs, keyError{at + "exec.pathPrepend", "an agent has no search path of its own: write it in tools.exec of the gateway"})
		}
	}
	if _, err := command.ParseElevatedLevel(f.Agents.Defaults.ElevatedDefault); err != nil {
		errs = append(errs, keyError{"agents.defaults.elevatedDefault", fmt.Sprintf("%q: write off, on, ask or full", f.Agents.Defaults.ElevatedDefault)})
	}
	return errs
}

// describeCommands tells editors the words of a section "tools".
func describeCommands(tools *jsonschema.Schema) {
	exec := tools.Properties["exec"]
	for name, list := range map[string][]any{
		"security": {"deny", "allowlist", "full"}, "ask": {"off", "on-miss", "always"},
		"host": {"gateway", "sandbox"}, "preset": {"strict", "developer"},
	} {
		exec.Properties[name].Enum = list
	}
	rule := exec.Properties["rules"].Items.Properties
	rule["decision"].Enum = []any{"allow", "prompt", "forbidden"}
	word := rule["prefix"].Items
	rule["prefix"].Items = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, word}}
}
