package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway/installation"
)

type installCommand struct {
	Client   string `arg:"" optional:"" enum:"${clients}," default:"" help:"The agent: ${clients}."`
	System   bool   `help:"Give the gateway a user of its own on this machine, instead (needs root)."`
	User     string `help:"With --system: whose agents are guarded; default: who called sudo." placeholder:"NAME"`
	Project  string `help:"Install for this project only, instead of for all of this user's." type:"existingdir"`
	Managed  bool   `help:"Install for everybody on this machine, so that no project can switch it off (needs root)."`
	Preset   string `help:"strict: writes ask. workspace: writes inside the workspace run at level normal." enum:",strict,workspace" default:""`
	Commands string `help:"For this agent, strict: commands ask that exec-approvals.json does not list. developer: reads in the workspace, builds, tests, formatters and version control run, and sandboxes fetch from package registries." enum:",strict,developer" default:""`
	Hook     string `help:"The hook program; default: found beside this one." type:"path"`
	Yes      bool   `short:"y" help:"Do not ask; the difference is printed all the same."`
}

// Run puts the hook into the client's settings, after showing the difference.
func (c *installCommand) Run(inv *invocation) error {
	switch {
	case c.System:
		return c.system(inv)
	case c.User != "":
		return &exitErr{exitUsage, errors.New("--user goes with --system"), ""}
	case c.Client == "":
		return errNoClient
	}
	if c.Managed && (c.Preset != "" || c.Commands != "") {
		return &exitErr{exitUsage, errors.New("presets are each person's own: --managed writes none"), "without sudo: toolward install " + c.Client + " --preset … --commands …"}
	}
	if err := inv.forEverybody(c.Managed, "install", c.Client); err != nil {
		return err
	}
	file, err := inv.file()
	if err != nil {
		return err
	}
	target, err := targetOf(c.Client, c.Project, c.Managed)
	if err != nil {
		return err
	}
	target.Hook = c.Hook
	plan, err := installation.PlanInstall(inv, inv.home, file, target)
	if errors.Is(err, installation.ErrTemporary) {
		return &exitErr{exitError, err, "install it first: go install ./cmd/..."}
	}
	if err != nil {
		return err
	}
	if err := applyPlan(inv, plan, c.Yes, "already installed"); err != nil {
		return err
	}
	if c.Managed {
		return inv.done("installed", fmt.Sprintf("Toolward stands in front of %s for everybody on this machine. Prove it: toolward doctor", c.Client))
	}
	if err := choosePresets(inv, c.Client, config.Presets{Files: c.Preset, Commands: c.Commands}, c.Yes); err != nil {
		return err
	}
	if err := inv.done("installed", fmt.Sprintf("Toolward stands in front of %s. Prove it: toolward doctor", c.Client)); err != nil {
		return err
	}
	return inv.offerReport(!c.Yes)
}

// forEverybody makes a command for everybody on this machine one about the right person's gateway.
func (inv *invocation) forEverybody(managed bool, command, client string) (err error) {
	if !managed {
		return nil
	}
	inv.home, err = installation.ForEverybody(inv.homeGiven, inv.home)
	again := "sudo toolward " + command + " " + client + " --managed"
	switch {
	case errors.Is(err, installation.ErrNotRoot):
		return &exitErr{exitError, err, again}
	case errors.Is(err, installation.ErrWhose):
		return &exitErr{exitError, err, "from that person's account: " + again + "; or name the home: toolward --home DIR " + command + " " + client + " --managed"}
	}
	return err
}

var errNoClient = &exitErr{exitUsage, errors.New("which agent? name one, or use --system for the gateway itself"), "toolward install --help"}

// targetOf is what a command line means.
func targetOf(client, project string, managed bool) (t installation.Target, err error) {
	t = installation.Target{Client: client, Managed: managed}
	if project != "" {
		t.Project, err = filepath.Abs(project)
	}
	return t, err
}

// applyPlan shows a difference, asks, and makes the change.
func applyPlan(inv *invocation, plan *installation.Plan, yes bool, unchanged string) error {
	if !plan.Changed() {
		fmt.Fprintf(inv.words(), "%s: %s.\n", plan.Path, unchanged)
		return nil
	}
	fmt.Fprintf(inv.words(), "%s\n", display.Block(plan.Diff))
	for _, note := range plan.Notes {
		fmt.Fprintln(inv.words(), "note:", note)
	}
	if !yes && !confirm(inv.stdin, inv.stderr, "Change "+plan.Path+"?") {
		return &exitErr{exitError, errors.New("nothing was changed"), "answer y, or use --yes"}
	}
	return plan.Apply()
}

type uninstallCommand struct {
	Client  string `arg:"" optional:"" enum:"${clients}," default:"" help:"The agent: ${clients}."`
	System  bool   `help:"Take back what install --system has made (needs root)."`
	Purge   bool   `help:"With --system: the state and the record, too."`
	Project string `help:"From this project's settings." type:"existingdir"`
	Managed bool   `help:"From the machine's managed settings."`
	Yes     bool   `short:"y" help:"Do not ask."`
}

// Run takes the hook out of the client's settings.
func (c *uninstallCommand) Run(inv *invocation) error {
	switch {
	case c.System:
		return c.system(inv)
	case c.Purge:
		return &exitErr{exitUsage, errors.New("--purge goes with --system"), ""}
	case c.Client == "":
		return errNoClient
	}
	if err := inv.forEverybody(c.Managed, "uninstall", c.Client); err != nil {
		return err
	}
	file, err := inv.file()
	if err != nil {
		return err
	}
	target, err := targetOf(c.Client, c.Project, c.Managed)
	if err != nil {
		return err
	}
	plan, err := installation.PlanUninstall(inv.home, file, target)
	if err != nil {
		return err
	}
	if err := applyPlan(inv, plan, c.Yes, "there is nothing of Toolward's in it"); err != nil || !inv.json {
		return err
	}
	return inv.done("uninstalled", "")
}
