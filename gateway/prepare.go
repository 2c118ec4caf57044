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
func (g *Gateway) openConfig(ctx context.Context, o Options) (err error) {
	g.policy = &policy.Live{}
	g.shadow = &shadowPolicy{
		home: g.home, tools: g.tools, around: g.surroundings(), log: g.log, tell: g.events.put, renamed: make(chan struct{}, 1),
	}
	g.config, err = config.Open(ctx, g.configPath(), config.Options{
		Apply: g.applyConfig, Notify: g.configChanged, Memory: g.memory, Source: o.Configuration,
		Checks: []config.Check{config.CheckPolicy(g.tools, g.surroundings()), config.CheckPlugins(g.registry.IDs()), config.CheckSandbox(settings.OnThisMachine(g.home)), config.CheckCheckpoints(g.home)},
	})
	if err == nil {
		g.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "in force at start", "hash": g.config.Current().Hash}})
	}
	return err
}

// Surroundings is what the program tells policy besides the file.
func (g *Gateway) surroundings() policy.Surroundings {
	around := Surroundings()
	around.Secrets, around.Confined, around.WhyConfined = g.secrets, g.confines, g.whyConfined
	return around
}

// part is what one part of a gateway makes of a configuration: it says what is wrong with it, or returns what puts it in
// force there. Before commit nothing has changed, and commit cannot fail.
type part func(*config.Loaded) (commit func(), err error)

// parts are those that a configuration changes, in the order in which they change. Tools are judged anew last, when all that
// they are judged by is there.
func (g *Gateway) parts() []part {
	return []part{
		g.prepareApprovals, g.prepareDetectors, g.prepareSessions, g.preparePlugins, g.prepareCommands, g.prepareSandboxes, g.preparePolicy,
	}
}

// Prepare checks a configuration in every part. Nothing has changed before commit, which puts it in force in all of them.
// So a configuration counts as a whole or not at all: half of one could be laxer than what people have seen and agreed to.
func (g *Gateway) Prepare(loaded *config.Loaded) (commit func(), err error) {
	return prepare(loaded, g.parts())
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
func (g *Gateway) applyConfig(loaded *config.Loaded) error {
	commit, err := g.Prepare(loaded)
	if err == nil {
		commit()
	}
	return err
}

func (g *Gateway) prepareApprovals(loaded *config.Loaded) (commit func(), err error) {
	compiled, err := approvalSettings(loaded.File)
	if err != nil {
		return nil, err
	}
	return g.approver.Prepare(compiled)
}

// prepareDetectors is about those at work: at the start they are opened later, with the same settings.
func (g *Gateway) prepareDetectors(loaded *config.Loaded) (commit func(), err error) {
	if g.watcher == nil {
		return func() {}, nil
	}
	return g.watcher.Prepare(loaded.File.Watching())
}

func (g *Gateway) prepareSessions(loaded *config.Loaded) (commit func(), err error) {
	compiled := session.Settings{HighWater: loaded.File.TEG.HighWater}
	if err := compiled.DefaultLevel.UnmarshalText([]byte(loaded.File.TEG.DefaultLevel)); err != nil {
		return nil, err
	}
	return func() { g.sessions.Configure(compiled) }, nil
}

func (g *Gateway) preparePlugins(loaded *config.Loaded) (commit func(), err error) {
	configure, err := g.plugins.Prepare(loaded.File.Plugins)
	if err != nil {
		return nil, err
	}
	return func() {
		configure()
		g.places.Protect(loaded.File.Plugins.Files())
		g.holdSecrets(loaded.File.Plugins)
	}, nil
}

func (g *Gateway) prepareCommands(loaded *config.Loaded) (commit func(), err error) {
	configure, ignored, err := g.exec.Prepare(loaded.File.Commands())
	if err != nil {
		return nil, err
	}
	return func() {
		configure()
		for _, w := range ignored {
			g.warn(w.String(), toolward.Warning)
		}
	}, nil
}

// prepareSandboxes is about those that are there: at the start the manager is opened later, with the same settings.
func (g *Gateway) prepareSandboxes(loaded *config.Loaded) (commit func(), err error) {
	compiled, err := g.sandboxSettings(loaded.File)
	if err != nil {
		return nil, err
	}
	return func() {
		if g.sandboxes != nil {
			g.sandboxes.Configure(compiled)
		}
	}, nil
}

func (g *Gateway) preparePolicy(loaded *config.Loaded) (commit func(), err error) {
	c := loaded.File.Policy()
	c.Around = g.surroundings()
	snapshot, warnings, err := policy.Compile(c, g.tools)
	if err != nil {
		return nil, err
	}
	return func() {
		g.policy.Swap(snapshot)
		g.shadow.use(loaded.File.TEG.Shadow)
		if g.config != nil {
			g.takeBack("the configuration became stricter", tightened(g.config.Current().File, loaded.File, snapshot))
		}
		for _, w := range warnings {
			g.warn(w.String(), w.Severity)
		}
		if g.mcp != nil {
			g.mcp.ToolsChanged()
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
func (g *Gateway) warn(text string, severity toolward.Severity) {
	if !g.warned.first(text) {
		return
	}
	level := slog.LevelWarn
	if severity == toolward.Info {
		level = slog.LevelInfo
	}
	g.log.Log(context.Background(), level, "configuration", "warning", text, "severity", severity.String())
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
func (g *Gateway) policyInForce() api.Policy {
	if snapshot, ok := g.policy.Snapshot().(*policy.Snapshot); ok {
		return snapshot
	}
	return &policy.Snapshot{}
}
