package main

import "github.com/toolward/toolward/client/terminal"

type tuiCommand struct{}

// Run shows the terminal console.
func (tuiCommand) Run(inv *invocation) error {
	return terminal.Run(inv, inv.daemon(), inv.stdin, inv.stdout)
}
