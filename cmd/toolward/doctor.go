package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/doctor"
	"github.com/toolward/toolward/gateway"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/settings"
	"github.com/toolward/toolward/server/api"
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
	checks := inv.checkState()
	setup, err := clientSetup(inv, bridge.ClaudeCode, "")
	if err != nil {
		return err
	}
	if c.Project != "" {
		if setup.Project, err = filepath.Abs(c.Project); err != nil {
			return err
		}
	}
	for _, check := range bridge.Doctor(inv, setup) {
		check.Name = bridge.ClaudeCode + " " + check.Name
		checks = append(checks, check)
	}
	if inv.json {
		if err := inv.printJSON(checks); err != nil {
			return err
		}
	} else {
		for _, check := range checks {
			fmt.Fprintf(inv.stdout, "%-8s %s: %s\n", check.State, check.Name, display.Line(check.Text))
			if check.Hint != "" && check.State != bridge.Passed {
				fmt.Fprintf(inv.stdout, "         %s\n", display.Line(check.Hint))
			}
		}
	}
	for _, check := range checks {
		if check.State == bridge.Failed {
			return &exitErr{code: exitUnsound, err: errors.New("a check failed")}
		}
	}
	return nil
}

// checkState looks at the home, the configuration and the running gateway.
func (inv *invocation) checkState() []bridge.Check {
	var checks []bridge.Check
	info, err := os.Stat(inv.home)
	switch {
	case errors.Is(err, os.ErrNotExist):
		checks = append(checks, bridge.Check{Name: "home", State: bridge.Skipped, Text: inv.home + " does not exist yet", Hint: "toolward up makes it"})
	case err != nil:
		checks = append(checks, bridge.Check{Name: "home", State: bridge.Failed, Text: err.Error()})
	case info.Mode().Perm()&0o077 != 0:
		checks = append(checks, bridge.Check{
			Name: "home", State: bridge.Failed,
			Text: fmt.Sprintf("%s has mode %04o: others can read or change it", inv.home, info.Mode().Perm()), Hint: "chmod 700 " + inv.home,
		})
	default:
		checks = append(checks, bridge.Check{Name: "home", State: bridge.Passed, Text: inv.home})
	}
	loaded, err := inv.load("")
	if err == nil {
		err = inv.checkShadow(loaded)
	}
	if err != nil {
		checks = append(checks, bridge.Check{Name: "configuration", State: bridge.Failed, Text: err.Error(), Hint: "toolward config check"})
	} else {
		checks = append(checks, bridge.Check{Name: "configuration", State: bridge.Passed, Text: "sound"})
	}
	checks = append(checks, inv.checkSandbox(loaded))
	var status struct{ Version, Console, Mode string }
	if err := inv.daemon().get(inv, "/v1/status", nil, &status); err != nil {
		return append(checks, bridge.Check{Name: "gateway", State: bridge.Failed, Text: err.Error(), Hint: "toolward up"})
	}
	if status.Mode == config.ModeShadow {
		checks = append(checks, bridge.Check{
			Name: "teg.shadow_mode", State: bridge.Failed, Text: "critical: " + gateway.ObserveWords,
			Hint: `"teg": {"mode": "enforce"}, then restart the gateway`,
		})
	}
	for _, name := range place.OwnPrograms() {
		if companion.Temporary(name) {
			checks = append(checks, bridge.Check{Name: "program", State: bridge.Warned, Text: name + " is in a temporary directory", Hint: "go install ./cmd/..."})
			break
		}
	}
	return append(checks, bridge.Check{Name: "gateway", State: bridge.Passed, Text: status.Console})
}

// checkSandbox shows which sessions are sandboxed, and who says so: the configuration, or what the first start has found
// out.
func (inv *invocation) checkSandbox(loaded *config.Loaded) bridge.Check {
	machine, _, err := fleet.ReadMachine(inv.home)
	check := bridge.Check{Name: "sandbox", State: bridge.Passed, Hint: "toolward sandbox probe says what this machine can enforce"}
	written := ""
	if loaded != nil {
		written = loaded.File.Agents.Defaults.Sandbox.Mode
	}
	switch {
	case err != nil:
		check.State, check.Text = bridge.Failed, err.Error()
	case written != "":
		check.Text = gateway.SandboxModeKey + " is " + written
	case machine.Due:
		check.State, check.Text = bridge.Warned, "no engine has said yet whether it works: calls that need a sandbox are refused until one does; the next start asks again"
	case machine.Mode == "":
		check.State, check.Text = bridge.Skipped, "the first start finds out whether this machine can make sandboxes"
	default:
		check.Text = fmt.Sprintf("mode %s since %s: %s. %s changes it", machine.Mode, machine.Decided.Format(time.DateOnly), machine.Why, gateway.SandboxModeKey)
		if machine.Mode == settings.ModeOff {
			check.State = bridge.Warned
			check.Hint = `commands run on this machine. To confine them: "agents": {"defaults": {"sandbox": {"mode": "non-main"}}}; ` + check.Hint
		}
	}
	if check.State == bridge.Passed && loaded != nil {
		if err := gateway.LackOfImages(inv, inv.home, loaded); err != nil {
			check.State, check.Text = bridge.Warned, check.Text+". Calls that need a sandbox are refused: "+err.Error()
		}
	}
	return check
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
		Status: func(ctx context.Context) (doctor.Status, error) {
			var status api.Status
			err := inv.daemon().get(ctx, "/v1/status", nil, &status)
			return doctor.Status{Setup: status.Setup, Shadow: status.Mode == config.ModeShadow}, err
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
