package policy

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/visible"
)

func egressTool() *toolward.Tool {
	return &toolward.Tool{Name: visible.EgressTool, Internal: true, Schema: json.RawMessage(`{"type":"object","properties":{"host":{"type":"string"},"port":{"type":"integer"}}}`)}
}

// An internal tool is nobody's to see, to name or to imitate.
func TestInternalTool(t *testing.T) {
	tool := egressTool()
	s := compile(t, Config{
		Tools: visible.Tools{Allow: []string{"read"}},
		Agents: []Agent{
			{ID: "asks", Tools: visible.Tools{AlsoAllow: []string{"egress", "*"}}},
			{ID: "denies", Tools: visible.Tools{Deny: []string{"egr*"}}},
		},
	}, append(coreTools(), tool)...)
	for _, agent := range []string{"main", "asks", "denies"} {
		c := toolward.Caller{Agent: agent, Owner: true}
		if found, _ := s.Find(c, visible.EgressTool); found != nil {
			t.Errorf("%s finds it by its name", agent)
		}
		if slices.Contains(s.Tools(c), tool) || slices.ContainsFunc(s.View(c), func(v visible.ToolView) bool { return v.Tool == tool }) {
			t.Errorf("%s sees it", agent)
		}
		for name, form := range map[string]*toolward.Tool{
			"a client's form": {Name: visible.EgressTool, Schema: tool.Schema}, "one that says it is internal": egressTool(),
			"one of a server": {Name: visible.EgressTool, Plugin: "mail", Schema: tool.Schema}, "another name": {Name: "read", Internal: true, Schema: tool.Schema},
		} {
			if adopted, _ := s.Adopt(c, form); adopted != nil {
				t.Errorf("%s: %s was adopted", agent, name)
			}
		}
		adopted, reason := s.Adopt(c, tool)
		if denied := agent == "denies"; (adopted == tool) == denied || denied && reason.Matched != "egr*" {
			t.Errorf("%s: adopted %v, %v", agent, adopted, reason)
		}
	}
	for name, bad := range map[string]*toolward.Tool{
		"without the mark": {Name: visible.EgressTool, Schema: tool.Schema}, "another name": {Name: "other", Internal: true, Schema: tool.Schema},
		"that can be run": {Name: visible.EgressTool, Internal: true, Schema: tool.Schema, Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
			return toolward.Result{}, nil
		}},
	} {
		if _, _, err := Compile(Config{}, []*toolward.Tool{bad}); err == nil {
			t.Errorf("an internal tool %s was registered", name)
		}
	}
}

// A listed host is as good as granted, and no better.
func TestListedHost(t *testing.T) {
	tool := egressTool()
	const key = "agents.defaults.sandbox.egress.hosts"
	for _, tt := range []struct {
		name    string
		listed  string
		level   toolward.Level
		finding []toolward.Finding
		class   string
		want    toolward.Verdict
	}{
		{"listed", key, toolward.Normal, nil, "", toolward.Allow},
		{"listed, elevated", key, toolward.Elevated, nil, "", toolward.Allow},
		{"listed, lockdown", key, toolward.Lockdown, nil, "", toolward.Ask},
		{"listed, but something was found", key, toolward.Normal, []toolward.Finding{{Code: "x", Effect: toolward.EffectAsk}}, "", toolward.Ask},
		{"listed, but refused", key, toolward.Normal, []toolward.Finding{{Code: "x", Effect: toolward.EffectDeny}}, "", toolward.Deny},
		{"listed, but blocked", key, toolward.Normal, nil, "blocked", toolward.Deny},
		{"not listed", "", toolward.Normal, nil, "", toolward.Ask},
	} {
		c := Config{}
		if tt.class != "" {
			c.TEG.Tools = map[string]string{visible.EgressTool: tt.class}
		}
		s := compile(t, c, tool)
		r := &toolward.Request{
			Call: toolward.Call{Caller: toolward.Caller{Agent: "coder"}, Session: "agent:coder:x"}, Tool: tool, Level: tt.level,
			Facts: toolward.Facts{Hosts: []string{"tcp://example.org:443"}, Listed: tt.listed, Findings: tt.finding},
		}
		j := s.Judge(r)
		if j.Verdict != tt.want {
			t.Errorf("%s: %s, want %s: %v", tt.name, j.Verdict, tt.want, j.Reasons)
		}
		if named := slices.ContainsFunc(j.Reasons, func(r toolward.Reason) bool { return r.Rule == key }); named != (tt.want == toolward.Allow) {
			t.Errorf("%s: the key is named: %t", tt.name, named)
		}
		if tt.want == toolward.Ask && tt.finding == nil && j.Class.Severity != toolward.Warning {
			t.Errorf("%s: severity %s", tt.name, j.Class.Severity)
		}
		other := *tool
		other.Plugin = "mail"
		r.Tool = &other
		if j := s.Judge(r); j.Verdict == toolward.Allow {
			t.Errorf("%s: a plug-in lists its own hosts", tt.name)
		}
	}
}
