package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway"
	"github.com/toolward/toolward/importer"
)

type importCommand struct {
	Product string `arg:"" enum:"openclaw,claude-code,codex,gemini" help:"openclaw, claude-code, codex or gemini."`
	Path    string `arg:"" optional:"" help:"A settings file, the product's directory, or a project; default: the product's own places." type:"path"`
	Agent   string `help:"Agent that the settings are for; default the product's name. OpenClaw names its agents itself." placeholder:"ID"`
	Write   bool   `help:"Put it into the configuration file, where it waits for a person like every change."`
}

// Run prints the configuration with what another product's settings ask for, and what could not be carried over.
func (c *importCommand) Run(inv *invocation) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	plan, err := importer.Read(c.Product, c.Agent, importer.Where{Home: home, System: gateway.SystemDir(), Path: c.Path})
	if err != nil {
		if malformed, ok := errors.AsType[*importer.Malformed](err); ok {
			return &exitErr{exitUnsound, malformed, "nothing was imported; mend the file and try again"}
		}
		return err
	}
	source, err := os.ReadFile(inv.configPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	tools, err := gateway.ShippedTools()
	if err != nil {
		return err
	}
	merged, err := plan.Merge(inv.configPath(), source, tools, gateway.Surroundings())
	var wrong config.Problems
	if errors.As(err, &wrong) {
		return &exitErr{exitUnsound, err, "mend the configuration first"}
	}
	if err != nil {
		return err
	}
	if c.Write {
		return c.write(inv, plan, merged, source)
	}
	return c.print(inv, plan, merged)
}

// importReport is what import prints for programs.
type importReport struct {
	Files         []string `json:"files"`
	Configuration string   `json:"configuration"`
	Written       bool     `json:"written"`
	*importer.Merged
}

func (c *importCommand) print(inv *invocation, plan *importer.Plan, merged *importer.Merged) error {
	if inv.json {
		return inv.printJSON(importReport{plan.Files, string(merged.Source), false, merged})
	}
	if len(merged.Changes) == 0 {
		fmt.Fprintln(inv.stderr, "Nothing to change: the configuration is as strict already.")
	} else if _, err := inv.stdout.Write(merged.Source); err != nil {
		return err
	}
	inv.printLosses(merged)
	return nil
}

// write replaces the file.
func (c *importCommand) write(inv *invocation, plan *importer.Plan, merged *importer.Merged, source []byte) error {
	written := len(merged.Changes) > 0
	if written {
		if err := inv.replaceConfig(source, merged.Source); err != nil {
			return err
		}
	}
	if inv.json {
		return inv.printJSON(importReport{plan.Files, string(merged.Source), written, merged})
	}
	for _, change := range merged.Changes {
		value, err := json.Marshal(change.Value)
		if err != nil {
			return err
		}
		fmt.Fprintf(inv.stdout, "%s: %s\n", change.From, display.Line(change.Key+" = "+string(value)))
	}
	inv.printLosses(merged)
	if !written {
		fmt.Fprintln(inv.stdout, "Nothing to change: the configuration is as strict already.")
		return nil
	}
	fmt.Fprintf(inv.stdout, "Written to %s. A running gateway waits for your yes: toolward config apply\n", inv.configPath())
	return nil
}

// printLosses lists what was not carried over, one line each.
func (inv *invocation) printLosses(merged *importer.Merged) {
	if len(merged.Losses) == 0 {
		return
	}
	fmt.Fprintf(inv.stderr, "Not carried over (%d):\n", len(merged.Losses))
	for _, loss := range merged.Losses {
		fmt.Fprintln(inv.stderr, display.Line(loss.String()))
	}
}
