package main

import (
	"context"
	"errors"
	"os"

	"github.com/toolward/toolward/bridge/hookclient"
	"github.com/toolward/toolward/gateway"
)

type mcpCommand struct {
	Agent     string `required:"" help:"The agent that calls."`
	Workspace string `help:"The directory that is the agent's own; default this directory." type:"path"`
}

// Run joins standard input and output to the daemon.
func (c *mcpCommand) Run(inv *invocation) error {
	if c.Workspace == "" {
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		c.Workspace = dir
	}
	err := gateway.JoinMCP(inv, inv.home, c.Agent, c.Workspace, inv.stdin, inv.stdout)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, gateway.ErrNotRunning):
		return &exitErr{code: exitNoDaemon, err: err} // it says itself how to start it
	default:
		return err
	}
}

type hookCommand struct {
	Client string   `arg:"" help:"The guarded agent, such as claude-code."`
	Rest   []string `arg:"" optional:"" passthrough:""`
}

// Run is toolward-hook in the big binary, slower to start.
func (c *hookCommand) Run(inv *invocation) error {
	args := append([]string{c.Client, "--home", inv.home}, c.Rest...) // a later --home wins: what install wrote
	if code := hookclient.Main(args); code != 0 {
		return &exitErr{code: code, err: errors.New("")}
	}
	return nil
}
