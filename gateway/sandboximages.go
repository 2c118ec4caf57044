package gateway

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/settings"
)

// imagePatience bounds how long the container engine may take to say which images it has.
const imagePatience = 5 * time.Second

// missingImages says which images sandboxes would need that the container engine does not have: without them it works, and
// every call that needs a sandbox is refused.
func missingImages(ctx context.Context, engines []sandbox.Engine, compiled *settings.Settings, machine fleet.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, imagePatience)
	defer cancel()
	var lacks []string
	for _, e := range engines {
		containers, ok := e.(*docker.Engine)
		if !ok {
			continue
		}
		for _, name := range compiled.Images(machine.Engine) {
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
