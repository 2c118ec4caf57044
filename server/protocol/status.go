package protocol

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/server/door"
)

// hello is the answer to a connect frame.
func (s *Server) hello(c *conn, in *admitted) map[string]any {
	methods := slices.Sorted(maps.Keys(s.methods))
	events := make([]string, 0, len(eventTable))
	for _, rule := range eventTable {
		events = append(events, rule.name)
	}
	agents := s.agents()
	snapshot := map[string]any{
		"presence": s.present(), "health": s.health(time.Now(), false), "stateVersion": s.stateVersion(),
		"uptimeMs": time.Since(s.started).Milliseconds(), "authMode": s.keeper.config.Auth.mode(),
		"sessionDefaults": map[string]any{
			"defaultAgentId": agents.Default, "mainKey": "main", "mainSessionKey": "agent:" + agents.Default + ":main", "scope": "per-sender",
		},
	}
	if identity.Covers(in.scopes, identity.ScopeAdmin) && s.home != "" {
		snapshot["stateDir"], snapshot["configPath"] = s.home, filepath.Join(s.home, "toolward.jsonc")
	}
	hello := map[string]any{
		"type": "hello-ok", "protocol": in.version,
		"server":   map[string]any{"version": s.version, "connId": c.id},
		"features": map[string]any{"methods": methods, "events": events},
		"snapshot": snapshot,
		"policy":   map[string]any{"maxPayload": maxFrame, "maxBufferedBytes": maxBuffered, "tickIntervalMs": tickEvery.Milliseconds()},
	}
	auth := map[string]any{"role": in.role, "scopes": in.scopes}
	if in.token != "" {
		auth["deviceToken"], auth["issuedAtMs"] = in.token, in.issued.UnixMilli()
	}
	if in.version >= newestVersion || in.token != "" {
		hello["auth"] = auth
	}
	return hello
}

// healthCache keeps the answer of method health for a minute.
type healthCache struct {
	mu   sync.Mutex
	at   time.Time
	last map[string]any
	told healthState // as of last
}

// healthState is what makes one health differ from another.
type healthState struct{ trouble, agents string }

const healthKept = time.Minute

// health is the state of the gateway, as everybody who is connected may know it.
func (s *Server) health(now time.Time, probe bool) map[string]any {
	s.cachedHealth.mu.Lock()
	defer s.cachedHealth.mu.Unlock()
	if !probe && s.cachedHealth.last != nil && now.Sub(s.cachedHealth.at) < healthKept {
		return s.cachedHealth.last
	}
	list := s.agents()
	agents := []any{}
	for _, a := range list.All {
		agents = append(agents, map[string]any{"agentId": a.ID, "isDefault": a.ID == list.Default})
	}
	state := healthState{agents: fmt.Sprint(list.Default, agents)}
	if s.trouble != nil {
		state.trouble = s.trouble()
	}
	if s.cachedHealth.last == nil || s.cachedHealth.told != state {
		s.cachedHealth.told = state
		s.healthVersion.Add(1)
	}
	s.cachedHealth.at, s.cachedHealth.last = now, map[string]any{
		"ok": state.trouble == "", "ts": now.UnixMilli(), "durationMs": time.Since(now).Milliseconds(), "defaultAgentId": list.Default, "agents": agents,
		"channels": map[string]any{}, "channelOrder": []string{}, "channelLabels": map[string]any{}, "heartbeatSeconds": 0,
		"sessions": map[string]any{"path": "", "count": 0, "recent": []any{}},
	}
	if state.trouble != "" {
		s.cachedHealth.last["trouble"] = state.trouble
	}
	return s.cachedHealth.last
}

func (r *call) getHealth(_ context.Context, p *struct {
	Probe bool `json:"probe"`
},
) (any, *Error) {
	return r.server.health(time.Now(), p.Probe), nil
}

func (r *call) getStatus(context.Context, *struct{}) (any, *Error) {
	s := r.server
	s.mu.Lock()
	connections := len(s.conns)
	s.mu.Unlock()
	out := map[string]any{
		"version": s.version, "protocol": newestVersion, "startedAtMs": s.started.UnixMilli(),
		"uptimeMs": time.Since(s.started).Milliseconds(), "connections": connections, "authMode": s.keeper.config.Auth.mode(),
		"person": r.by.IsPerson(),
	}
	if r.by.MayAnswer() == nil {
		out["pendingApprovals"] = s.approvals.Count()
	}
	if identity.Covers(r.scopes(), identity.ScopeAdmin) && s.home != "" {
		out["stateDir"] = s.home
	}
	return out, nil
}

type catalogParams struct {
	AgentID        string `json:"agentId"`
	IncludePlugins *bool  `json:"includePlugins"`
}

// sections are the groups of core tools, in the order of the catalog.
var sections = []struct{ id, label string }{
	{"fs", "Files"},
	{"runtime", "Runtime"},
	{"web", "Web"},
	{"memory", "Memory"},
	{"sessions", "Sessions"},
	{"ui", "UI"},
	{"messaging", "Messaging"},
	{"automation", "Automation"},
	{"nodes", "Nodes"},
	{"agents", "Agents"},
	{"media", "Media"},
}

var profiles = []struct{ id, label string }{{"minimal", "Minimal"}, {"coding", "Coding"}, {"messaging", "Messaging"}, {"full", "Full"}}

// catalog lists the tools that are registered, by section and plug-in.
func (r *call) catalog(_ context.Context, p *catalogParams) (any, *Error) {
	agent, known := r.server.agents().find(p.AgentID)
	if !known {
		return nil, invalid("unknown agent id %s", door.QuoteShort(p.AgentID))
	}
	tools := r.server.policy().View(toolward.Caller{Agent: agent.ID, Context: "main", Workspace: agent.Workspace})
	groups := []any{}
	listed := map[string]bool{}
	add := func(id, label, plugin string, has func(*toolward.Tool) bool) {
		entries := []any{}
		for _, v := range tools {
			if !listed[v.Tool.Name] && has(v.Tool) {
				listed[v.Tool.Name] = true
				entries = append(entries, toolWire(v.Tool))
			}
		}
		if len(entries) == 0 {
			return
		}
		group := map[string]any{"id": id, "label": label, "source": "core", "tools": entries}
		if plugin != "" {
			group["source"], group["pluginId"] = "plugin", plugin
		}
		groups = append(groups, group)
	}
	for _, s := range sections {
		members := visible.ExpandGroups([]string{"group:" + s.id})
		add(s.id, s.label, "", func(t *toolward.Tool) bool { return t.Plugin == "" && slices.Contains(members, t.Name) })
	}
	add("other", "Other", "", func(t *toolward.Tool) bool { return t.Plugin == "" })
	if p.IncludePlugins == nil || *p.IncludePlugins {
		for _, plugin := range pluginsOf(tools) {
			add("plugin:"+plugin, plugin, plugin, func(t *toolward.Tool) bool { return t.Plugin == plugin })
		}
	}
	shown := []any{}
	for _, p := range profiles {
		shown = append(shown, map[string]any{"id": p.id, "label": p.label})
	}
	return map[string]any{"agentId": agent.ID, "profiles": shown, "groups": groups}, nil
}

func pluginsOf(tools []visible.ToolView) []string {
	var all []string
	for _, v := range tools {
		if v.Tool.Plugin != "" {
			all = append(all, v.Tool.Plugin)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func toolWire(t *toolward.Tool) map[string]any {
	in := []string{}
	for _, p := range profiles {
		if allow, ok := visible.Profile(p.id); ok && allow != nil && slices.Contains(allow, t.Name) {
			in = append(in, p.id)
		}
	}
	description, _, _ := strings.Cut(cmp.Or(t.Description, t.Name), "\n")
	wire := map[string]any{"id": t.Name, "label": t.Name, "description": description, "source": "core", "defaultProfiles": in}
	if t.Plugin != "" {
		wire["source"], wire["pluginId"], wire["optional"] = "plugin", t.Plugin, t.Optional
	}
	return wire
}

// listNodes is node.list. There are no nodes yet.
func (r *call) listNodes(context.Context, *struct{}) (any, *Error) {
	return map[string]any{"ts": time.Now().UnixMilli(), "nodes": []any{}}, nil
}

// listNodePairings is node.pair.list. There are no nodes yet.
func (r *call) listNodePairings(context.Context, *struct{}) (any, *Error) {
	return map[string]any{"pending": []any{}, "paired": []any{}}, nil
}
