package visible

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

func TestLayers(t *testing.T) {
	tools := slices.Concat(coreTools(), gatetest.Plugin("github", "github__issue", "github__delete"))
	s := compile(t, Config{
		Tools: Tools{Allow: []string{"group:fs", "exec", "cron", "github", "tts"}, Deny: []string{"*_delete"}},
		Agents: []Agent{
			{ID: "Reader", Tools: Tools{Allow: []string{"read", "github__*"}}},
			{ID: "quiet", Tools: Tools{Deny: []string{"group:plugins", "tts"}}},
		},
	}, tools...)
	for _, c := range []struct {
		name   string
		caller toolward.Caller
		want   string
	}{
		{"owner of no configured agent", toolward.Caller{Agent: "main", Owner: true}, "apply_patch cron edit exec github__issue read tts write"},
		{"stranger", toolward.Caller{Agent: "main"}, "apply_patch edit exec github__issue read tts write"},
		{"agent", toolward.Caller{Agent: "reader", Owner: true}, "github__issue read"},
		{"agent in another spelling", toolward.Caller{Agent: " READER", Owner: true}, "github__issue read"},
		{"agent that denies", toolward.Caller{Agent: "quiet", Owner: true}, "apply_patch cron edit exec read write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := toolNames(s.Tools(c.caller)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			for _, view := range s.View(c.caller) {
				found, reason := s.Find(c.caller, view.Tool.Name)
				if (found != nil) != view.Visible || found == nil && reason.Layer == "" {
					t.Errorf("%s: Find gives %v, %v", view.Tool.Name, found, reason)
				}
				if view.Visible != slices.Contains(s.Tools(c.caller), view.Tool) {
					t.Errorf("%s: View and Tools differ", view.Tool.Name)
				}
			}
		})
	}
}

func TestFindSaysWhy(t *testing.T) {
	s := compile(t, Config{
		Tools:  Tools{Allow: []string{"group:fs", "group:automation", "web_*"}, Deny: []string{"web_fetch"}},
		Agents: []Agent{{ID: "coder", Tools: Tools{Deny: []string{"Group:FS"}}}},
	}, coreTools()...)
	owner := toolward.Caller{Agent: "coder", Owner: true}
	for _, c := range []struct {
		name   string
		caller toolward.Caller
		tool   string
		want   toolward.Reason
	}{
		{"absent", owner, "nope", toolward.Reason{Layer: "registry", Text: "no tool of that name is registered"}},
		{"stranger", toolward.Caller{Agent: "coder"}, "cron", toolward.Reason{Layer: "owner-only", Text: "only the owner may use it, and the caller is not proven to be the owner"}},
		{"denied", owner, "web_fetch", toolward.Reason{Layer: "tools.global", Rule: "tools.deny", Matched: "web_fetch", Text: `tools.deny denies it by "web_fetch"`}},
		{"not allowed", owner, "exec", toolward.Reason{Layer: "tools.global", Rule: "tools.allow", Text: "tools.allow does not name it"}},
		{"denied by a group", owner, "read", toolward.Reason{Layer: "tools.agent (coder)", Rule: "agents.list[0].tools.deny", Matched: "group:fs", Text: `agents.list[0].tools.deny denies it by "group:fs"`}},
		{"visible under an alias", owner, " WEB_Search ", toolward.Reason{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, reason := s.Find(c.caller, c.tool)
			if diff := cmp.Diff(c.want, reason); diff != "" || (found == nil) != (c.want.Text != "") {
				t.Errorf("found %v (-want +got)\n%s", found, diff)
			}
		})
	}
}

// TestDeadPluginListCloses: a list that names only what is not there must not mean "everything".
func TestDeadPluginListCloses(t *testing.T) {
	for _, allow := range [][]string{{"group:plugins"}, {"lobster"}, {"lobster__*"}, {"group:nope"}} {
		s := compile(t, Config{Tools: Tools{Allow: allow}}, coreTools()...)
		if left := s.Tools(toolward.Caller{Owner: true}); len(left) > 0 {
			t.Errorf("allow %v leaves %s", allow, toolNames(left))
		}
	}
}

// TestPluginIDStandsForItsToolsOnly: another server must not get in by naming its tool like an allowed server.
func TestPluginIDStandsForItsToolsOnly(t *testing.T) {
	s := compile(t, Config{Tools: Tools{Allow: []string{"lobster"}}}, slices.Concat(gatetest.Plugin("lobster", "workflow"), gatetest.Plugin("other", "lobster"))...)
	if got := toolNames(s.Tools(toolward.Caller{})); got != "workflow" {
		t.Errorf("got %s", got)
	}
}

// TestOptionalTools are there once somebody asks for them by name.
func TestOptionalTools(t *testing.T) {
	optional := &toolward.Tool{Name: "github__merge", Plugin: "github", Optional: true, Schema: []byte(`{"type":"object"}`)}
	for _, c := range []struct {
		name string
		want bool
		Tools
	}{
		{"nothing", false, Tools{}},
		{"a glob", false, Tools{Allow: []string{"github__*"}}},
		{"everything", false, Tools{Allow: []string{"*"}}},
		{"its name", true, Tools{Allow: []string{"read", "GitHub__Merge"}}},
		{"its name besides", true, Tools{AlsoAllow: []string{"github__merge"}}},
		{"its plug-in", true, Tools{Allow: []string{"github"}}},
		{"all plug-ins", true, Tools{Profile: "coding", AlsoAllow: []string{"group:plugins"}}},
		{"its name in a deny list", false, Tools{Deny: []string{"github__merge"}}},
		{"its name, denied too", false, Tools{Allow: []string{"github__merge"}, Deny: []string{"github"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := compile(t, Config{Tools: c.Tools}, append(coreTools(), optional)...)
			found, reason := s.Find(toolward.Caller{Agent: "a"}, optional.Name)
			if (found != nil) != c.want || slices.Contains(s.Tools(toolward.Caller{Agent: "a"}), optional) != c.want {
				t.Errorf("there: %t, want %t (%v)", found != nil, c.want, reason)
			}
		})
	}
}

// TestAnUnknownDepthIsReadFromTheKey: a face that does not say how deep a sub-agent is must not make it shallow.
func TestAnUnknownDepthIsReadFromTheKey(t *testing.T) {
	s := compile(t, Config{Subagents: SubagentDefaults{MaxSpawnDepth: pointer(2.0)}}, coreTools()...)
	for key, want := range map[toolward.SessionKey]bool{"agent:a:subagent:1": true, "agent:a:subagent:1:subagent:2": false} {
		if found, _ := s.Find(toolward.Caller{Agent: "a", Session: key}, "sessions_spawn"); (found != nil) != want {
			t.Errorf("%s may spawn: %t, want %t", key, found != nil, want)
		}
	}
}

// TestAChildGetsNoOptionalToolThatItsParentLacks: its own lists can name what those of its parent do not.
func TestAChildGetsNoOptionalToolThatItsParentLacks(t *testing.T) {
	optional := &toolward.Tool{Name: "github__merge", Plugin: "github", Optional: true, Schema: []byte(`{"type":"object"}`)}
	named := Tools{AlsoAllow: []string{"github"}}
	s := compile(t, Config{Agents: []Agent{{ID: "asks", Tools: named}, {ID: "asks-too", Tools: named}}}, append(coreTools(), optional)...)
	for _, c := range []struct {
		generations []string // agents, each spawned by the one before
		want        bool
	}{
		{[]string{"asks"}, true},
		{[]string{"asks", "asks-too"}, true},
		{[]string{"plain", "asks"}, false},
		{[]string{"asks", "plain", "asks-too"}, false},
	} {
		caller := toolward.Caller{}
		for depth, agent := range c.generations {
			ceiling := toolward.Ceiling("")
			if depth > 0 {
				ceiling = s.Ceiling(caller)
			}
			caller = toolward.Caller{Agent: agent, Depth: depth, Ceiling: ceiling}
		}
		if found, _ := s.Find(caller, optional.Name); (found != nil) != c.want {
			t.Errorf("%s: there: %t, want %t", c.generations, found != nil, c.want)
		}
	}
}
