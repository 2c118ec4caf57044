package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"github.com/toolward/toolward/gateway"
)

// person is whose agents are guarded; nil for those of this process's own user.
func (c *upCommand) person(home string, log *slog.Logger) (*gateway.Person, error) {
	if c.For == "" {
		return nil, nil
	}
	person, err := gateway.ForPerson(c.For, home)
	if err != nil {
		return nil, &exitErr{exitUnsound, err, "docs/system-install.md says how a gateway gets a user of its own"}
	}
	looks, err := keepLooking()
	if err != nil {
		return nil, err
	}
	if !looks {
		log.Warn("paths that this user may not look at ask or are refused: the gateway was started without CAP_DAC_READ_SEARCH")
	}
	// What lies in a home means the person's, in everything that is judged.
	return person, os.Setenv("HOME", person.Home)
}

// tellCode shows the code that the first passphrase is set with. A service's output goes to the journal, which others than root
// may read: there it is a file that only root and the gateway can.
func (c *upCommand) tellCode(inv *invocation, home, code string) error {
	path := filepath.Join(home, gateway.SetupCodeFile)
	out, _ := inv.stdout.(*os.File)
	service := c.For != "" && (out == nil || !term.IsTerminal(int(out.Fd())))
	if c.For != "" && (!service || code == "") {
		_ = os.Remove(path) // of an earlier start: it counts no more
	}
	switch {
	case code == "":
		return nil
	case service:
		return os.WriteFile(path, []byte(code+"\n"), 0o600)
	}
	_, err := fmt.Fprintf(inv.stdout, "Set your passphrase in the console, with this code: %s\n", code)
	return err
}
