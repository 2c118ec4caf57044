package visible

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

const vectorFile = "policy.json"

type object = map[string]any

func TestNormalizeNameVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "normalizeName", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Name string }
		gatetest.Decode(t, input, &in)
		return object{"name": NormalizeName(in.Name)}
	})
}

func TestExpandGroupsVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "expandGroups", func(t *testing.T, input json.RawMessage) any {
		var in struct{ List []string }
		gatetest.Decode(t, input, &in)
		return object{"list": ExpandGroups(in.List)}
	})
}

func TestProfileVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "profile", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Profile string }
		gatetest.Decode(t, input, &in)
		allow, ok := Profile(in.Profile)
		if !ok {
			return object{"error": "config"}
		}
		return object{"allow": allow}
	})
}

func TestMatchVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "match", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Policy  struct{ Allow, Deny []string }
			Name    string
			Plugins map[string][]string
		}
		gatetest.Decode(t, input, &in)
		return object{"allowed": Matches(in.Policy.Allow, in.Policy.Deny, in.Name, in.Plugins)}
	})
}

func TestOwnerOnlyVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "ownerOnly", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Tools         []*toolward.Tool
			SenderIsOwner any
		}
		gatetest.Decode(t, input, &in)
		names := []string{}
		for _, tool := range WithoutOwnerOnly(in.Tools, in.SenderIsOwner == true) {
			names = append(names, tool.Name)
		}
		return object{"tools": names}
	})
}

// fileConfig is what the tool policy reads of the configuration file, in the shape of the file.
type fileConfig struct {
	Tools  Tools
	Agents struct {
		List     []Agent
		Defaults struct{ Subagents SubagentDefaults }
	}
	Channels map[string]Channel
}

func (f fileConfig) config() Config {
	return Config{Tools: f.Tools, Agents: f.Agents.List, Subagents: f.Agents.Defaults.Subagents, Channels: f.Channels}
}

// callerFacts is the context of a vector.
type callerFacts struct {
	AgentID                                          string
	SessionKey, SpawnedBy                            toolward.SessionKey
	Provider, Model                                  string
	SenderIsOwner                                    any
	SenderID, SenderE164, SenderUsername, SenderName string
	MessageProvider, GroupID, AccountID              string
	Sandboxed                                        bool
	Depth                                            int
	Inherited                                        json.RawMessage
}

func (f callerFacts) caller() toolward.Caller {
	return toolward.Caller{
		Agent: f.AgentID, Session: f.SessionKey, Parent: f.SpawnedBy, Provider: f.Provider, Model: f.Model,
		Owner: f.SenderIsOwner == true, Sender: f.SenderID, SenderPhone: f.SenderE164, SenderUser: f.SenderUsername,
		SenderName: f.SenderName, Channel: f.MessageProvider, Group: f.GroupID, Account: f.AccountID,
		Sandboxed: f.Sandboxed, Depth: f.Depth, Ceiling: toolward.Ceiling(f.Inherited),
	}
}

func TestPickPolicyVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "pickPolicy", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Scope Lists }
		gatetest.Decode(t, input, &in)
		if in.Scope.contradicts() {
			return object{"error": "config"}
		}
		r, ok := in.Scope.restriction()
		return object{"policy": orNull(r, ok)}
	})
}

func orNull[V any](v V, ok bool) any {
	if !ok {
		return nil
	}
	return v
}

func TestProviderPolicyVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "providerPolicy", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			ByProvider      map[string]any
			Provider, Model string
		}
		gatetest.Decode(t, input, &in)
		keys := map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(in.ByProvider)) {
			keys[Fold(key)] = key
		}
		key, ok := byProvider(keys, in.Provider, in.Model)
		return object{"key": orNull(key, ok)}
	})
}

func TestStripVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "strip", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Allow   []string
			Plugins map[string][]string
			Present []string
			Mode    string
		}
		gatetest.Decode(t, input, &in)
		var tools []*toolward.Tool
		for id, names := range in.Plugins {
			tools = append(tools, gatetest.Plugin(NormalizeName(id), names...)...)
		}
		tools = append(tools, gatetest.Plugin("", in.Present...)...)
		v := newInventory(tools, nil, in.Mode == "closed")
		for id, names := range in.Plugins {
			v.plugins[NormalizeName(id)] = len(names) > 0
		}
		l := v.layer(layer{strips: true}, restriction{Allow: in.Allow})
		return object{"stripped": l.stripped, "unknown": l.unknown}
	})
}

func TestStepsVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "steps", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Config  fileConfig
			Context callerFacts
		}
		gatetest.Decode(t, input, &in)
		s, _, err := compiled(in.Config.config(), coreTools())
		if err != nil {
			return object{"error": "config"}
		}
		return object{"steps": s.Steps(in.Context.caller())}
	})
}

// builtTool is a tool of a vector: its name, or more about it.
type builtTool struct {
	Name, Plugin string
	OwnerOnly    bool
}

func (b *builtTool) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &b.Name) == nil {
		return nil
	}
	type plain builtTool
	return json.Unmarshal(raw, (*plain)(b))
}

func TestPipelineVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "pipeline", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Config  fileConfig
			Context callerFacts
			Tools   []builtTool
		}
		gatetest.Decode(t, input, &in)
		var tools []*toolward.Tool
		for _, b := range in.Tools {
			tools = append(tools, &toolward.Tool{Name: b.Name, Plugin: b.Plugin, OwnerOnly: b.OwnerOnly, Schema: json.RawMessage(`{"type":"object"}`)})
		}
		s, _, err := compiled(in.Config.config(), tools)
		if err != nil {
			return object{"error": "config"}
		}
		// The tools are as built: which models get apply_patch has been decided before.
		caller := in.Context.caller()
		v := s.rules.newView(s.agentOf(&caller), &caller)
		v.patch = true
		left, removed := []string{}, map[string]string{}
		for _, tool := range tools {
			if reason, hidden := v.hides(tool); hidden {
				removed[tool.Name] = reason.Layer
			} else {
				left = append(left, tool.Name)
			}
		}
		return object{"tools": left, "removed": removed, "warnings": s.ListWarnings(caller)}
	})
}

func TestGroupContextVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "groupContext", func(t *testing.T, input json.RawMessage) any {
		var in struct{ SessionKey toolward.SessionKey }
		gatetest.Decode(t, input, &in)
		g, ok := groupOf(in.SessionKey)
		return object{"context": orNull(g, ok)}
	})
}

func TestBySenderVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "bySender", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			ToolsBySender Senders
			Sender        callerFacts
		}
		gatetest.Decode(t, input, &in)
		found := newSenderRules[Lists]()
		for _, key := range sortedKeys(in.ToolsBySender) {
			if who, ok := parseSenderKey(key); ok {
				found.add(who, in.ToolsBySender[key])
			}
		}
		caller := in.Sender.caller()
		lists, ok := found.match(senderOf(&caller))
		return object{"policy": orNull(lists, ok)}
	})
}

func TestGroupPolicyVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "groupPolicy", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Config  fileConfig
			Context callerFacts
		}
		gatetest.Decode(t, input, &in)
		c := in.Config.config()
		c.Tools.UnmatchedAllowlist = "closed" // the policy as it is written
		s, _, err := compiled(c, coreTools())
		if err != nil {
			return object{"error": "config"}
		}
		caller := in.Context.caller()
		l := s.rules.group(&caller)
		if l == nil {
			return object{"policy": nil}
		}
		return object{"policy": l.effective}
	})
}

func TestSandboxToolsVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "sandboxTools", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Config   fileConfig
			AgentID  string
			Channels []string
		}
		gatetest.Decode(t, input, &in)
		c := in.Config.config()
		c.Around.Channels = in.Channels
		s, _, err := compiled(c, coreTools())
		if err != nil {
			return object{"error": "config"}
		}
		p := s.SandboxTools(toolward.Caller{Agent: in.AgentID})
		return object{"allow": p.Allow, "deny": p.Deny, "sources": object{"allow": p.AllowSource, "deny": p.DenySource}}
	})
}

func TestSubagentVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "subagent", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Config fileConfig
			Depth  *int
			Names  []string
		}
		gatetest.Decode(t, input, &in)
		s, _, err := compiled(in.Config.config(), coreTools())
		if err != nil {
			return object{"error": "config"}
		}
		depth := -1
		if in.Depth != nil {
			depth = *in.Depth
		}
		leaf := s.rules.defaults.isLeaf(depth)
		l := s.rules.inner
		if leaf {
			l = s.rules.leaf
		}
		allowed := []string{}
		for _, name := range in.Names {
			if _, gone := (pipeline{l}).remover(NormalizeName(name), ""); !gone {
				allowed = append(allowed, name)
			}
		}
		return object{"leaf": leaf, "allowed": allowed}
	})
}

func TestSubagentDepthVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "subagentDepth", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Key   toolward.SessionKey
			Store map[toolward.SessionKey]SessionEntry
		}
		gatetest.Decode(t, input, &in)
		return object{"depth": SubagentDepth(in.Key, func(key toolward.SessionKey) (SessionEntry, bool) {
			e, ok := in.Store[key]
			return e, ok
		})}
	})
}

func TestHTTPToolsVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "httpTools", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Tools, Allow, Deny []string
			Admin              bool
		}
		gatetest.Decode(t, input, &in)
		s, _, err := compiled(Config{HTTP: HTTPTools{Allow: in.Allow, Deny: in.Deny}}, gatetest.Plugin("", in.Tools...))
		if err != nil {
			return object{"error": "config"}
		}
		left := []string{}
		for _, name := range in.Tools {
			if tool, _ := s.Find(toolward.Caller{Owner: in.Admin, Surface: toolward.SurfaceHTTP}, name); tool != nil {
				left = append(left, name)
			}
		}
		return object{"tools": left}
	})
}
