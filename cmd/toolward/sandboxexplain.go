package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway/trial"
)

type sandboxExplainCommand struct {
	Session    string `help:"Key of the session; default the main one of the agent." placeholder:"KEY"`
	Agent      string `help:"The agent; default that of the session." placeholder:"ID"`
	Workspace  string `help:"Its directory; default the configured one." type:"path"`
	DockerArgs bool   `help:"Print a command line that makes the same container, and write the filter for system calls that it names."`
}

// Run explains without a gateway: by the file, and by what the gateway has found out about this machine.
func (c *sandboxExplainCommand) Run(inv *invocation) error {
	tried, err := inv.candidate("")
	if err != nil {
		return err
	}
	defer tried.Close()
	x, err := tried.Sandbox(inv, trial.Session{Key: c.Session, Agent: c.Agent, Workspace: c.Workspace, DockerArgs: c.DockerArgs})
	if wrong, ok := errors.AsType[trial.WrongSettings](err); ok {
		return &exitErr{exitUnsound, wrong, "toolward config check"}
	}
	if err != nil {
		return err
	}
	if c.DockerArgs && x.Sandbox.Problem != "" {
		return &exitErr{exitUnsound, errors.New(x.Sandbox.Problem), "see " + trial.SandboxDocs}
	}
	switch {
	case inv.json:
		return inv.printJSON(x)
	case c.DockerArgs:
		fmt.Fprintln(inv.stdout, x.Sandbox.ShellLine())
		return nil
	}
	return inv.printSandbox(x)
}

// printSandbox prints an explanation for people.
func (inv *invocation) printSandbox(x *trial.Sandbox) error {
	s, line := &x.Sandbox, func(name, format string, args ...any) {
		fmt.Fprintf(inv.stdout, "%-12s %s\n", name, display.Line(fmt.Sprintf(format, args...)))
	}
	answer := "is not sandboxed"
	if s.Sandboxed {
		answer = "is sandboxed"
	}
	line("session", "%s of agent %s %s: %s", x.SessionKey, x.AgentID, answer, s.Why)
	line("mode", "%s (%s: %s)", s.Mode, x.Sources["mode"].Level, x.Sources["mode"].Key)
	if s.Decided != nil && !s.Decided.Decided.IsZero() {
		line("", "since %s: %s", s.Decided.Decided.Format(time.DateOnly), s.Decided.Why)
	}
	line("engine", "%s", s.Engine)
	line("scope", "%s", s.Scope)
	line("workspace", "%s (%s), private directories below %s", s.Access, s.AccessWhy, s.WorkspaceRoot)
	if s.Problem != "" {
		line("problem", "%s", s.Problem)
	} else {
		line("name", "%s", s.Name)
		line("directory", "%s, inside %s", s.WorkspaceDir, s.Workdir)
	}
	line("tools", "allow %s (%s: %s)", strings.Join(s.Tools.Allow, " "), s.Tools.Sources["allow"].Source, s.Tools.Sources["allow"].Key)
	line("", "deny %s (%s: %s)", strings.Join(s.Tools.Deny, " "), s.Tools.Sources["deny"].Source, s.Tools.Sources["deny"].Key)
	if len(s.Tools.Omits) > 0 {
		line("warning", "%s replaces the default list, and leaves %s, which that one denies: alsoDeny adds to it instead",
			s.Tools.Sources["deny"].Key, strings.Join(s.Tools.Omits, " "))
	}
	for _, failure := range x.Elevated.Failures {
		line("elevated", "closed by %s", failure["key"])
	}
	for _, name := range s.Blocked {
		line("variable", "%s does not go in", name)
	}
	for _, w := range s.Warnings {
		line("variable", "%s looks odd: %s", w.Name, w.Code)
	}
	line("change", "%s", strings.Join(x.FixIt, ", "))
	fmt.Fprintln(inv.stdout)
	return inv.table("SETTING\tVALUE\tFROM\tKEY", func(row func(...any)) {
		for _, setting := range s.Settings {
			row(setting.Key, cmp.Or(setting.Value, "–"), setting.From.Level, setting.From.Key)
		}
	})
}
