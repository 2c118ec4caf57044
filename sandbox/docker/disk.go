package docker

import (
	"context"

	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
)

// watchDisk ends the sandbox when it has written more than it may.
func (b *box) watchDisk(spec *sandbox.Spec) {
	w := b.engine.disk.Of(spec)
	if w == nil {
		return
	}
	b.engine.live.Go(func() {
		if reason := w.Run(b.done); reason != "" {
			b.breached(reason)
		}
	})
}

// breached stops everything at once, and tells.
func (b *box) breached(reason string) {
	e := b.engine
	if b.client != nil {
		b.client.End(reason)
	}
	e.log.Warn("a sandbox was ended", "name", b.name, "reason", reason)
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if c, err := e.connect(); err == nil {
		if _, err := c.ContainerKill(ctx, b.id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			e.log.Warn("a sandbox that writes too much could not be ended at once", "name", b.name, "error", err)
		}
	}
	b.letGo()
}
