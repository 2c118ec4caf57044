package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
)

func toolNames(tools []*toolward.Tool) string {
	var all []string
	for _, t := range tools {
		all = append(all, t.Name)
	}
	return strings.Join(all, " ")
}

func TestLayers(t *testing.T) {
	tools := slices.Concat(coreTools(), plugin("github", "github__issue", "github__delete"))
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
	s := compile(t, Config{Tools: Tools{Allow: []string{"lobster"}}}, slices.Concat(plugin("lobster", "workflow"), plugin("other", "lobster"))...)
	if got := toolNames(s.Tools(toolward.Caller{})); got != "workflow" {
		t.Errorf("got %s", got)
	}
}

func TestAdopt(t *testing.T) {
	s := compile(t, Config{Tools: Tools{Deny: []string{"todo", "mcp__evil__*", "files"}}}, coreTools()...)
	guard := *s.tools["tts"]
	guard.OwnerOnly = true
	s2 := compile(t, Config{}, &guard)
	for _, c := range []struct {
		name   string
		s      *Snapshot
		form   toolward.Tool
		owner  bool
		adopts bool
	}{
		{"form of a tool of ours", s, toolward.Tool{Name: "read"}, false, true},
		{"form that we do not have", s, toolward.Tool{Name: "skill"}, false, true},
		{"denied by name", s, toolward.Tool{Name: "todo"}, true, false},
		{"tool of a client's server", s, toolward.Tool{Name: "mcp__github__issue", Plugin: "github"}, false, true},
		{"denied server by glob", s, toolward.Tool{Name: "mcp__evil__x", Plugin: "evil"}, true, false},
		{"denied server by id", s, toolward.Tool{Name: "mcp__files__x", Plugin: "files"}, true, false},
		{"server's tool that passes for ours", s, toolward.Tool{Name: "read", Plugin: "github"}, true, false},
		{"bad name", s, toolward.Tool{Name: "Read"}, true, false},
		{"bad name of a server's tool", s, toolward.Tool{Name: "mcp__a;b", Plugin: "a"}, true, false},
		{"mcp name without a server", s, toolward.Tool{Name: "mcp__a__b"}, true, true},
		{"owner-only by name", s, toolward.Tool{Name: "cron"}, false, false},
		{"owner-only by its own flag", s, toolward.Tool{Name: "x", OwnerOnly: true}, false, false},
		{"owner-only by our flag", s2, toolward.Tool{Name: "tts"}, false, false},
		{"owner", s2, toolward.Tool{Name: "tts"}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, reason := c.s.Adopt(toolward.Caller{Owner: c.owner}, &c.form)
			if (got != nil) != c.adopts || got == nil && reason.Text == "" {
				t.Errorf("got %v, %v", got, reason)
			}
		})
	}
	if got, _ := s2.Adopt(toolward.Caller{Owner: true}, &toolward.Tool{Name: "tts"}); got == nil || !got.OwnerOnly {
		t.Error("our owner-only flag is lost")
	}
}

func TestDecode(t *testing.T) {
	s := compile(t, Config{}, append(coreTools(), plugin("p", "p__x")...)...)
	params, err := s.Decode(s.tools["write"], json.RawMessage(`{"file_path":"a","content":["x",{"text":"y"}]}`))
	if err != nil || string(params.Canonical()) != `{"content":"xy","path":"a"}` {
		t.Errorf("got %s, %v", params.Canonical(), err)
	}
	for _, c := range []struct{ tool, in, field, text string }{
		{"read", `{"path":5}`, "path", "has the wrong type (expected string)"},
		{"read", `{"path":"a\u0000"}`, "path", "contains a NUL character"},
		{"exec", `{"command":"\u0000"}`, "command", "contains a NUL character"},
		{"p__x", `{"evil\u202e":1}`, "evil⟦U+202E⟧", "is not a parameter of this tool"},
	} {
		_, err := s.Decode(s.tools[c.tool], json.RawMessage(c.in))
		invalid, ok := errors.AsType[*toolward.InvalidArgs](err)
		if !ok || invalid.Field != c.field || invalid.Text != c.text {
			t.Errorf("%s %s: got %#v", c.tool, c.in, err)
		}
	}
	form := &toolward.Tool{Name: "skill", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)}
	if _, err := s.Decode(form, json.RawMessage(`{"name":"x"}`)); err != nil {
		t.Errorf("a form with a schema: %v", err)
	}
	if _, err := s.Decode(&toolward.Tool{Name: "skill"}, json.RawMessage(`{}`)); err == nil {
		t.Error("a form without a schema and decoder was decoded")
	}
}

func TestNoSnapshotRefusesEverything(t *testing.T) {
	for name, s := range map[string]toolward.Snapshot{"live": (&Live{}).Snapshot(), "zero": &Snapshot{}} {
		r := request(t, "read", json.RawMessage(`{}`), toolward.Facts{})
		tool, reason := s.Find(toolward.Caller{Owner: true}, "read")
		if tool != nil || reason.Text == "" || len(s.Tools(toolward.Caller{Owner: true})) > 0 || s.Judge(r).Verdict != toolward.Deny {
			t.Errorf("%s: something is allowed", name)
		}
	}
	live := NewLive(compile(t, Config{}, coreTools()...))
	before := live.Snapshot()
	live.Swap(compile(t, Config{Tools: Tools{Deny: []string{"read"}}}, coreTools()...))
	if tool, _ := live.Snapshot().Find(toolward.Caller{}, "read"); tool != nil || before.Revision() == live.Snapshot().Revision() {
		t.Error("the swapped snapshot is not in force")
	}
}
