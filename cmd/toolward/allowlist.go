package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/titanous/json5"

	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/display"
)

type approvalsGetCommand struct{}

// Run shows exec-approvals.json.
func (approvalsGetCommand) Run(inv *invocation) error {
	list, err := inv.daemon().Allowlist(inv)
	if err != nil {
		return err
	}
	return inv.printAllowlist(list)
}

func (inv *invocation) printAllowlist(list local.Allowlist) error {
	if inv.json {
		return inv.printJSON(list)
	}
	answer, err := list.Read()
	if err != nil {
		return err
	}
	fmt.Fprintf(inv.stdout, "%s\nhash %s\n", display.Line(answer.Path), answer.Hash)
	if answer.Corrupt != "" {
		fmt.Fprintf(inv.stdout, "CORRUPT: %s\nAll commands are refused until you mend or replace it.\n", display.Line(answer.Corrupt))
		return nil
	}
	for _, line := range answer.File.Lines() {
		fmt.Fprintln(inv.stdout, display.Line(line))
	}
	for _, problem := range answer.Problems {
		fmt.Fprintf(inv.stdout, "left out: %s\n", display.Line(problem))
	}
	return nil
}

type approvalsSetCommand struct {
	File  string `help:"File with the new content." xor:"from" required:""`
	Stdin bool   `help:"Read the new content from standard input." xor:"from" required:""`
	Base  string `help:"Hash of the content that the new one was made from; default: the present one."`
}

// Run replaces exec-approvals.json.
func (c *approvalsSetCommand) Run(inv *invocation) error {
	content, err := c.read(inv.stdin)
	if err != nil {
		return err
	}
	var value any
	if err := json5.Unmarshal(content, &value); err != nil {
		return &exitErr{exitUnsound, fmt.Errorf("the new content is neither JSON nor JSON5: %w", err), "nothing was changed"}
	}
	file := json.RawMessage(content)
	if !json.Valid(content) {
		if file, err = json.Marshal(value); err != nil {
			return err
		}
	}
	list, err := inv.daemon().ReplaceAllowlist(inv, file, c.Base)
	if err != nil {
		return err
	}
	return inv.printAllowlist(list)
}

func (c *approvalsSetCommand) read(stdin io.Reader) ([]byte, error) {
	if c.Stdin {
		return io.ReadAll(io.LimitReader(stdin, 2<<20))
	}
	return os.ReadFile(c.File)
}

type allowlistCommand struct {
	Add    allowlistAddCommand    `cmd:"" help:"Let commands of a program run without a question."`
	Remove allowlistRemoveCommand `cmd:"" help:"Take that back."`
}

type allowlistAddCommand struct {
	Pattern string   `arg:"" help:"Path of the program; * and ? stand for parts of it."`
	Agent   string   `help:"For this agent only." default:"*"`
	Effects []string `help:"What it may do: read, write, network; default: as the preset says."`
	Argv    []string `help:"Only with exactly these words: the program and its arguments, separated by commas."`
	Machine bool     `help:"On the machine also where other commands run in a sandbox."`
}

// Run adds an entry.
func (c *allowlistAddCommand) Run(inv *invocation) error {
	entry := local.AllowlistEntry{Agent: c.Agent, Pattern: c.Pattern, Effects: c.Effects, Argv: c.Argv}
	if c.Machine {
		entry.Host = local.OnMachine
	}
	change, err := inv.daemon().AllowProgram(inv, entry)
	if err != nil {
		return err
	}
	return inv.printChange(change, "Already allowlisted.")
}

type allowlistRemoveCommand struct {
	Pattern string `arg:"" help:"Pattern of the entry, or its id."`
	Agent   string `help:"Agent under whose name it stands." default:"*"`
}

// Run removes an entry.
func (c *allowlistRemoveCommand) Run(inv *invocation) error {
	change, err := inv.daemon().DisallowProgram(inv, c.Agent, c.Pattern)
	if err != nil {
		return err
	}
	if !change.Changed && !inv.json {
		return &exitErr{exitError, errors.New("pattern not found"), "toolward approvals get lists them"}
	}
	return inv.printChange(change, "")
}

func (inv *invocation) printChange(change local.AllowlistChange, unchanged string) error {
	if inv.json {
		return inv.printJSON(change)
	}
	if !change.Changed {
		fmt.Fprintln(inv.stdout, unchanged)
		return nil
	}
	fmt.Fprintln(inv.stdout, display.Line(strings.Join(change.Changes, "; ")))
	return nil
}
