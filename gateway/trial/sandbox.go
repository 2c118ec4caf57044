package trial

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/native"
	"github.com/toolward/toolward/sandbox/settings"
)

// SandboxDocs is where people read more.
const SandboxDocs = "docs/sandbox.md"

// Sandbox is what is known of the sandbox of a session.
type Sandbox struct {
	DocsURL     string                     `json:"docsUrl"`
	AgentID     string                     `json:"agentId"`
	SessionKey  string                     `json:"sessionKey"`
	MainSession string                     `json:"mainSessionKey"`
	Sandbox     SandboxSettings            `json:"sandbox"`
	Elevated    Elevated                   `json:"elevated"`
	FixIt       []string                   `json:"fixIt"`
	Sources     map[string]settings.Source `json:"sources"`
}

// SandboxSettings are those of the session.
type SandboxSettings struct {
	Engine        string                `json:"engine"`
	Mode          settings.Mode         `json:"mode"`
	Scope         settings.Scope        `json:"scope"`
	PerSession    bool                  `json:"perSession"`
	Access        settings.Access       `json:"workspaceAccess"`
	AccessWhy     string                `json:"workspaceAccessWhy"`
	WorkspaceRoot string                `json:"workspaceRoot"`
	Sandboxed     bool                  `json:"sessionIsSandboxed"`
	Why           string                `json:"why"`
	Name          string                `json:"containerName,omitempty"`
	WorkspaceDir  string                `json:"workspaceDir,omitempty"`
	Workdir       string                `json:"workdir,omitempty"` // where that is inside
	Problem       string                `json:"problem,omitempty"` // why it could not be made
	Decided       *fleet.Machine        `json:"decided,omitempty"` // where the mode is what the first start has found
	Tools         SandboxTools          `json:"tools"`
	Docker        []string              `json:"dockerArgs,omitempty"`
	Settings      []settings.Setting    `json:"settings"`
	Blocked       []string              `json:"blockedEnv"`
	Warnings      []settings.EnvWarning `json:"envWarnings"`
}

// ShellLine is the command line that makes the same container, for a shell.
func (s *SandboxSettings) ShellLine() string {
	return docker.ShellLine(append([]string{"docker"}, s.Docker...))
}

// SandboxTools are the lists of tools of sandboxed sessions.
type SandboxTools struct {
	Allow   []string                      `json:"allow"`
	Deny    []string                      `json:"deny"`
	Sources map[string]visible.ListSource `json:"sources"`
	Omits   []string                      `json:"denyOmits,omitempty"` // what the default list denies and this one does not
}

// Elevated is what keeps callers from commands with more rights.
type Elevated struct {
	Enabled       bool                `json:"enabled"`
	Channel       string              `json:"channel,omitempty"`
	Allowed       bool                `json:"allowedByConfig"`
	AlwaysAllowed bool                `json:"alwaysAllowedByConfig"`
	AllowFrom     map[string][]string `json:"allowFrom"`
	Failures      []map[string]string `json:"failures"`
}

// Session is one about which somebody wants to know whether it is sandboxed.
type Session struct {
	Key, Agent, Workspace string // "" where the configuration says it
	DockerArgs            bool   // a command line that makes the same container
}

// Sandbox explains whether a session is sandboxed, why, and by which settings: by the file, and by what the gateway has found
// out about this machine.
func (c *Candidate) Sandbox(ctx context.Context, q Session) (*Sandbox, error) {
	machine, _, err := fleet.ReadMachine(c.home)
	if err != nil {
		return nil, err
	}
	compiled, problems := settings.Compile(c.loaded.File.Sandbox(), machine.Surroundings(c.home))
	if len(problems) > 0 {
		return nil, WrongSettings{fmt.Errorf("%s: %s", problems[0].Key, problems[0].Text)}
	}
	x, plan, err := c.confinement(ctx, q, compiled)
	if err != nil {
		return nil, err
	}
	if x.Sources["mode"].Level == settings.FromProbe {
		x.Sandbox.Decided = &machine
	}
	if q.DockerArgs && plan != nil {
		x.Sandbox.Docker, err = docker.CommandLine(ctx, plan.Spec, filepath.Join(c.home, "sandbox"))
	}
	return x, err
}

// WrongSettings says why the configuration does not say how a sandbox is made.
type WrongSettings struct{ error }

func (c *Candidate) confinement(ctx context.Context, of Session, compiled *settings.Settings) (*Sandbox, *settings.Plan, error) {
	file := &c.loaded.File
	agent := of.Agent
	if agent == "" && strings.Contains(of.Key, ":") {
		agent = settings.SessionAgent(of.Key)
	}
	agent = settings.AgentID(cmp.Or(agent, file.DefaultAgent()))
	session := compiled.Sessions().Meant(of.Key, agent)
	r := compiled.For(agent)
	yes, why := compiled.Sandboxed(agent, session)
	workspace := cmp.Or(of.Workspace, configuredWorkspace(file, agent))
	access, whyAccess := r.AccessTo(workspace)
	filtered := r.EnvRules().Filter(envOf(r))
	x := &Sandbox{
		DocsURL: SandboxDocs, AgentID: agent, SessionKey: session, MainSession: compiled.Sessions().MainSession(agent),
		Sources: r.Sources, Elevated: elevatedOf(file, agent, session),
		Sandbox: SandboxSettings{
			Engine: r.Engine, Mode: r.Mode, Scope: r.Scope, PerSession: r.PerSession, Access: access, AccessWhy: whyAccess, WorkspaceRoot: r.WorkspaceRoot,
			Sandboxed: yes, Why: why, Settings: r.Settings(), Blocked: append([]string{}, filtered.Blocked...),
			Warnings: append([]settings.EnvWarning{}, filtered.Warnings...),
		},
	}
	lists := c.snapshot.SandboxTools(toolward.Caller{Agent: agent, Sandboxed: true})
	x.Sandbox.Tools = SandboxTools{
		Allow: append([]string{}, lists.Allow...), Deny: append([]string{}, lists.Deny...),
		Sources: map[string]visible.ListSource{"allow": lists.AllowSource, "deny": lists.DenySource}, Omits: lists.Omits(),
	}
	x.FixIt = []string{x.Sources["mode"].Key, lists.AllowSource.Key, lists.DenySource.Key}
	for _, failure := range x.Elevated.Failures {
		x.FixIt = append(x.FixIt, failure["key"])
	}
	q := settings.Request{Agent: agent, Session: session, Workspace: workspace}
	plan, err := r.Preview(ctx, q)
	if err == nil {
		x.Sandbox.Name, x.Sandbox.WorkspaceDir = plan.Name, plan.WorkspaceDir
		x.Sandbox.Workdir, err = workdir(ctx, r, q)
	}
	if err != nil {
		x.Sandbox.Problem = err.Error()
		return x, nil, nil
	}
	return x, plan, nil
}

// workdir is where the workspace is inside. The machine is asked only if that depends on it: where sandboxes without
// namespaces are agreed to.
func workdir(ctx context.Context, r *settings.Resolved, q settings.Request) (string, error) {
	site := settings.Site{Engine: r.Engine}
	if slices.Contains(r.DegradeOK, "namespaces") && r.Engine != sandbox.EngineDocker {
		engine := native.New(native.Options{Log: slog.New(slog.DiscardHandler)})
		defer engine.Close() // it has made nothing
		found, err := engine.Probe(ctx)
		if err != nil {
			return "", err
		}
		site.InPlace = found.InPlace
	}
	layout, err := r.Layout(site, q)
	if err != nil {
		return "", err
	}
	return layout.Workdir, nil
}

func configuredWorkspace(file *config.File, agent string) string {
	for _, a := range file.Agents.List {
		if settings.AgentID(a.ID) == agent {
			return a.Workspace
		}
	}
	return ""
}

func envOf(r *settings.Resolved) (list []settings.Variable) {
	for _, name := range slices.Sorted(maps.Keys(r.Neutral.Env)) {
		list = append(list, settings.Variable{Name: name, Value: r.Neutral.Env[name]})
	}
	return list
}

// elevatedOf says what keeps callers of the session from commands with more rights, which run outside. Who calls is not
// known here, so that the gates are those of somebody whom no list names.
func elevatedOf(file *config.File, agent, session string) Elevated {
	global := file.Tools.Elevated
	var own *command.ElevatedConfig
	for i := range file.Agents.List {
		if settings.AgentID(file.Agents.List[i].ID) == agent {
			own = &file.Agents.List[i].Tools.Elevated
		}
	}
	e := Elevated{Enabled: global.Enabled != nil && *global.Enabled, AllowFrom: map[string][]string{"global": {}, "agent": {}}, Failures: []map[string]string{}}
	if parts := strings.Split(session, ":"); len(parts) > 3 {
		e.Channel = parts[2]
	}
	e.AllowFrom["global"] = append(e.AllowFrom["global"], global.AllowFrom[e.Channel]...)
	if own != nil {
		e.AllowFrom["agent"] = append(e.AllowFrom["agent"], own.AllowFrom[e.Channel]...)
	}
	failed := command.ElevatedGates(global, own, toolward.Caller{Agent: agent, Channel: e.Channel})
	for _, key := range failed {
		key = strings.TrimSuffix(key, ".") // without a channel
		gate := "allowFrom"
		if strings.HasSuffix(key, ".enabled") {
			gate = "enabled"
		}
		e.Failures = append(e.Failures, map[string]string{"gate": gate, "key": key})
	}
	e.AlwaysAllowed = len(failed) == 0
	e.Allowed = e.Enabled && (e.AlwaysAllowed || len(e.AllowFrom["global"]) > 0)
	return e
}
