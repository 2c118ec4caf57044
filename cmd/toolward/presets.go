package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
)

// presets are those that an installation chooses: of the whole gateway for files, of the agent for commands. "" leaves
// what is.
type presets struct{ files, commands string }

// choosePresets writes the presets that were named, or that a person at the terminal chooses. A running gateway shows
// the change and waits for a person before it counts.
func choosePresets(inv *invocation, agent string, chosen presets) error {
	source, err := os.ReadFile(inv.configPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	loaded, err := config.Parse(inv.configPath(), source)
	if err != nil {
		return &exitErr{exitUnsound, err, "mend the configuration first"}
	}
	if chosen == (presets{}) && isTerminal(inv.stdin) {
		chosen = askPresets(inv)
	}
	changed, said, err := chosen.write(source, &loaded.File, agent)
	if err != nil || bytes.Equal(changed, source) {
		return err
	}
	if err := os.MkdirAll(inv.home, 0o700); err != nil {
		return err
	}
	if err := replaceFile(inv.configPath(), changed); err != nil {
		return err
	}
	fmt.Fprintf(inv.words(), "%s in %s. A running gateway waits for your yes: toolward config apply\n", strings.Join(said, ", "), inv.configPath())
	return nil
}

// write changes the source of a configuration where the presets differ, and says what it changed.
func (p presets) write(source []byte, f *config.File, agent string) (changed []byte, said []string, err error) {
	changed = source
	set := func(key string, value any, words string) {
		if err == nil {
			changed, err = config.Set(changed, key, value)
			said = append(said, words)
		}
	}
	if p.files != "" && f.TEG.Preset != policy.Preset(p.files) {
		set("teg.preset", p.files, fmt.Sprintf("teg.preset is %q", p.files))
	}
	commands := f.Commands()
	if p.commands == "" || commands.For(agent).Preset == command.Preset(p.commands) {
		return changed, said, err
	}
	words := fmt.Sprintf("tools.exec.preset of the agent %s is %q", agent, p.commands)
	entry := map[string]any{"id": agent, "tools": map[string]any{"exec": map[string]any{"preset": p.commands}}}
	list := f.Agents.List
	switch i := slices.IndexFunc(list, func(a config.Agent) bool { return strings.EqualFold(strings.TrimSpace(a.ID), agent) }); {
	case i >= 0:
		set(fmt.Sprintf("agents.list[%d].tools.exec.preset", i), p.commands, words)
	case len(list) > 0:
		set(fmt.Sprintf("agents.list[%d]", len(list)), entry, words)
	default:
		set("agents.list", []any{entry}, words)
	}
	return changed, said, err
}

// askPresets asks a person at the terminal.
func askPresets(inv *invocation) (chosen presets) {
	in := bufio.NewReader(inv.stdin)
	ask := func(question string, answers ...string) string {
		fmt.Fprintf(inv.words(), "%s\n[%s, Enter keeps what is] ", question, strings.Join(answers, "/"))
		line, err := in.ReadString('\n')
		if answer := strings.TrimSpace(line); err == nil && slices.Contains(answers, answer) {
			return answer
		}
		return ""
	}
	chosen.files = ask("Files:\n  strict     every write asks\n  workspace  writes inside the workspace run while the session is calm (proposed)",
		string(policy.PresetStrict), string(policy.PresetWorkspace))
	chosen.commands = ask("Commands of this agent:\n  strict     every command asks that exec-approvals.json does not list\n"+
		"  developer  reads in the workspace, builds, tests, formatters and version control run while the session is calm (proposed)",
		string(command.Strict), string(command.Developer))
	return chosen
}
