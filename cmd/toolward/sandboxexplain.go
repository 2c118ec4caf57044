package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/native"
)

type sandboxExplainCommand struct {
	Session    string `help:"Key of the session; default the main one of the agent." placeholder:"KEY"`
	Agent      string `help:"The agent; default that of the session." placeholder:"ID"`
	Workspace  string `help:"Its directory; default the configured one." type:"path"`
	DockerArgs bool   `help:"Print a command line that makes the same container, and write the filter for system calls that it names."`
}

// sandboxDocs is where people read more.
const sandboxDocs = "docs/sandbox.md"

// sandboxExplanation is what toolward sandbox explain says.
type sandboxExplanation struct {
	DocsURL     string                    `json:"docsUrl"`
	AgentID     string                    `json:"agentId"`
	SessionKey  string                    `json:"sessionKey"`
	MainSession string                    `json:"mainSessionKey"`
	Sandbox     explainedSandbox          `json:"sandbox"`
	Elevated    explainedElevated         `json:"elevated"`
	FixIt       []string                  `json:"fixIt"`
	Sources     map[string]sandbox.Source `json:"sources"`
}

type explainedSandbox struct {
	Engine        string               `json:"engine"`
	Mode          sandbox.Mode         `json:"mode"`
	Scope         sandbox.Scope        `json:"scope"`
	PerSession    bool                 `json:"perSession"`
	Access        sandbox.Access       `json:"workspaceAccess"`
	AccessWhy     string               `json:"workspaceAccessWhy"`
	WorkspaceRoot string               `json:"workspaceRoot"`
	Sandboxed     bool                 `json:"sessionIsSandboxed"`
	Why           string               `json:"why"`
	Name          string               `json:"containerName,omitempty"`
	WorkspaceDir  string               `json:"workspaceDir,omitempty"`
	Workdir       string               `json:"workdir,omitempty"` // where that is inside
	Problem       string               `json:"problem,omitempty"` // why it could not be made
	Decided       *fleet.Machine       `json:"decided,omitempty"` // where the mode is what the first start has found
	Tools         explainedTools       `json:"tools"`
	Docker        []string             `json:"dockerArgs,omitempty"`
	Settings      []sandbox.Setting    `json:"settings"`
	Blocked       []string             `json:"blockedEnv"`
	Warnings      []sandbox.EnvWarning `json:"envWarnings"`
}

type explainedTools struct {
	Allow   []string                     `json:"allow"`
	Deny    []string                     `json:"deny"`
	Sources map[string]policy.ListSource `json:"sources"`
	Omits   []string                     `json:"denyOmits,omitempty"` // what the default list denies and this one does not
}

type explainedElevated struct {
	Enabled       bool                `json:"enabled"`
	Channel       string              `json:"channel,omitempty"`
	Allowed       bool                `json:"allowedByConfig"`
	AlwaysAllowed bool                `json:"alwaysAllowedByConfig"`
	AllowFrom     map[string][]string `json:"allowFrom"`
	Failures      []map[string]string `json:"failures"`
}

// Run explains without a gateway: by the file, and by what the gateway has found out about this machine.
func (c *sandboxExplainCommand) Run(inv *invocation) error {
	tried, err := inv.candidate("")
	if err != nil {
		return err
	}
	defer tried.close()
	machine, _, err := fleet.ReadMachine(inv.home)
	if err != nil {
		return err
	}
	file := tried.loaded.File
	settings, problems := sandbox.Compile(file.Sandbox(), machine.Surroundings(inv.home))
	if len(problems) > 0 {
		return &exitErr{exitUnsound, fmt.Errorf("%s: %s", problems[0].Key, problems[0].Text), "toolward config check"}
	}
	x, creation, err := c.explain(inv, &file, settings, tried.snapshot)
	if err != nil {
		return err
	}
	if x.Sources["mode"].Level == sandbox.FromProbe {
		x.Sandbox.Decided = &machine
	}
	if c.DockerArgs {
		if creation == nil {
			return &exitErr{exitUnsound, fmt.Errorf("%s", x.Sandbox.Problem), "see " + sandboxDocs}
		}
		if x.Sandbox.Docker, err = docker.CommandLine(inv, creation, filepath.Join(inv.home, "sandbox")); err != nil {
			return err
		}
	}
	switch {
	case inv.json:
		return inv.printJSON(x)
	case c.DockerArgs:
		fmt.Fprintln(inv.stdout, docker.ShellLine(append([]string{"docker"}, x.Sandbox.Docker...)))
		return nil
	}
	return inv.printSandbox(x)
}

func (c *sandboxExplainCommand) explain(inv *invocation, file *config.File, settings *sandbox.Settings, snapshot *policy.Snapshot) (*sandboxExplanation, *sandbox.Creation, error) {
	agent := c.Agent
	if agent == "" && strings.Contains(c.Session, ":") {
		agent = sandbox.SessionAgent(c.Session)
	}
	agent = sandbox.AgentID(cmp.Or(agent, file.DefaultAgent()))
	session := settings.Sessions().Meant(c.Session, agent)
	r := settings.For(agent)
	yes, why := settings.Sandboxed(agent, session)
	workspace := cmp.Or(c.Workspace, configuredWorkspace(file, agent))
	access, whyAccess := r.AccessTo(workspace)
	filtered := r.EnvRules().Filter(envOf(r))
	x := &sandboxExplanation{
		DocsURL: sandboxDocs, AgentID: agent, SessionKey: session, MainSession: settings.Sessions().MainSession(agent),
		Sources: r.Sources, Elevated: elevatedOf(file, agent, session),
		Sandbox: explainedSandbox{
			Engine: r.Engine, Mode: r.Mode, Scope: r.Scope, PerSession: r.PerSession, Access: access, AccessWhy: whyAccess, WorkspaceRoot: r.WorkspaceRoot,
			Sandboxed: yes, Why: why, Settings: r.Settings(), Blocked: append([]string{}, filtered.Blocked...),
			Warnings: append([]sandbox.EnvWarning{}, filtered.Warnings...),
		},
	}
	lists := snapshot.SandboxTools(toolward.Caller{Agent: agent, Sandboxed: true})
	x.Sandbox.Tools = explainedTools{
		Allow: append([]string{}, lists.Allow...), Deny: append([]string{}, lists.Deny...),
		Sources: map[string]policy.ListSource{"allow": lists.AllowSource, "deny": lists.DenySource}, Omits: lists.Omits(),
	}
	x.FixIt = []string{x.Sources["mode"].Key, lists.AllowSource.Key, lists.DenySource.Key}
	for _, failure := range x.Elevated.Failures {
		x.FixIt = append(x.FixIt, failure["key"])
	}
	q := sandbox.Request{Agent: agent, Session: session, Workspace: workspace}
	creation, err := r.Creation(inv, q)
	if err == nil {
		x.Sandbox.Name, x.Sandbox.WorkspaceDir = creation.Name, creation.WorkspaceDir
		x.Sandbox.Workdir, err = c.workdir(inv, r, q)
	}
	if err != nil {
		x.Sandbox.Problem = err.Error()
		return x, nil, nil
	}
	return x, creation, nil
}

// workdir is where the workspace is inside. The machine is asked only if that depends on it: where sandboxes without
// namespaces are agreed to.
func (c *sandboxExplainCommand) workdir(inv *invocation, r *sandbox.Resolved, q sandbox.Request) (string, error) {
	site := sandbox.Site{Engine: r.Engine}
	if slices.Contains(r.DegradeOK, "namespaces") && r.Engine != sandbox.EngineDocker {
		engine := native.New(native.Options{Log: slog.New(slog.DiscardHandler)})
		defer engine.Close() //nolint:errcheck // it has made nothing
		found, err := engine.Probe(inv)
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
		if sandbox.AgentID(a.ID) == agent {
			return a.Workspace
		}
	}
	return ""
}

func envOf(r *sandbox.Resolved) (list []sandbox.Variable) {
	for _, name := range slices.Sorted(maps.Keys(r.Neutral.Env)) {
		list = append(list, sandbox.Variable{Name: name, Value: r.Neutral.Env[name]})
	}
	return list
}

// elevatedOf says what keeps callers of the session from commands with more rights, which run outside. Who calls is not
// known here, so that the gates are those of somebody whom no list names.
func elevatedOf(file *config.File, agent, session string) explainedElevated {
	global := file.Tools.Elevated
	var own *command.ElevatedConfig
	for i := range file.Agents.List {
		if sandbox.AgentID(file.Agents.List[i].ID) == agent {
			own = &file.Agents.List[i].Tools.Elevated
		}
	}
	e := explainedElevated{Enabled: global.Enabled != nil && *global.Enabled, AllowFrom: map[string][]string{"global": {}, "agent": {}}, Failures: []map[string]string{}}
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

// printSandbox prints an explanation for people.
func (inv *invocation) printSandbox(x *sandboxExplanation) error {
	s, line := &x.Sandbox, func(name, format string, args ...any) {
		fmt.Fprintf(inv.stdout, "%-12s %s\n", name, display.Line(fmt.Sprintf(format, args...)))
	}
	answer := "is not sandboxed"
	if s.Sandboxed {
		answer = "is sandboxed"
	}
	line("session", "%s of agent %s %s: %s", x.SessionKey, x.AgentID, answer, s.Why)
	line("mode", "%s (%s: %s)", s.Mode, x.Sources["mode"].Level, x.Sources["mode"].Key)
	if s.Decided != nil && !s.Decided.Decided.IsZero() {
		line("", "since %s: %s", s.Decided.Decided.Format(time.DateOnly), s.Decided.Why)
	}
	line("engine", "%s", s.Engine)
	line("scope", "%s", s.Scope)
	line("workspace", "%s (%s), private directories below %s", s.Access, s.AccessWhy, s.WorkspaceRoot)
	if s.Problem != "" {
		line("problem", "%s", s.Problem)
	} else {
		line("name", "%s", s.Name)
		line("directory", "%s, inside %s", s.WorkspaceDir, s.Workdir)
	}
	line("tools", "allow %s (%s: %s)", strings.Join(s.Tools.Allow, " "), s.Tools.Sources["allow"].Source, s.Tools.Sources["allow"].Key)
	line("", "deny %s (%s: %s)", strings.Join(s.Tools.Deny, " "), s.Tools.Sources["deny"].Source, s.Tools.Sources["deny"].Key)
	if len(s.Tools.Omits) > 0 {
		line("warning", "%s replaces the default list, and leaves %s, which that one denies: alsoDeny adds to it instead",
			s.Tools.Sources["deny"].Key, strings.Join(s.Tools.Omits, " "))
	}
	for _, failure := range x.Elevated.Failures {
		line("elevated", "closed by %s", failure["key"])
	}
	for _, name := range s.Blocked {
		line("variable", "%s does not go in", name)
	}
	for _, w := range s.Warnings {
		line("variable", "%s looks odd: %s", w.Name, w.Code)
	}
	line("change", "%s", strings.Join(x.FixIt, ", "))
	fmt.Fprintln(inv.stdout)
	return inv.table("SETTING\tVALUE\tFROM\tKEY", func(row func(...any)) {
		for _, setting := range s.Settings {
			row(setting.Key, cmp.Or(setting.Value, "–"), setting.From.Level, setting.From.Key)
		}
	})
}
