package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
	"github.com/toolward/toolward/sandbox/native"
)

// sandboxAround is what the configuration does not say about sandboxes. A home directory that cannot be found is "": the
// rules about what lies in it have nothing to protect then.
func sandboxAround(stateDir string) sandbox.Surroundings {
	home, _ := os.UserHomeDir()
	return sandbox.Surroundings{StateDir: withoutLinks(stateDir), Home: withoutLinks(home), FoldCase: place.FoldsCase(stateDir)}
}

// sandboxEngines are the engines of this program, in the order of preference.
func sandboxEngines(instance string, log *slog.Logger) []sandbox.Engine {
	return []sandbox.Engine{
		native.New(native.Options{Instance: instance, Log: log}), docker.New(docker.Options{Instance: instance, Log: log}),
	}
}

// knownMachine is sandboxAround with what the gateway has found out about this machine.
func knownMachine(stateDir string) (sandbox.Surroundings, sandbox.Machine, error) {
	around := sandboxAround(stateDir)
	machine, _, err := sandbox.ReadMachine(stateDir)
	around.Instance, around.Undecided = machine.Instance, machine.Mode
	return around, machine, err
}

// startPatience bounds how long engines may take to tell what an earlier run left.
const startPatience = 10 * time.Second

// openSandboxes opens what makes sandboxes, with the settings in force.
func (d *daemon) openSandboxes(ctx context.Context, _ daemonOptions) error {
	// No tool runs inside yet, so that no engine is looked for: a mode that was decided now would be kept.
	machine, err := sandbox.OpenMachine(ctx, d.home, nil)
	if err != nil {
		return err
	}
	d.machine = machine
	d.engines = sandboxEngines(machine.Instance, d.log)
	settings, err := d.sandboxSettings(d.config.Current().File)
	if err != nil {
		return err
	}
	d.sandboxes = sandbox.NewManager(sandbox.ManagerOptions{
		Engines: d.engines, StateDir: d.home, Settings: settings, Observe: d.recordSandbox, Log: d.log,
	})
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	return d.sandboxes.Start(ctx)
}

// sandboxSettings compiles the settings of sandboxes for this machine.
func (d *daemon) sandboxSettings(f config.File) (*sandbox.Settings, error) {
	around := sandboxAround(d.home)
	around.Instance, around.Undecided = d.machine.Instance, d.machine.Mode
	settings, problems := sandbox.Compile(f.Sandbox(), around)
	if len(problems) > 0 {
		return nil, sandbox.Errorf(problems[0].Code, "%s: %s", problems[0].Key, problems[0].Text)
	}
	return settings, nil
}

// recordSandbox keeps what happens to sandboxes.
func (d *daemon) recordSandbox(e sandbox.Event) {
	data := map[string]any{"event": string(e.Kind), "sandbox": e.Name, "scope": e.ScopeKey, "engine": e.Engine}
	if e.Why != "" {
		data["why"] = e.Why
	}
	d.events.put(audit.Event{Type: audit.TypeSandbox, Session: toolward.SessionKey(e.Session), Agent: sandbox.ScopeAgentID(e.ScopeKey), Data: data})
}

// closeSandboxes lets go of sandboxes; those that cannot outlive the gateway end.
func (d *daemon) closeSandboxes() {
	if d.sandboxes != nil {
		d.sandboxes.Close()
	}
	for _, e := range d.engines {
		d.logError("close the sandbox engine "+e.Name(), e.Close())
	}
}
