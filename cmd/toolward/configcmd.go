package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway"
)

type configCommand struct {
	Check  configCheckCommand  `cmd:"" help:"Check the file without applying it."`
	Show   configShowCommand   `cmd:"" help:"Print every setting in the file or by default, with its source."`
	Schema configSchemaCommand `cmd:"" help:"Print the JSON Schema of the file, for editors."`
	Apply  configApplyCommand  `cmd:"" help:"Put the changed file in force."`
}

func (inv *invocation) configPath() string { return filepath.Join(inv.home, config.FileName) }

// file reads the configuration file of the home.
func (inv *invocation) file() (*config.Loaded, error) {
	loaded, err := config.Own(inv.configPath())
	if err != nil {
		return nil, &exitErr{exitUnsound, err, "mend the configuration first"}
	}
	return loaded, nil
}

// replaceConfig writes the configuration file of the home, which was read as before.
func (inv *invocation) replaceConfig(before, after []byte) error {
	err := config.Replace(inv.configPath(), before, after)
	if errors.Is(err, config.ErrChanged) {
		return &exitErr{exitError, err, "try again"}
	}
	return err
}

// load reads and checks a configuration file the way the daemon does.
func (inv *invocation) load(path string) (*config.Loaded, error) {
	if path == "" {
		path = inv.configPath()
	}
	loaded, err := gateway.Load(inv.home, path)
	return loaded, unsound(err)
}

// checkShadow checks the file that teg.shadow names.
func (inv *invocation) checkShadow(loaded *config.Loaded) error {
	if loaded.File.TEG.Shadow == "" {
		return nil
	}
	path := filepath.Join(inv.home, loaded.File.TEG.Shadow)
	if shadow, err := inv.load(path); err != nil || shadow.Source != nil {
		return err
	}
	return &exitErr{exitUnsound, fmt.Errorf("teg.shadow: %s does not exist", path), "write the file, or remove teg.shadow"}
}

type configCheckCommand struct {
	File string `arg:"" optional:"" help:"Default: the file in the home." type:"path"`
}

// Run checks a file.
func (c *configCheckCommand) Run(inv *invocation) error {
	loaded, err := inv.load(c.File)
	if err != nil {
		return err
	}
	if err := inv.checkShadow(loaded); err != nil {
		return err
	}
	if loaded.Source == nil {
		return inv.done("absent", loaded.Name+" does not exist: the defaults apply.")
	}
	warnings, err := gateway.PolicyWarnings(loaded)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(inv.stderr, "%s: %s\n", w.Severity, display.Line(w.String()))
	}
	commands := loaded.File.Commands()
	ignored, err := commands.Check()
	if err != nil {
		return err
	}
	for _, w := range ignored {
		fmt.Fprintf(inv.stderr, "%s: %s\n", toolward.Warning, display.Line(w.String()))
	}
	return inv.done("sound", loaded.Name+" is sound.")
}

type configShowCommand struct{}

// Run prints the settings.
func (configShowCommand) Run(inv *invocation) error {
	loaded, err := inv.load("")
	if err != nil {
		return err
	}
	leaves, err := loaded.Show()
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(leaves)
	}
	return inv.table("KEY\tVALUE\tSOURCE", func(row func(...any)) {
		for _, l := range leaves {
			value, err := json.Marshal(l.Value)
			if err != nil {
				value = []byte(err.Error())
			}
			row(l.Key, string(value), l.Source)
		}
	})
}

type configSchemaCommand struct{}

// Run prints the schema.
func (configSchemaCommand) Run(inv *invocation) error {
	schema, err := config.Schema()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(inv.stdout, "%s\n", schema)
	return err
}

// mustBeShown is how long a change must have been on the screen before the gateway takes an answer to it.
const mustBeShown = 600 * time.Millisecond

// noticed is the longest that a gateway takes to notice that its file has changed, also on a busy machine.
const noticed = 10 * time.Second

// configJustWritten reports whether the file is so new that the gateway may not have noticed.
func (inv *invocation) configJustWritten() bool {
	info, err := os.Stat(inv.configPath())
	return err == nil && time.Since(info.ModTime()) < noticed
}

type configApplyCommand struct {
	Yes bool `help:"Do not ask; the difference is printed all the same."`
}

// Run shows the difference that waits and, confirmed, puts exactly that in force.
func (c *configApplyCommand) Run(inv *invocation) error {
	change, err := inv.daemon().PendingConfig(inv)
	for until := time.Now().Add(noticed); err != nil && time.Now().Before(until) && inv.configJustWritten(); {
		time.Sleep(noticed / 20)
		change, err = inv.daemon().PendingConfig(inv)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(inv.words(), display.Block(change.Diff))
	shown := time.NewTimer(mustBeShown)
	if !c.Yes && !confirm(inv.stdin, inv.stderr, "Apply it?") {
		return &exitErr{exitError, errors.New("not applied"), "answer y, or use --yes"}
	}
	<-shown.C
	if err := inv.daemon().ApplyConfig(inv, change.Revision); err != nil {
		return err
	}
	return inv.done("applied", "Applied.")
}
