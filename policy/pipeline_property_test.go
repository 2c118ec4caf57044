package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"pgregory.net/rapid"
)

// anyLayers draws a configuration of all layers.
func anyLayers() *rapid.Generator[Config] {
	profiles := rapid.SampledFrom([]string{"", "minimal", "coding", "messaging", "full"})
	lists := rapid.Custom(func(t *rapid.T) Lists {
		l := Lists{Allow: anyList().Draw(t, "allow"), Deny: anyList().Draw(t, "deny")}
		if len(l.Allow) == 0 {
			l.AlsoAllow = anyList().Draw(t, "also")
		}
		return l
	})
	tools := rapid.Custom(func(t *rapid.T) Tools {
		l, p := lists.Draw(t, "lists"), lists.Draw(t, "provider")
		return Tools{
			Profile: profiles.Draw(t, "profile"), Allow: l.Allow, AlsoAllow: l.AlsoAllow, Deny: l.Deny,
			ByProvider: map[string]ProviderTools{"openai": {Profile: profiles.Draw(t, "provider profile"), Allow: p.Allow, AlsoAllow: p.AlsoAllow, Deny: p.Deny}},
		}
	})
	return rapid.Custom(func(t *rapid.T) Config {
		group := lists.Draw(t, "group")
		c := Config{
			Tools: tools.Draw(t, "tools"), Agents: []Agent{{ID: "a", Tools: tools.Draw(t, "a")}, {ID: "b", Tools: tools.Draw(t, "b")}},
			Channels:  map[string]Channel{"slack": {Groups: map[string]Group{"g": {Tools: &group, ToolsBySender: Senders{"id:x": lists.Draw(t, "sender")}}}}},
			Subagents: SubagentDefaults{MaxSpawnDepth: pointer(rapid.Float64Range(0, 4).Draw(t, "depth"))},
		}
		c.Tools.UnmatchedAllowlist = rapid.SampledFrom([]string{"", "strip", "closed"}).Draw(t, "unmatched")
		c.Tools.Subagents.Tools = lists.Draw(t, "subagents")
		c.Tools.Sandbox.Tools = SandboxLists{Allow: anyList().Draw(t, "sandbox allow"), AlsoDeny: anyList().Draw(t, "sandbox deny")}
		return c
	})
}

func anyCaller() *rapid.Generator[toolward.Caller] {
	return rapid.Custom(func(t *rapid.T) toolward.Caller {
		agent := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "agent")
		rest := rapid.SampledFrom([]string{"main", "slack:group:g", "subagent:1"}).Draw(t, "session")
		return toolward.Caller{
			Agent: agent, Session: toolward.SessionKey("agent:" + agent + ":" + rest), Owner: rapid.Bool().Draw(t, "owner"),
			Provider:  rapid.SampledFrom([]string{"", "openai", "openai-codex", "x"}).Draw(t, "provider"),
			Sender:    rapid.SampledFrom([]string{"", "x"}).Draw(t, "sender"),
			Sandboxed: rapid.Bool().Draw(t, "sandboxed"), Channel: rapid.SampledFrom([]string{"", "voice"}).Draw(t, "channel"),
		}
	})
}

func subset(t *rapid.T, what string, of, tools []*toolward.Tool) {
	for _, tool := range tools {
		if !slices.Contains(of, tool) {
			t.Fatalf("%s has %s", what, tool.Name)
		}
	}
}

// TestAChildHasNoToolThatItsParentLacks, whatever agent, model, session and sandbox it runs with.
func TestAChildHasNoToolThatItsParentLacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mustCompile(t, anyLayers().Draw(t, "config"))
		parent, child := anyCaller().Draw(t, "parent"), anyCaller().Draw(t, "child")
		parent.Channel, child.Channel, parent.Owner = "", "", parent.Owner || child.Owner
		// What a parent cannot see for want of a model that applies patches is no policy of it.
		parent.Provider, child.Provider = strings.Replace(parent.Provider, "x", "", 1), strings.Replace(child.Provider, "x", "", 1)
		parent.Depth = max(0, rapid.IntRange(0, 3).Draw(t, "depth"))
		if isSubagent(&parent) && parent.Depth == 0 {
			parent.Depth = 1
		}
		child.Depth, child.Ceiling = parent.Depth+1, s.Ceiling(parent)
		withoutPatch := func(tools []*toolward.Tool) []*toolward.Tool {
			return slices.DeleteFunc(tools, func(t *toolward.Tool) bool { return t.Name == "apply_patch" })
		}
		subset(t, "the child", withoutPatch(s.Tools(parent)), withoutPatch(s.Tools(child)))
	})
}

// TestMoreFactsThatRestrictNeverAddATool: a sandbox, a ceiling, a stranger's hand, the HTTP endpoint.
func TestMoreFactsThatRestrictNeverAddATool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mustCompile(t, anyLayers().Draw(t, "config"))
		before := anyCaller().Draw(t, "caller")
		before.Sandboxed = false
		after := before
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			after.Sandboxed = true
		case 1:
			after.Owner = false
		case 2:
			after.Surface = toolward.SurfaceHTTP
		case 3:
			after.Ceiling = s.Ceiling(anyCaller().Draw(t, "parent"))
		}
		subset(t, "the restricted caller", s.Tools(before), s.Tools(after))
	})
}

// TestViewsAreConsistent: what is listed is what is found, with a reason for what is not, warm and cold.
func TestViewsAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyLayers().Draw(t, "config")
		s, caller := mustCompile(t, c), anyCaller().Draw(t, "caller")
		visible := s.Tools(caller)
		for range 2 {
			for _, v := range s.View(caller) {
				if v.Visible != slices.Contains(visible, v.Tool) || v.Visible == (v.Reason.Text != "") {
					t.Fatalf("%s: %+v", v.Tool.Name, v)
				}
			}
		}
		if diff := cmp.Diff(toolNames(visible), toolNames(mustCompile(t, c).Tools(caller))); diff != "" {
			t.Fatal(diff)
		}
	})
}
