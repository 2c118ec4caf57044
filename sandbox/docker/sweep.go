package docker

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
)

// Sweep removes what gateways left that were killed: containers whose set-up command had not ended, the directories of
// sockets without a container, and sockets at which nobody listens any more. Containers that run are stopped.
func (e *Engine) Sweep(ctx context.Context) error {
	names, err := e.sweepContainers(ctx)
	known := err == nil && !closedToUs(e.where()) // what is there and cannot be asked may have containers of ours
	return errors.Join(err, e.sweepDoors(names, known))
}

// sweepContainers removes half-made containers and returns the names of the others.
func (e *Engine) sweepContainers(ctx context.Context) (names map[string]bool, err error) {
	c, err := e.connect()
	if err != nil || e.absent() {
		return nil, err
	}
	found, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: e.ownContainers()})
	if err != nil {
		return nil, explain(ctx, "list containers", err)
	}
	names = map[string]bool{}
	var failed []error
	for _, item := range found.Items {
		if len(item.Names) == 0 || item.Labels[labelInstance] != e.options.Instance {
			continue
		}
		name := strings.TrimPrefix(item.Names[0], "/")
		if isUnfinished(name) {
			failed = append(failed, e.discard(ctx, item.ID))
			continue
		}
		names[name] = true
		if item.State == container.StateRunning {
			// Its gateway is gone, and was perhaps killed between asking for its start and meeting what is inside.
			failed = append(failed, e.halt(ctx, item.ID, 0))
		}
	}
	return names, errors.Join(failed...)
}

// sweepDoors removes the directories of sockets that no container has, where the containers are known, and every socket.
func (e *Engine) sweepDoors(names map[string]bool, known bool) error {
	any, err := e.doorDirectory("any")
	if err != nil {
		return nil // there are none either
	}
	all := filepath.Dir(any)
	entries, err := os.ReadDir(all)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	failed := []error{err}
	for _, entry := range entries {
		if _, held := e.boxes.Look(entry.Name()); held {
			continue // it is being entered
		}
		left := filepath.Join(all, entry.Name())
		if names[entry.Name()] || !known {
			left = filepath.Join(left, doorName)
		}
		failed = append(failed, os.RemoveAll(left))
	}
	_ = os.Remove(all) // containers that are there have theirs in it
	if err := errors.Join(failed...); err != nil {
		return sandbox.Errorf(sandbox.CodeFailed, "remove the places of sockets: %v", err)
	}
	return nil
}
