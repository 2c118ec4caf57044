package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/doctor"
	"github.com/toolward/toolward/gateway"
	"github.com/toolward/toolward/gateway/installation"
)

type doctorCommand struct {
	Project  string `help:"Also look at this project's settings." type:"existingdir"`
	Security bool   `help:"Look for what makes the installation less safe than it claims to be, instead."`
	Deep     bool   `help:"With --security: verify the record and remembered answers, too, and expect a gateway to answer."`
	Fix      bool   `help:"With --security: tighten modes of files."`
}

// Run checks the installation.
func (c *doctorCommand) Run(inv *invocation) error {
	switch {
	case c.Security:
		return c.security(inv)
	case c.Deep || c.Fix:
		return &exitErr{exitUsage, errors.New("--deep and --fix belong to --security"), "toolward doctor --security --deep"}
	}
	checks, err := c.examine(inv)
	if err != nil {
		return err
	}
	if inv.json {
		if err := inv.printJSON(checks); err != nil {
			return err
		}
	} else {
		for _, check := range checks {
			fmt.Fprintf(inv.stdout, "%-8s %s: %s\n", check.State, check.Name, display.Line(check.Text))
			if check.Hint != "" && !check.Passed() {
				fmt.Fprintf(inv.stdout, "         %s\n", display.Line(check.Hint))
			}
		}
	}
	for _, check := range checks {
		if check.Failed() {
			return &exitErr{code: exitUnsound, err: errors.New("a check failed")}
		}
	}
	return nil
}

// examine looks at the installation.
func (c *doctorCommand) examine(inv *invocation) ([]installation.Check, error) {
	file, err := inv.file()
	if err != nil {
		return nil, err
	}
	x := installation.Examined{State: inv.home, Loaded: file, Ask: func(ctx context.Context) (installation.Running, error) {
		status, err := inv.daemon().Status(ctx)
		return installation.Running{Console: status.Console, Mode: status.Mode}, err
	}}
	loaded, err := inv.load("")
	if err == nil {
		err = inv.checkShadow(loaded)
	}
	x.Unsound = err
	if c.Project != "" {
		if x.Project, err = filepath.Abs(c.Project); err != nil {
			return nil, err
		}
	}
	return installation.Examine(inv, x)
}

// security looks for what makes the installation less safe.
func (c *doctorCommand) security(inv *invocation) error {
	loaded, err := inv.load("")
	if err != nil {
		return err
	}
	tools, err := gateway.ShippedTools()
	if err != nil {
		return err
	}
	report, err := doctor.Examine(inv, doctor.Options{
		Home: inv.home, Config: loaded, Tools: tools, Around: gateway.Surroundings(), Deep: c.Deep, Fix: c.Fix, Now: time.Now(),
		Light: gateway.LightCheck(&loaded.File),
		Status: func(ctx context.Context) (doctor.Status, error) {
			status, err := inv.daemon().Status(ctx)
			return doctor.Status{Setup: status.Setup, Shadow: status.Mode == config.ModeShadow, Notices: status.Notices}, err
		},
	})
	if err != nil {
		return err
	}
	if inv.json {
		err = inv.printJSON(report)
	} else {
		inv.printReport(report)
	}
	if err == nil && report.Summary.Critical > 0 {
		err = &exitErr{code: exitError, err: fmt.Errorf("critical findings: %d", report.Summary.Critical)}
	}
	return err
}

func (inv *invocation) printReport(r *doctor.Report) {
	for _, fixed := range r.Fixed {
		fmt.Fprintf(inv.stdout, "%-8s %s\n", "fixed", display.Line(fixed))
	}
	for _, f := range r.Findings {
		fmt.Fprintf(inv.stdout, "%-8s %s: %s\n         %s\n", f.Severity, f.CheckID, f.Title, display.Line(f.Detail))
		if f.Remediation != "" {
			fmt.Fprintf(inv.stdout, "         → %s\n", display.Line(f.Remediation))
		}
	}
	fmt.Fprintf(inv.stdout, "\n%d critical, %d warn, %d info; checks made: %d\n", r.Summary.Critical, r.Summary.Warn, r.Summary.Info, len(r.Checked))
	for _, absent := range r.NotApplicable {
		fmt.Fprintf(inv.stdout, "not checked, %s: %s\n", absent.Why, strings.Join(absent.CheckIDs, ", "))
	}
}
