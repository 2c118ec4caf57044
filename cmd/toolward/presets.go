package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toolward/toolward/config"
)

// choosePresets writes the presets that were named, or that a person at the terminal chooses; with yes those that are proposed, where
// nobody has written any. A running gateway shows the change and waits for a person before it counts, so that no agent that runs
// an installation loosens anything.
func choosePresets(inv *invocation, agent string, chosen config.Presets, yes bool) error {
	source, err := os.ReadFile(inv.configPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	loaded, err := config.Parse(inv.configPath(), source)
	if err != nil {
		return &exitErr{exitUnsound, err, "mend the configuration first"}
	}
	switch {
	case chosen != (config.Presets{}):
	case yes:
		chosen = config.Proposed.Unwritten(source)
	case isTerminal(inv.stdin):
		chosen = askPresets(inv)
	}
	changed, said, err := chosen.Write(source, &loaded.File, agent)
	if err != nil || bytes.Equal(changed, source) {
		return err
	}
	if err := inv.replaceConfig(source, changed); err != nil {
		return err
	}
	fmt.Fprintf(inv.words(), "%s in %s. A running gateway waits for your yes: toolward config apply\n", strings.Join(said, ", "), inv.configPath())
	return nil
}

// askPresets asks a person at the terminal.
func askPresets(inv *invocation) (chosen config.Presets) {
	in := bufio.NewReader(inv.stdin)
	ask := func(question, proposed string, others ...string) string {
		fmt.Fprintf(inv.words(), "%s\n[%s, or keep what is; Enter: %s] ", question, strings.Join(append(others, proposed), "/"), proposed)
		line, err := in.ReadString('\n')
		switch answer := strings.TrimSpace(line); {
		case err == nil && answer == "":
			return proposed
		case err == nil && (answer == proposed || slices.Contains(others, answer)):
			return answer
		}
		return ""
	}
	chosen.Files = ask("Files:\n  strict     every write asks\n  workspace  writes inside the workspace run while the session is calm (proposed)",
		config.Proposed.Files, "strict")
	chosen.Commands = ask("Commands of this agent:\n  strict     every command asks that exec-approvals.json does not list\n"+
		"  developer  reads in the workspace, builds, tests, formatters and version control run while the session is calm;\n"+
		"             what runs in a sandbox fetches from package registries (proposed)",
		config.Proposed.Commands, "strict")
	return chosen
}
