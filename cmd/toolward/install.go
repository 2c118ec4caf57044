package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
)

type installCommand struct {
	Client   string `arg:"" enum:"claude-code" help:"The agent: claude-code."`
	Project  string `help:"Install for this project only, instead of for all of this user's." type:"existingdir"`
	Managed  bool   `help:"Install for everybody on this machine, so that no project can switch it off (needs root)."`
	Preset   string `help:"strict: writes ask. workspace: writes inside the workspace run at level normal." enum:",strict,workspace" default:""`
	Commands string `help:"For this agent, strict: commands ask that exec-approvals.json does not list. developer: reads in the workspace, builds, tests, formatters and version control run." enum:",strict,developer" default:""`
	Hook     string `help:"The hook program; default: found beside this one." type:"path"`
	Yes      bool   `short:"y" help:"Do not ask; the difference is printed all the same."`
}

// Run puts the hook into the client's settings, after showing the difference.
func (c *installCommand) Run(inv *invocation) error {
	setup, err := c.setup(inv)
	if err != nil {
		return err
	}
	plan, err := bridge.PlanInstall(setup)
	if err != nil {
		return err
	}
	if err := applyPlan(inv, plan, c.Yes, "already installed"); err != nil {
		return err
	}
	if err := choosePresets(inv, c.Client, config.Presets{Files: c.Preset, Commands: c.Commands}); err != nil {
		return err
	}
	return inv.done("installed", fmt.Sprintf("Toolward stands in front of %s. Prove it: toolward doctor", c.Client))
}

func (c *installCommand) setup(inv *invocation) (bridge.Setup, error) {
	setup, err := clientSetup(inv, c.Client, c.Project)
	if err != nil {
		return setup, err
	}
	if c.Managed {
		setup.Scope = bridge.ScopeManaged
	}
	if c.Hook != "" {
		setup.Hook = c.Hook
		return setup, nil
	}
	setup.Hook, setup.HookArgs, err = findHook(inv)
	return setup, err
}

// clientSetup is what installing, uninstalling and examining have in common.
func clientSetup(inv *invocation, client, project string) (bridge.Setup, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return bridge.Setup{}, err
	}
	setup := bridge.Setup{
		Client: client, Scope: bridge.ScopeUser, Home: home, State: inv.home,
		ConfigDir: os.Getenv("CLAUDE_CONFIG_DIR"),
	}
	if project != "" {
		setup.Scope = bridge.ScopeProject
		if setup.Project, err = filepath.Abs(project); err != nil {
			return setup, err
		}
	}
	loaded, err := config.Load(inv.configPath())
	if err != nil {
		return setup, &exitErr{exitUnsound, err, "mend the configuration first"}
	}
	setup.EnforceText = loaded.File.Bridge.EnforceText
	setup.ApprovalTimeout = time.Duration(loaded.File.TEG.Approval.TimeoutMs) * time.Millisecond
	return setup, nil
}

// applyPlan shows a difference, asks, and makes the change.
func applyPlan(inv *invocation, plan *bridge.Plan, yes bool, unchanged string) error {
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

// findHook finds the hook program. One in a temporary directory is not installed: once it is gone, every call would be
// refused.
func findHook(ctx context.Context) (program string, args []string, err error) {
	hook, err := companion.Find(ctx, "toolward-hook")
	if errors.Is(err, companion.ErrTemporary) {
		return "", nil, &exitErr{exitError, err, "install it first: go install ./cmd/..."}
	}
	return hook.Path, hook.Args, err
}

type uninstallCommand struct {
	Client  string `arg:"" enum:"claude-code" help:"The agent: claude-code."`
	Project string `help:"From this project's settings." type:"existingdir"`
	Managed bool   `help:"From the machine's managed settings."`
	Yes     bool   `short:"y" help:"Do not ask."`
}

// Run takes the hook out of the client's settings.
func (c *uninstallCommand) Run(inv *invocation) error {
	setup, err := clientSetup(inv, c.Client, c.Project)
	if err != nil {
		return err
	}
	if c.Managed {
		setup.Scope = bridge.ScopeManaged
	}
	plan, err := bridge.PlanUninstall(setup)
	if err != nil {
		return err
	}
	if err := applyPlan(inv, plan, c.Yes, "there is nothing of Toolward's in it"); err != nil || !inv.json {
		return err
	}
	return inv.done("uninstalled", "")
}
