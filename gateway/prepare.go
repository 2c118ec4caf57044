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
	"github.com/toolward/toolward/sandbox/settings"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/session"
)

// openConfig compiles the policy of the configuration file.
func (d *Gateway) openConfig(ctx context.Context, o Options) (err error) {
	d.policy = &policy.Live{}
	d.shadow = &shadowPolicy{
		home: d.home, tools: d.tools, around: d.surroundings(), log: d.log, tell: d.events.put, renamed: make(chan struct{}, 1),
	}
	d.config, err = config.Open(ctx, d.configPath(), config.Options{
		Apply: d.applyConfig, Notify: d.configChanged, Memory: d.memory, Source: o.Configuration,
		Checks: []config.Check{config.CheckPolicy(d.tools, d.surroundings()), config.CheckPlugins(d.registry.IDs()), config.CheckSandbox(settings.OnThisMachine(d.home))},
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

// part is what one part of a gateway makes of a configuration: it says what is wrong with it, or returns what puts it in
// force there. Before commit nothing has changed, and commit cannot fail.
type part func(*config.Loaded) (commit func(), err error)

// parts are those that a configuration changes, in the order in which they change. Tools are judged anew last, when all that
// they are judged by is there.
func (d *Gateway) parts() []part {
	return []part{
		d.prepareApprovals, d.prepareDetectors, d.prepareSessions, d.preparePlugins, d.prepareCommands, d.prepareSandboxes, d.preparePolicy,
	}
}

// Prepare checks a configuration in every part. Nothing has changed before commit, which puts it in force in all of them.
// So a configuration counts as a whole or not at all: half of one could be laxer than what people have seen and agreed to.
func (d *Gateway) Prepare(loaded *config.Loaded) (commit func(), err error) {
	return prepare(loaded, d.parts())
}

func prepare(loaded *config.Loaded, parts []part) (commit func(), err error) {
	commits := make([]func(), len(parts))
	for i, part := range parts {
		if commits[i], err = part(loaded); err != nil {
			return nil, err
		}
	}
	return func() {
		for _, commit := range commits {
			commit()
		}
	}, nil
}

// applyConfig puts a configuration in force, all of it or nothing.
func (d *Gateway) applyConfig(loaded *config.Loaded) error {
	commit, err := d.Prepare(loaded)
	if err == nil {
		commit()
	}
	return err
}

func (d *Gateway) prepareApprovals(loaded *config.Loaded) (commit func(), err error) {
	compiled, err := approvalSettings(loaded.File)
	if err != nil {
		return nil, err
	}
	return d.approver.Prepare(compiled)
}

// prepareDetectors is about those at work: at the start they are opened later, with the same settings.
func (d *Gateway) prepareDetectors(loaded *config.Loaded) (commit func(), err error) {
	if d.watcher == nil {
		return func() {}, nil
	}
	return d.watcher.Prepare(loaded.File.Watching())
}

func (d *Gateway) prepareSessions(loaded *config.Loaded) (commit func(), err error) {
	compiled := session.Settings{HighWater: loaded.File.TEG.HighWater}
	if err := compiled.DefaultLevel.UnmarshalText([]byte(loaded.File.TEG.DefaultLevel)); err != nil {
		return nil, err
	}
	return func() { d.sessions.Configure(compiled) }, nil
}

func (d *Gateway) preparePlugins(loaded *config.Loaded) (commit func(), err error) {
	configure, err := d.plugins.Prepare(loaded.File.Plugins)
	if err != nil {
		return nil, err
	}
	return func() {
		configure()
		d.places.Protect(loaded.File.Plugins.Files())
		d.holdSecrets(loaded.File.Plugins)
	}, nil
}

func (d *Gateway) prepareCommands(loaded *config.Loaded) (commit func(), err error) {
	configure, ignored, err := d.exec.Prepare(loaded.File.Commands())
	if err != nil {
		return nil, err
	}
	return func() {
		configure()
		for _, w := range ignored {
			d.warn(w.String(), toolward.Warning)
		}
	}, nil
}

// prepareSandboxes is about those that are there: at the start the manager is opened later, with the same settings.
func (d *Gateway) prepareSandboxes(loaded *config.Loaded) (commit func(), err error) {
	compiled, err := d.sandboxSettings(loaded.File)
	if err != nil {
		return nil, err
	}
	return func() {
		if d.sandboxes != nil {
			d.sandboxes.Configure(compiled)
		}
	}, nil
}

func (d *Gateway) preparePolicy(loaded *config.Loaded) (commit func(), err error) {
	c := loaded.File.Policy()
	c.Around = d.surroundings()
	snapshot, warnings, err := policy.Compile(c, d.tools)
	if err != nil {
		return nil, err
	}
	return func() {
		d.policy.Swap(snapshot)
		d.shadow.use(loaded.File.TEG.Shadow)
		if d.config != nil {
			d.takeBack("the configuration became stricter", tightened(d.config.Current().File, loaded.File, snapshot))
		}
		for _, w := range warnings {
			d.warn(w.String(), w.Severity)
		}
		if d.mcp != nil {
			d.mcp.ToolsChanged()
		}
	}, nil
}

// tightened says which grants a new configuration ends.
func tightened(before, after config.File, snapshot *policy.Snapshot) func(*approval.Grant) bool {
	was, is := before.Commands(), after.Commands()
	ends := policy.Tightened(before.Policy(), after.Policy(), snapshot, func(agent string) bool { return is.Stricter(&was, agent) })
	return func(g *approval.Grant) bool { return ends(g.Agent, g.Tool) }
}

// warn logs what works in a configuration, but probably not as meant, once.
func (d *Gateway) warn(text string, severity toolward.Severity) {
	if !d.warned.first(text) {
		return
	}
	level := slog.LevelWarn
	if severity == toolward.Info {
		level = slog.LevelInfo
	}
	d.log.Log(context.Background(), level, "configuration", "warning", text, "severity", severity.String())
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

// policyInForce is the policy as people look at it. Without one it is the snapshot that shows nothing.
func (d *Gateway) policyInForce() api.Policy {
	if snapshot, ok := d.policy.Snapshot().(*policy.Snapshot); ok {
		return snapshot
	}
	return &policy.Snapshot{}
}
