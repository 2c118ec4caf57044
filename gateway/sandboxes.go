package gateway

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/forward"
	"github.com/toolward/toolward/sandbox/inside"
	"github.com/toolward/toolward/sandbox/native"
	"github.com/toolward/toolward/sandbox/settings"
)

// sandboxEngines are the engines of this program, in the order of preference.
func sandboxEngines(instance, stateDir string, f config.File, log *slog.Logger) []sandbox.Engine {
	return []sandbox.Engine{
		native.New(native.Options{
			Instance: instance, Dir: filepath.Join(stateDir, "sandbox", "supervisors"), Cgroup: f.Agents.Defaults.Sandbox.Native.Cgroup, Log: log,
		}),
		docker.New(docker.Options{Instance: instance, Log: log}),
	}
}

// startPatience bounds how long engines may take to tell what an earlier run left.
const startPatience = 10 * time.Second

// buildPatience bounds how long the first start waits until the program inside is built.
const buildPatience = 3 * time.Minute

// openMachine reads what is known of this machine, or begins it.
func (g *Gateway) openMachine(ctx context.Context, records audit.Source) error {
	last, err := records.Last(ctx)
	if err != nil {
		return err
	}
	if g.machine, g.newHome, err = fleet.OpenMachine(g.home, last.Seq > 0); err != nil || g.machine.Tools != nil {
		return err
	}
	if err := g.machine.FindTools(g.home); err != nil {
		return err
	}
	for _, d := range g.machine.Tools.Dirs {
		g.log.Info("sandboxes show a toolchain, read-only", "toolchain", d.Tool, "path", d.Path, "change", ToolchainsKey)
	}
	for _, d := range g.machine.Tools.Caches {
		g.log.Info("sandboxes read a cache", "cache", d.Tool, "path", d.Path, "change", ToolchainsKey)
	}
	if withheld := g.machine.Tools.Withheld; len(withheld) > 0 {
		g.log.Warn("sandboxes are not told settings that log in somewhere", "variables", withheld)
	}
	for _, r := range g.machine.Tools.Refused {
		g.log.Warn("sandboxes do not show a toolchain", "toolchain", r.Tool, "path", r.Path, "why", r.Why)
	}
	return nil
}

// ToolchainsKey is where people strike toolchains out, and name others.
const ToolchainsKey = "agents.defaults.sandbox.toolchains"

// openSandboxes opens what makes sandboxes, with the settings in force. The first start finds out whether this machine can
// make any.
func (g *Gateway) openSandboxes(ctx context.Context, _ Options) (err error) {
	if g.person == nil {
		g.engines = sandboxEngines(g.machine.Instance, withoutLinks(g.home), g.config.Current().File, g.log)
	}
	compiled, err := g.sandboxSettings(g.config.Current().File)
	if err != nil {
		return err
	}
	if g.machine.Due && compiled.Anyone().Sources["mode"].Level == settings.FromProbe {
		if err := g.findInside(ctx); err != nil {
			g.log.Warn("sandboxes", "err", err)
		}
		if err := g.machine.Decide(ctx, g.home, g.engines, compiled.Anyone()); err != nil {
			return err
		}
		g.tellMode()
		if compiled, err = g.sandboxSettings(g.config.Current().File); err != nil {
			return err
		}
	}
	if err := missingImages(ctx, g.engines, compiled, g.machine); err != nil {
		g.log.Warn("calls that need a sandbox are refused", "err", err)
	}
	g.sandboxes = fleet.NewManager(fleet.ManagerOptions{
		Engines: g.engines, StateDir: g.home, Settings: compiled, NewHome: g.newHome, Egress: g.egress, Observe: g.recordSandbox, Log: g.log,
	})
	g.forwards = forward.New(g.sandboxes, g.forwardEnded, g.log)
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	return g.sandboxes.Start(ctx)
}

// findInside finds the program inside, which every engine needs. Where it has to be built, that takes longer than an
// engine that works may take to answer.
func (g *Gateway) findInside(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, buildPatience)
	defer cancel()
	told := time.AfterFunc(time.Second, func() { g.log.Info("the program inside of sandboxes is being built, once") })
	defer told.Stop()
	_, err := inside.FindProgram(ctx)
	return err
}

// tellMode says what the first start has decided, and how to decide otherwise.
func (g *Gateway) tellMode() {
	mode := g.machine.Default()
	level, text := slog.LevelInfo, "sessions are sandboxed where the configuration does not say otherwise"
	switch {
	case g.machine.Due:
		level, text = slog.LevelWarn, "nobody knows yet whether this machine can make sandboxes: calls that need one are refused until it can; the next start tries again"
	case mode == settings.ModeOff:
		level, text = slog.LevelWarn, "sessions are not sandboxed: commands run on this machine, when people or rules allow them"
	}
	g.log.Log(context.Background(), level, text, "mode", mode, "why", g.machine.Why, "change", SandboxModeKey)
	g.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{
		"event": "sandbox mode", "mode": string(mode), "engine": g.machine.Engine, "why": g.machine.Why, "kept": !g.machine.Due,
	}})
}

// SandboxModeKey is where people say which sessions are sandboxed.
const SandboxModeKey = "agents.defaults.sandbox.mode"

// sandboxSettings compiles the settings of sandboxes for this machine.
func (g *Gateway) sandboxSettings(f config.File) (*settings.Settings, error) {
	compiled, problems := settings.Compile(f.Sandbox(), g.machine.Surroundings(g.home))
	if len(problems) > 0 {
		return nil, sandbox.Errorf(problems[0].Code, "%s: %s", problems[0].Key, problems[0].Text)
	}
	return compiled, nil
}

// protectedFloor is how long a session is elevated at least after its commands made what git would run.
const protectedFloor = time.Hour

// recordSandbox keeps what happens to sandboxes.
func (g *Gateway) recordSandbox(e fleet.Event) {
	data := map[string]any{"event": string(e.Kind), "sandbox": e.Name, "scope": e.ScopeKey, "engine": e.Engine}
	if e.Why != "" {
		data["why"] = e.Why
	}
	if len(e.Paths) > 0 {
		data["paths"], data["runs"] = e.Paths, e.Runs
	}
	if e.Port != 0 {
		data["port"], data["program"] = int(e.Port), e.Program
	}
	if e.Kind == fleet.EventProtected && e.Runs && e.Session != "" {
		// The next process in this directory, on this machine, may run files that the sandbox left behind.
		g.logError("raise the level of "+e.Session,
			g.sessions.RaiseFloor(context.Background(), toolward.SessionKey(e.Session), toolward.Elevated, protectedFloor, "sandbox"))
	}
	g.events.put(audit.Event{Type: audit.TypeSandbox, Session: toolward.SessionKey(e.Session), Agent: settings.ScopeAgentID(e.ScopeKey), Data: data})
}

// closeSandboxes lets go of sandboxes; those that cannot outlive the gateway end.
func (g *Gateway) closeSandboxes() {
	if g.forwards != nil {
		g.forwards.Close()
	}
	if g.sandboxes != nil {
		g.sandboxes.Close()
	}
	for _, e := range g.engines {
		g.logError("close the sandbox engine "+e.Name(), e.Close())
	}
	if g.egress != nil {
		g.egress.Shutdown()
	}
}

// withoutLinks is a directory's real path, or the path itself if it does not exist.
func withoutLinks(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}
