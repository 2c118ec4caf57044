package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway/trial"
)

type shellCommand struct {
	Explain  shellExplainCommand  `cmd:"" help:"Say what a command would start and do, and what an allowlist makes of it. Runs nothing."`
	Profiles shellProfilesCommand `cmd:"" help:"Show what is known of programs and their arguments."`
}

type shellExplainCommand struct {
	Command   string `arg:"" help:"The command, as one word; - reads it from standard input."`
	Agent     string `help:"The agent that runs it." default:"main"`
	Preset    string `help:"What runs besides the entries: strict or developer; default what tools.exec.preset says." default:"" enum:",strict,developer"`
	Workspace string `help:"The agent's own directory; default the present one." type:"existingdir" default:"."`
	Workdir   string `help:"Where the command starts; default the workspace." type:"existingdir"`
}

// Run explains a command without the gateway, by the files of this machine, as a gateway would judge it.
func (c *shellExplainCommand) Run(inv *invocation) error {
	if c.Command == "-" {
		text, err := readArgument("@-", inv.stdin)
		if err != nil {
			return err
		}
		c.Command = text
	}
	candidate, err := inv.candidate("")
	if err != nil {
		return err
	}
	err = c.explain(inv, candidate)
	return errors.Join(err, candidate.Close())
}

func (c *shellExplainCommand) explain(inv *invocation, candidate *trial.Candidate) error {
	explained, err := candidate.Command(inv, trial.Asked{Command: c.Command, Agent: c.Agent, Preset: c.Preset, Workspace: c.Workspace, Workdir: c.Workdir})
	if errors.Is(err, trial.ErrCorrupt) {
		return &exitErr{exitUnsound, err, "until it is mended every command is refused"}
	}
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(explained)
	}
	inv.printCommand(c.Command, explained)
	return nil
}

var outcomeSentences = map[toolward.Verdict]string{
	toolward.Allow: "It runs without a question.",
	toolward.Ask:   "A person is asked.",
	toolward.Deny:  "It is refused.",
}

// printCommand prints a command as people are shown it when they are asked.
func (inv *invocation) printCommand(command string, c *trial.Command) {
	fmt.Fprintln(inv.stdout, display.Block(command))
	if c.Judged != nil {
		inv.printOutline("", c.Outline())
	}
	for _, r := range c.Reasons {
		fmt.Fprintf(inv.stdout, "because %s: %s\n", display.Line(r.Layer), display.Line(r.Text))
	}
	fmt.Fprintln(inv.stdout, outcomeSentences[c.Verdict])
}

// printOutline prints what a call would do.
func (inv *invocation) printOutline(indent string, o *display.Outline) {
	for _, row := range o.Rows(terminalWidth - len(indent)) {
		fmt.Fprintln(inv.stdout, indent+row.Text)
	}
}

// terminalWidth is how many columns one-shot commands print at most where they fold lines.
const terminalWidth = 100

type shellProfilesCommand struct {
	Program string `arg:"" optional:"" help:"Show one program in full."`
}

// Run lists profiles, or shows the text of one.
func (c *shellProfilesCommand) Run(inv *invocation) error {
	if c.Program != "" {
		return c.one(inv)
	}
	list := trial.Programs()
	if inv.json {
		return inv.printJSON(map[string]any{"profiles": list})
	}
	return inv.table("PROGRAM\tSUBCOMMANDS\tOPTIONS\tOTHER NAMES", func(row func(...any)) {
		for _, p := range list {
			row(p.Names[0], p.Commands, p.Options, strings.Join(p.Names[1:], " "))
		}
	})
}

func (c *shellProfilesCommand) one(inv *invocation) error {
	p, ok := trial.ProgramOf(c.Program)
	if !ok {
		return &exitErr{exitError, errors.New("there is no profile of " + display.Line(c.Program)), "its commands are judged by their path alone, and ask when the session is tense"}
	}
	if inv.json {
		return inv.printJSON(map[string]any{"names": p.Names, "file": p.File, "source": p.Source})
	}
	fmt.Fprint(inv.stdout, p.Source)
	return nil
}
