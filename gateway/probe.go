package gateway

import (
	"context"
	"log/slog"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/settings"
	"github.com/toolward/toolward/sandbox/toolchain"
)

// ProbedEngine is what an engine of sandboxes can enforce on this machine.
type ProbedEngine struct {
	Engine  string          `json:"engine"`
	Works   bool            `json:"works"`
	Level   string          `json:"level"`
	Version string          `json:"version,omitempty"`
	Checks  []sandbox.Check `json:"checks"`
}

// Toolchains are what a machine has of them.
type Toolchains = toolchain.Found

// ProbeEngines tries the engines, and tells what the first start has found out. The person's toolchains are looked for anew: what
// is found counts from the next start on. No gateway needs to run.
func ProbeEngines(ctx context.Context, home string, loaded *config.Loaded) ([]ProbedEngine, fleet.Machine, error) {
	machine, _, err := fleet.ReadMachine(home)
	if err != nil {
		return nil, machine, err
	}
	if machine.Instance != "" { // before the first start there is no home
		if err := machine.FindTools(home); err != nil {
			return nil, machine, err
		}
	}
	found := []ProbedEngine{}
	for _, e := range sandboxEngines(machine.Instance, home, loaded.File, slog.New(slog.DiscardHandler)) {
		c := fleet.ProbeEngine(ctx, e, nil)
		found = append(found, ProbedEngine{c.Engine, c.Works(), c.Level.Words(), c.Version, c.Checks})
		if err := e.Close(); err != nil {
			return nil, machine, err
		}
	}
	return found, machine, nil
}

// LackOfImages is which images sandboxes of a home need that are not there.
func LackOfImages(ctx context.Context, home string, loaded *config.Loaded) error {
	machine, _, err := fleet.ReadMachine(home)
	if err != nil {
		return err
	}
	compiled, problems := settings.Compile(loaded.File.Sandbox(), machine.Surroundings(home))
	if len(problems) > 0 {
		return nil // the check of the configuration says it
	}
	engine := docker.New(docker.Options{Log: slog.New(slog.DiscardHandler)})
	defer engine.Close() // it has made nothing
	return missingImages(ctx, []sandbox.Engine{engine}, compiled, machine)
}
