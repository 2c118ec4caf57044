package visible

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"pgregory.net/rapid"
)

// anyLayers draws a configuration of all layers.
func anyLayers() *rapid.Generator[Config] {
	profiles := rapid.SampledFrom([]string{"", "minimal", "coding", "messaging", "full"})
	lists := rapid.Custom(func(t *rapid.T) Lists {
		l := Lists{Allow: gatetest.AnyList().Draw(t, "allow"), Deny: gatetest.AnyList().Draw(t, "deny")}
		if len(l.Allow) == 0 {
			l.AlsoAllow = gatetest.AnyList().Draw(t, "also")
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
		c.Tools.Sandbox.Tools = SandboxLists{Allow: gatetest.AnyList().Draw(t, "sandbox allow"), AlsoDeny: gatetest.AnyList().Draw(t, "sandbox deny")}
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
	optional := &toolward.Tool{Name: "files__wipe", Plugin: "files", Optional: true, Schema: someServers[0].Schema}
	rapid.Check(t, func(t *rapid.T) {
		s, _, err := compiled(anyLayers().Draw(t, "config"), append(slices.Clone(someTools), optional))
		if err != nil {
			t.Fatal(err)
		}
		parent, child := anyCaller().Draw(t, "parent"), anyCaller().Draw(t, "child")
		parent.Channel, child.Channel, parent.Owner = "", "", parent.Owner || child.Owner
		// What a parent cannot see for want of a model that applies patches is no policy of it.
		parent.Provider, child.Provider = strings.Replace(parent.Provider, "x", "", 1), strings.Replace(child.Provider, "x", "", 1)
		parent.Depth = max(0, rapid.IntRange(0, 3).Draw(t, "depth"))
		if isSubagent(&parent) && parent.Depth == 0 {
			parent.Depth = 1
		}
		ancestor := anyCaller().Draw(t, "grandparent")
		ancestor.Channel, ancestor.Owner = "", true
		ancestor.Provider = strings.Replace(ancestor.Provider, "x", "", 1)
		parent.Ceiling = s.Ceiling(ancestor)
		child.Depth, child.Ceiling = parent.Depth+1, s.Ceiling(parent)
		withoutPatch := func(tools []*toolward.Tool) []*toolward.Tool {
			return slices.DeleteFunc(tools, func(t *toolward.Tool) bool { return t.Name == "apply_patch" })
		}
		subset(t, "the child", withoutPatch(s.Tools(parent)), withoutPatch(s.Tools(child)))
		// What the grandparent gave up for being a sub-agent itself is not of its ceiling; what its lists leave is.
		if !isSubagent(&ancestor) {
			subset(t, "the grandchild", withoutPatch(s.Tools(ancestor)), withoutPatch(s.Tools(child)))
		}
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

// TestEveryStepSaysWhatFindSays: the first step that takes a tool is the one that Find names.
func TestEveryStepSaysWhatFindSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, caller := mustCompile(t, anyLayers().Draw(t, "config")), anyCaller().Draw(t, "caller")
		if rapid.Bool().Draw(t, "http") {
			caller.Surface = toolward.SurfaceHTTP
		}
		removed := map[string]string{}
		for _, step := range s.Layers(caller) {
			for _, r := range step.Removed {
				removed[r.Tool] = r.Reason.Text
			}
		}
		for _, tool := range someTools {
			found, reason := s.Find(caller, tool.Name)
			if hiding, hidden := s.Hides(&caller, tool); hidden != (found == nil) || hiding != reason {
				t.Fatalf("%s: found %t %v, hidden %t %v", tool.Name, found != nil, reason, hidden, hiding)
			}
			if removed[tool.Name] != reason.Text {
				t.Fatalf("%s: the layers say %q, Find says %q", tool.Name, removed[tool.Name], reason.Text)
			}
			first := toolward.Reason{}
			trace := s.LayerTrace(caller, tool.Name)
			if i := slices.IndexFunc(trace, func(r StepResult) bool { return r.Takes != nil }); i >= 0 {
				first = *trace[i].Takes
			}
			if first != reason {
				t.Fatalf("%s: the trace says %v, Find says %v", tool.Name, first, reason)
			}
		}
	})
}

// TestAListThatIsAddedNeverAddsATool: every list of every layer, after alsoAllow is folded in; and every profile.
func TestAListThatIsAddedNeverAddsATool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		with, caller := anyLayers().Draw(t, "config"), anyCaller().Draw(t, "caller")
		without := with
		if rapid.IntRange(0, 9).Draw(t, "profiles") == 0 {
			without.Tools.Profile = ""
			without.Agents = slices.Clone(with.Agents)
			for i := range without.Agents {
				without.Agents[i].Tools.Profile = ""
			}
		} else {
			dropped, i := rapid.IntRange(0, countLists(with, restricts)-1).Draw(t, "list"), 0
			without = mapLists(with, func(role listRole, list []string) []string {
				if !restricts(role) {
					return list
				}
				if i++; i-1 == dropped {
					return nil
				}
				return list
			})
		}
		subset(t, "the caller with one list more", mustCompile(t, without).Tools(caller), mustCompile(t, with).Tools(caller))
	})
}

// TestADenyEntryAnywhereNeverAddsATool: one more entry in any deny list of the configuration.
func TestADenyEntryAnywhereNeverAddsATool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, caller := anyLayers().Draw(t, "config"), anyCaller().Draw(t, "caller")
		denies := func(role listRole) bool { return role == denyList }
		at, i := rapid.IntRange(0, countLists(before, denies)-1).Draw(t, "list"), 0
		more := gatetest.AnyList().Filter(func(l []string) bool { return len(l) > 0 }).Draw(t, "more")
		after := mapLists(before, func(role listRole, list []string) []string {
			if role != denyList {
				return list
			}
			if i++; i-1 == at {
				return slices.Concat(list, more)
			}
			return list
		})
		subset(t, "the caller who is denied more", mustCompile(t, before).Tools(caller), mustCompile(t, after).Tools(caller))
	})
}

// TestOrderInsideAnyListDoesNotMatter: each list of each layer in another order leaves the same tools and the same ceiling.
func TestOrderInsideAnyListDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, caller := anyLayers().Draw(t, "config"), anyCaller().Draw(t, "caller")
		other := mapLists(c, func(_ listRole, list []string) []string {
			if len(list) < 2 { // an empty list is not the same as none
				return list
			}
			return rapid.Permutation(list).Draw(t, "order")
		})
		a, b := mustCompile(t, c), mustCompile(t, other)
		if diff := cmp.Diff(toolNames(a.Tools(caller)), toolNames(b.Tools(caller))); diff != "" {
			t.Fatal(diff)
		}
		child := caller
		child.Depth++
		childOfA, childOfB := child, child
		childOfA.Ceiling, childOfB.Ceiling = a.Ceiling(caller), b.Ceiling(caller)
		if diff := cmp.Diff(toolNames(a.Tools(childOfA)), toolNames(b.Tools(childOfB))); diff != "" {
			t.Fatal("children: " + diff)
		}
	})
}

// listRole says what a list of a configuration is.
type listRole int

const (
	denyList listRole = iota
	allowList
	alsoList
	subagentAllow // takes its names off a default deny list, so it both allows and restricts
	sandboxList   // replaces a default list
)

// restricts reports whether a list of this role can only take tools away.
func restricts(role listRole) bool { return role == denyList || role == allowList }

func countLists(c Config, count func(listRole) bool) (n int) {
	mapLists(c, func(role listRole, list []string) []string {
		if count(role) {
			n++
		}
		return list
	})
	return n
}

// mapLists returns the configuration with every list replaced by what change makes of it.
func mapLists(c Config, change func(listRole, []string) []string) Config {
	lists := func(l Lists) Lists {
		return Lists{Allow: change(allowList, l.Allow), AlsoAllow: change(alsoList, l.AlsoAllow), Deny: change(denyList, l.Deny)}
	}
	tools := func(t Tools) Tools {
		l := lists(t.lists())
		t.Allow, t.AlsoAllow, t.Deny = l.Allow, l.AlsoAllow, l.Deny
		t.ByProvider = maps.Clone(t.ByProvider)
		for _, key := range sortedKeys(t.ByProvider) {
			p := t.ByProvider[key]
			l := lists(p.lists())
			p.Allow, p.AlsoAllow, p.Deny = l.Allow, l.AlsoAllow, l.Deny
			t.ByProvider[key] = p
		}
		t.SelfLimit = change(denyList, t.SelfLimit)
		s := &t.Sandbox.Tools
		s.Allow, s.AlsoDeny = change(sandboxList, s.Allow), change(denyList, s.AlsoDeny)
		return t
	}
	selfLimit := c.Tools.SelfLimit
	c.Tools = tools(c.Tools)
	c.Tools.SelfLimit = selfLimit // agents alone have one
	sub := &c.Tools.Subagents.Tools
	sub.Allow, sub.AlsoAllow, sub.Deny = change(subagentAllow, sub.Allow), change(subagentAllow, sub.AlsoAllow), change(denyList, sub.Deny)
	c.Agents = slices.Clone(c.Agents)
	for i := range c.Agents {
		c.Agents[i].Tools = tools(c.Agents[i].Tools)
	}
	group := c.Channels["slack"].Groups["g"]
	everybody, bySender := lists(*group.Tools), Senders{}
	for _, key := range sortedKeys(group.ToolsBySender) {
		bySender[key] = lists(group.ToolsBySender[key])
	}
	c.Channels = map[string]Channel{"slack": {Groups: map[string]Group{"g": {Tools: &everybody, ToolsBySender: bySender}}}}
	return c
}

// TestTheOrderOfLayersDoesNotMatter is law L2 of the tool policy: the order decides only which layer is named.
func TestTheOrderOfLayersDoesNotMatter(t *testing.T) {
	inventory := newInventory(someTools, nil, false)
	rapid.Check(t, func(t *rapid.T) {
		var layers pipeline
		for range rapid.IntRange(0, 4).Draw(t, "layers") {
			as := layer{label: "x", strips: rapid.Bool().Draw(t, "strips")}
			layers = append(layers, inventory.layer(as, restriction{Allow: gatetest.AnyList().Draw(t, "allow"), Deny: gatetest.AnyList().Draw(t, "deny")}))
		}
		other := pipeline(rapid.Permutation(layers).Draw(t, "order"))
		if diff := cmp.Diff(layers.keeps(len(someTools)), other.keeps(len(someTools))); diff != "" {
			t.Fatal(diff)
		}
		// L1 for every layer: one more takes away only; and the set says what the reasons say.
		kept := layers.keeps(len(someTools))
		for i, tool := range someTools {
			if _, gone := layers.remover(tool.Name, tool.Plugin); gone == kept.has(i) {
				t.Fatalf("%s: kept %t, and a layer removes it: %t", tool.Name, kept.has(i), gone)
			}
			if len(layers) > 0 && kept.has(i) && !layers[1:].keeps(len(someTools)).has(i) {
				t.Fatalf("a layer added %s", tool.Name)
			}
		}
	})
}
