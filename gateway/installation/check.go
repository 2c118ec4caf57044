package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/gateway"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/settings"
)

// Check is one thing that was looked at, and what was seen.
type Check = bridge.Check

// Running is what a running gateway says of itself.
type Running struct{ Console, Mode string }

// Examined is an installation to look at.
type Examined struct {
	State   string         // Toolward's home
	Loaded  *config.Loaded // its configuration
	Unsound error          // why that cannot be put in force
	Project string         // also look at what this project's settings switch off; absolute

	// Ask asks the running gateway.
	Ask func(context.Context) (Running, error)
}

// Examine looks at the home, the configuration, the running gateway and every client that can be guarded, whose installed hooks
// it has refuse a canary.
func Examine(ctx context.Context, x Examined) ([]Check, error) {
	checks := []Check{x.home(), x.configuration(), x.sandbox(ctx)}
	checks = append(checks, x.running(ctx)...)
	checks = append(checks, copies(ctx)...)
	for _, client := range Clients() {
		setup, err := Target{Client: client}.setup(x.State, x.Loaded)
		if err != nil {
			return nil, err
		}
		setup.Project = x.Project
		for _, check := range bridge.Doctor(ctx, setup) {
			check.Name = client + " " + check.Name
			checks = append(checks, check)
		}
	}
	return checks, nil
}

func (x *Examined) home() Check {
	info, err := os.Stat(x.State)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Check{Name: "home", State: bridge.Skipped, Text: x.State + " does not exist yet", Hint: "toolward up makes it"}
	case err != nil:
		return Check{Name: "home", State: bridge.Failed, Text: err.Error()}
	case info.Mode().Perm()&0o077 != 0:
		return Check{
			Name: "home", State: bridge.Failed,
			Text: fmt.Sprintf("%s has mode %04o: others can read or change it", x.State, info.Mode().Perm()), Hint: "chmod 700 " + x.State,
		}
	}
	return Check{Name: "home", State: bridge.Passed, Text: x.State}
}

func (x *Examined) configuration() Check {
	if x.Unsound != nil {
		return Check{Name: "configuration", State: bridge.Failed, Text: x.Unsound.Error(), Hint: "toolward config check"}
	}
	return Check{Name: "configuration", State: bridge.Passed, Text: "sound"}
}

// running looks at the gateway that runs, and at where its programs are.
func (x *Examined) running(ctx context.Context) (checks []Check) {
	status, err := x.Ask(ctx)
	if err != nil {
		return []Check{{Name: "gateway", State: bridge.Failed, Text: err.Error(), Hint: "toolward up"}}
	}
	if status.Mode == config.ModeShadow {
		checks = append(checks, Check{
			Name: "teg.shadow_mode", State: bridge.Failed, Text: "critical: " + gateway.ObserveWords,
			Hint: `"teg": {"mode": "enforce"}, then restart the gateway`,
		})
	}
	for _, name := range place.OwnPrograms() {
		if companion.Temporary(name) {
			checks = append(checks, Check{Name: "program", State: bridge.Warned, Text: name + " is in a temporary directory", Hint: "go install ./cmd/..."})
			break
		}
	}
	return append(checks, Check{Name: "gateway", State: bridge.Passed, Text: status.Console})
}

// sandbox shows which sessions are sandboxed, and who says so: the configuration, or what the first start has found out.
func (x *Examined) sandbox(ctx context.Context) Check {
	machine, _, err := fleet.ReadMachine(x.State)
	check := Check{Name: "sandbox", State: bridge.Passed, Hint: "toolward sandbox probe says what this machine can enforce"}
	written := x.Loaded.File.Agents.Defaults.Sandbox.Mode
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
	if check.State == bridge.Passed && x.Unsound == nil {
		if err := gateway.LackOfImages(ctx, x.State, x.Loaded); err != nil {
			check.State, check.Text = bridge.Warned, check.Text+". Calls that need a sandbox are refused: "+err.Error()
		}
	}
	return check
}
