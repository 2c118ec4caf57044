package gateway

import (
	"context"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/audit/anomaly"
	"github.com/toolward/toolward/server/protocol"
	"github.com/toolward/toolward/session"
)

// openWatcher sets the detectors to work, with what the record says of the latest past.
func (g *Gateway) openWatcher(ctx context.Context, _ Options) error {
	monitor, err := anomaly.New(g.config.Current().File.Watching())
	if err != nil {
		return err
	}
	records, err := g.db.Audit(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	n, err := monitor.Restore(ctx, records)
	if err != nil {
		// What was read so far counts. Not starting for it would leave the agents without any gateway.
		g.log.Error("what was odd before the restart is not known", "err", err)
	}
	g.log.Debug("detectors know the latest past", "records", n, "took", time.Since(start))
	g.watcher, err = anomaly.NewWatcher(monitor, g.sessions, g.recordAnomaly, g.log)
	return err
}

// recordAnomaly keeps that a detector fired, and tells the operator unless they have just been told.
func (g *Gateway) recordAnomaly(n anomaly.Notice) {
	if n.Notify {
		g.log.Warn("teg.anomaly", "detector", n.Detector, "text", n.Text, "action", n.Action, "session", n.Session, "tool", n.Tool)
	} else {
		g.log.Debug("teg.anomaly", "detector", n.Detector, "text", n.Text, "action", n.Action, "session", n.Session, "tool", n.Tool)
	}
	if wire := g.wire.Load(); wire != nil && n.Notify {
		wire.SecurityNews(protocol.Alert{
			Kind: n.Detector.String(), Severity: gravity(n.Action), Session: n.Session, Agent: n.Agent, Tool: n.Tool,
			Detail: n.Text + " (" + n.Action.String() + ")",
		})
	}
	data := map[string]any{
		"detector": n.Detector.String(), "count": n.Count, "action": n.Action.String(), "text": n.Text, "notified": n.Notify,
	}
	if n.Run != "" {
		data["run"] = n.Run
	}
	if n.Detail != "" {
		data["detail"] = n.Detail
	}
	g.events.put(audit.Event{
		Type: audit.TypeAnomaly, Time: n.Time, Session: n.Session, Agent: n.Agent, Tool: n.Tool, CallID: n.CallID, Data: data,
	})
}

// gravity is how urgent people should find what a detector has made happen.
func gravity(a anomaly.Action) toolward.Severity {
	switch a {
	case anomaly.Alert:
		return toolward.Info
	case anomaly.Ask, anomaly.Elevate:
		return toolward.Warning
	}
	return toolward.Critical
}

// levels are the levels of sessions as people change them: what made an alarm go off is forgotten with what the alarm
// has raised.
type levels struct {
	*session.Tracker
	watcher *anomaly.Watcher
}

// Clear clears a session's level.
func (l levels) Clear(ctx context.Context, key toolward.SessionKey, read, by string) error {
	if err := l.Tracker.Clear(ctx, key, read, by); err != nil {
		return err
	}
	l.watcher.Clear(key)
	return nil
}
