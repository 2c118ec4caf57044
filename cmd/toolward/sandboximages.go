package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
)

// imagePatience bounds how long the container engine may take to say which images it has.
const imagePatience = 5 * time.Second

// missingImages says which images sandboxes would need that the container engine does not have: without them it works, and
// every call that needs a sandbox is refused.
func missingImages(ctx context.Context, engines []sandbox.Engine, settings *sandbox.Settings, machine sandbox.Machine) error {
	var names []string
	for _, r := range append(slices.Collect(maps.Values(settings.Agents())), settings.Anyone()) {
		if r.Mode != sandbox.ModeOff && (r.Engine == sandbox.EngineDocker || r.Engine == sandbox.EngineAuto && machine.Engine == sandbox.EngineDocker) {
			names = append(names, strings.TrimSpace(r.Docker.Image))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	ctx, cancel := context.WithTimeout(ctx, imagePatience)
	defer cancel()
	var lacks []string
	for _, e := range engines {
		containers, ok := e.(*docker.Engine)
		if !ok {
			continue
		}
		for _, name := range names {
			if err := containers.CheckImage(ctx, name); err != nil {
				lacks = append(lacks, err.Error())
			}
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return errors.New(strings.Join(lacks, "; "))
}
