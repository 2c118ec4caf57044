package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/session"
)

// openConfig compiles the policy of the configuration file.
func (d *Gateway) openConfig(ctx context.Context, _ Options) (err error) {
	d.policy = &policy.Live{}
	d.shadow = &shadowPolicy{
		home: d.home, tools: d.tools, around: d.surroundings(), log: d.log, tell: d.events.put, renamed: make(chan struct{}, 1),
	}
	d.config, err = config.Open(ctx, d.configPath(), config.Options{
		Apply: d.applyConfig, Notify: d.configChanged, Memory: d.memory,
		Checks: []config.Check{config.CheckPolicy(d.tools, d.surroundings()), config.CheckPlugins(d.registry.IDs()), config.CheckSandbox(sandbox.OnThisMachine(d.home))},
	})
	if err == nil {
		d.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "in force at start", "hash": d.config.Current().Hash}})
	}
	return err
}

// Surroundings is what the program tells policy besides the file.
func (d *Gateway) surroundings() policy.Surroundings {
	around := Surroundings()
	around.Secrets, around.Confined, around.WhyConfined = d.secrets, d.confines, d.whyConfined
	return around
}

// applyConfig puts a configuration in force, all of it or nothing.
func (d *Gateway) applyConfig(loaded *config.Loaded) error {
	c := loaded.File.Policy()
	c.Around = d.surroundings()
	snapshot, warnings, err := policy.Compile(c, d.tools)
	if err != nil {
		return err
	}
	commands := loaded.File.Commands()
	if _, err := commands.Check(); err != nil {
		return err
	}
	sandboxes, err := d.sandboxSettings(loaded.File)
	if err != nil {
		return err
	}
	settings, err := approvalSettings(loaded.File)
	if err != nil {
		return err
	}
	if err := d.approver.Configure(settings); err != nil {
		return err
	}
	var level toolward.Level
	if err := level.UnmarshalText([]byte(loaded.File.TEG.DefaultLevel)); err != nil {
		return err
	}
	if d.watcher != nil {
		if err := d.watcher.Configure(loaded.File.Watching()); err != nil {
			return err
		}
	}
	d.sessions.Configure(session.Settings{DefaultLevel: level, HighWater: loaded.File.TEG.HighWater})
	if err := d.plugins.Configure(loaded.File.Plugins); err != nil {
		return err
	}
	ignored, err := d.exec.Configure(commands)
	if err != nil {
		return err
	}
	d.places.Protect(loaded.File.Plugins.Files())
	d.holdSecrets(loaded.File.Plugins)
	if d.sandboxes != nil {
		d.sandboxes.Configure(sandboxes)
	}
	d.policy.Swap(snapshot)
	d.shadow.use(loaded.File.TEG.Shadow)
	if d.config != nil {
		d.takeBack("the configuration became stricter", tightened(d.config.Current().File, loaded.File, snapshot))
	}
	for _, w := range warnings {
		if text := w.String(); d.warned.first(text) {
			level := slog.LevelWarn
			if w.Severity == toolward.Info {
				level = slog.LevelInfo
			}
			d.log.Log(context.Background(), level, "configuration", "warning", text, "severity", w.Severity.String())
		}
	}
	for _, w := range ignored {
		if text := w.String(); d.warned.first(text) {
			d.log.Warn("configuration", "warning", text, "severity", toolward.Warning.String())
		}
	}
	if d.mcp != nil {
		d.mcp.ToolsChanged()
	}
	return nil
}

func approvalSettings(f config.File) (approval.Settings, error) {
	absent := approval.AbsentRefuse
	if f.TEG.Approval.Absent == string(approval.AbsentWait) {
		absent = approval.AbsentWait
	}
	return approval.Settings{
		Timeout:    time.Duration(f.TEG.Approval.TimeoutMs) * time.Millisecond,
		MaxTimeout: time.Duration(max(f.Limits.ApprovalMaxMs, f.TEG.Approval.TimeoutMs)) * time.Millisecond,
		PerSession: min(f.TEG.Approval.MaxPendingPerSession, f.Limits.PendingPerSession),
		PerConn:    f.Limits.PendingPerConnection,
		Total:      f.Limits.Pending,
		Absent:     absent,
		Socket:     f.TEG.Approval.Socket == "once",
	}, nil
}
