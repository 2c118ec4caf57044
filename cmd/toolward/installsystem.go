package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway/installation"
)

// codePatience is how long the first start of a gateway may take.
const codePatience = 20 * time.Second

// system gives the gateway a user of its own.
func (c *installCommand) system(inv *invocation) error {
	if c.Client != "" || c.Project != "" || c.Managed || c.Hook != "" || c.Preset != "" || c.Commands != "" {
		return &exitErr{exitUsage, errors.New("--system is about the gateway alone"), "guard an agent with a second command: toolward install claude-code --managed"}
	}
	person := c.User
	if person == "" {
		person = os.Getenv("SUDO_USER")
	}
	s, err := installation.PlanSystem(person)
	if err != nil {
		return err
	}
	if !c.Yes && len(s.Made) == 0 && !confirm(inv.stdin, inv.stderr, "Give the gateway a user of its own ("+installation.SystemUser+"), for the agents of "+s.Person+"?") {
		return &exitErr{exitError, errors.New("nothing was changed"), "answer y, or use --yes"}
	}
	changed, err := s.Install(inv)
	if err != nil {
		return &exitErr{exitError, err, "what was made stays; the same command goes on when this is mended"}
	}
	if !changed {
		fmt.Fprintf(inv.words(), "It is installed already, for %s.\n", s.Person)
	}
	if !installation.HasSystemd() {
		fmt.Fprintf(inv.words(), "There is no systemd here. Start the gateway as root with:\n%s\n", s.ByHand())
		return inv.done("installed", "The code for your passphrase is shown there, or in "+installation.SystemState+"/setup-code.")
	}
	if err := s.Start(inv, changed); err != nil {
		return &exitErr{exitError, err, "look at: journalctl -u toolward"}
	}
	if changed {
		if code := s.SetupCode(inv, codePatience); code != "" {
			fmt.Fprintf(inv.words(), "Set your passphrase in the console, with this code: %s\n", display.Block(code))
		}
	}
	return inv.done("installed", "The gateway runs as "+installation.SystemUser+", for the agents of "+s.Person+". Guard one: toolward install claude-code --managed")
}

// system takes it back.
func (c *uninstallCommand) system(inv *invocation) error {
	if c.Client != "" || c.Project != "" || c.Managed {
		return &exitErr{exitUsage, errors.New("--system is about the gateway alone"), ""}
	}
	s, err := installation.FindSystem()
	if err != nil {
		return err
	}
	question := "Take the gateway's user, unit and program back? Hooks that ask it refuse every call from then on."
	if c.Purge {
		question += " Its record is deleted."
	}
	if !c.Yes && !confirm(inv.stdin, inv.stderr, question) {
		return &exitErr{exitError, errors.New("nothing was changed"), "answer y, or use --yes"}
	}
	if err := s.Uninstall(inv, c.Purge); err != nil {
		return &exitErr{exitError, err, "the same command goes on when this is mended"}
	}
	if c.Purge {
		return inv.done("uninstalled", "Nothing of the gateway is left.")
	}
	return inv.done("uninstalled", "The gateway is gone. "+installation.SystemState+" with its record, and the user "+installation.SystemUser+", stay until: toolward uninstall --system --purge")
}
