package gateway

import (
	"context"
	"time"
)

// Serve answers until the context ends or a door fails.
func (d *Gateway) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 2)
	if d.server != nil {
		go func() { failed <- d.server.Serve() }()
	}
	go func() {
		if err := d.config.Watch(ctx); err != nil {
			d.log.Error("the configuration file is not watched: changes wait for a restart", "err", err)
		}
	}()
	go d.shadow.follow(ctx)
	go d.retain(ctx)
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// retain deletes old records once a day, under a signed seal.
func (d *Gateway) retain(ctx context.Context) {
	ticker := time.NewTicker(24 * time.Hour)
	defer ticker.Stop()
	for {
		age := time.Duration(d.config.Current().File.TEG.Audit.RetainDays) * 24 * time.Hour
		if n, err := d.audit.Retain(ctx, age); err != nil && ctx.Err() == nil {
			d.log.Error("old records could not be deleted", "err", err)
		} else if n > 0 {
			d.log.Info("old records deleted", "count", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Close ends everything that was opened. The order matters: first the approver, so that waiting calls are refused
// while their questions stay pending for after the restart; then whatever makes calls; then what records them.
func (d *Gateway) Close() {
	if d.approver != nil {
		d.approver.Close()
	}
	if d.streams != nil {
		d.streams()
	}
	if d.mcp != nil {
		d.mcp.Close()
	}
	if d.protocol != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		d.logError("close connections", d.protocol.Close(ctx))
	}
	if d.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		d.logError("close doors", d.server.Close(ctx))
	}
	if d.hooks != nil {
		d.hooks.Close(context.Background())
	}
	if d.toolbox != nil {
		d.logError("end commands", d.toolbox.Close())
	}
	d.closeSandboxes()
	if d.plugins != nil {
		d.plugins.Close()
	}
	if d.commands != nil {
		d.commands.Close()
	}
	if d.events != nil {
		d.events.close()
	}
	if d.audit != nil {
		d.audit.Close()
	}
	if d.measured != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := d.measured.Close(ctx); err != nil {
			d.log.Debug("the last spans were not exported", "err", err)
		}
	}
	if d.db != nil {
		d.logError("close state", d.db.Close())
	}
}
