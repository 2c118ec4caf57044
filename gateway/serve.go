package gateway

import (
	"context"
	"time"
)

// Serve answers until the context ends or a door fails.
func (g *Gateway) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 2)
	if g.server != nil {
		go func() { failed <- g.server.Serve() }()
	}
	go func() {
		if err := g.config.Watch(ctx); err != nil {
			g.log.Error("the configuration file is not watched: changes wait for a restart", "err", err)
		}
	}()
	go g.followAllowlist(ctx)
	go g.shadow.follow(ctx)
	go g.retain(ctx)
	if g.kept != nil {
		go g.kept.Collect(ctx)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// retain deletes old records once a day, under a signed seal.
func (g *Gateway) retain(ctx context.Context) {
	ticker := time.NewTicker(24 * time.Hour)
	defer ticker.Stop()
	for {
		age := time.Duration(g.config.Current().File.TEG.Audit.RetainDays) * 24 * time.Hour
		if n, err := g.audit.Retain(ctx, age); err != nil && ctx.Err() == nil {
			g.log.Error("old records could not be deleted", "err", err)
		} else if n > 0 {
			g.log.Info("old records deleted", "count", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			g.anchorAuthority() // the one before may be among what is deleted
		}
	}
}

// Close ends everything that was opened. The order matters: first the approver, so that waiting calls are refused
// while their questions stay pending for after the restart; then whatever makes calls; then what records them.
func (g *Gateway) Close() {
	if g.approver != nil {
		g.approver.Close()
	}
	if g.streams != nil {
		g.streams()
	}
	if g.mcp != nil {
		g.mcp.Close()
	}
	if g.protocol != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		g.logError("close connections", g.protocol.Close(ctx))
	}
	if g.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		g.logError("close doors", g.server.Close(ctx))
	}
	if g.hooks != nil {
		g.hooks.Close(context.Background())
	}
	if g.toolbox != nil {
		g.logError("end commands", g.toolbox.Close())
		if g.light != nil {
			g.light.Close()
		}
	}
	g.closeSandboxes()
	if g.kept != nil {
		g.logError("close what is kept of workspaces", g.kept.Close())
	}
	if g.plugins != nil {
		g.plugins.Close()
	}
	if g.commands != nil {
		g.commands.Close()
	}
	if g.events != nil {
		g.events.close()
	}
	if g.audit != nil {
		g.audit.Close()
	}
	if g.elsewhere != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		g.elsewhere.Close(ctx)
	}
	if g.measured != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := g.measured.Close(ctx); err != nil {
			g.log.Debug("the last spans were not exported", "err", err)
		}
	}
	if g.db != nil {
		g.logError("close state", g.db.Close())
	}
}
