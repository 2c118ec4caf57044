package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"pgregory.net/rapid"
)

func (p Possible) has(v toolward.Verdict) bool {
	other := p
	other.add(v)
	return other == p
}

// TestOutlookCoversEveryJudgment: whatever a call turns out to be, what becomes of it is in the outlook, under the
// row that judged it. Nothing is promised to run that asks or is refused.
func TestOutlookCoversEveryJudgment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig().Draw(t, "config")
		c.Agents = []Agent{{ID: "main", TEG: AgentTEG{Tools: anyOverrides().Draw(t, "overrides")}}}
		c.TEG.Rules = someRules().Draw(t, "rules")
		s, r := mustCompile(t, c), anyRequest().Draw(t, "request")
		r.Call.Caller.Owner = true // strangers do not get as far as Judge
		r.Call.Caller.Sandboxed = r.Call.Host == toolward.HostSandbox
		j := s.Judge(r)
		files := slices.Contains([]string{"read", "list", "search", "write", "edit", "apply_patch", "image"}, r.Tool.Name)
		if j.Finding != "" && !(j.Finding == findPathEscape && files) {
			return // what validation finds comes with the call
		}
		sub := newSubject(r)
		named, rest := false, false
		for _, one := range s.Outlook(r.Call.Caller, r.Tool.Name, r.Level).Cases {
			if one.Row != j.Row {
				continue
			}
			if key, _ := sub.actionKeys(); key != "" && slices.Contains(one.Actions, strings.TrimSuffix(key, ":")) {
				named = true
				if one.Possible.has(j.Verdict) {
					return
				}
			}
			rest = rest || (len(one.Actions) == 0 || slices.Contains(one.Actions, otherAction)) && one.Possible.has(j.Verdict)
		}
		if rest && !named {
			return
		}
		t.Fatalf("%s %q at %s: row %q gives %s, which is not in the outlook:\n%+v", r.Tool.Name, r.Params.Text("action"), r.Level, j.Row, j.Verdict,
			s.Outlook(r.Call.Caller, r.Tool.Name, r.Level).Cases)
	})
}

// someRules draws rules whose conditions hold always, never, and for some calls.
func someRules() *rapid.Generator[[]Rule] {
	return rapid.Custom(func(t *rapid.T) (rules []Rule) {
		for i := range rapid.IntRange(0, 3).Draw(t, "n") {
			rules = append(rules, Rule{
				Name: fmt.Sprint("rule ", i), Reason: "because",
				Tool:   rapid.SampledFrom([]string{"*", "write", "process", "nodes", "message", "github", "group:fs", "exec", "gateway"}).Draw(t, "tool"),
				Action: rapid.SampledFrom([]string{"", "", "kill", "send", "invoke", "invoke:sms.send", "config.patch", "nonsense"}).Draw(t, "action"),
				When:   rapid.SampledFrom([]string{"true", "false", "level == 'normal'", "caller.owner"}).Draw(t, "when"),
				Then:   rapid.SampledFrom(thenNames).Draw(t, "then"),
			})
		}
		return rules
	})
}

// TestOutlookSeesWhatTheCallerSees: hidden tools have no possible end, and the first step that takes a tool is the one
// that Find names.
func TestOutlookSeesWhatTheCallerSees(t *testing.T) {
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
			o := s.Outlook(caller, tool.Name, toolward.Normal)
			if o.Visible != (found != nil) || o.Visible != (o.Possible != Possible{}) || !o.Visible && *o.Removed != reason {
				t.Fatalf("%s: found %t %v, outlook %+v", tool.Name, found != nil, reason, o)
			}
			if removed[tool.Name] != reason.Text {
				t.Fatalf("%s: the layers say %q, Find says %q", tool.Name, removed[tool.Name], reason.Text)
			}
			first := toolward.Reason{}
			if i := slices.IndexFunc(s.LayerTrace(caller, tool.Name), func(r StepResult) bool { return r.Takes != nil }); i >= 0 {
				first = *s.LayerTrace(caller, tool.Name)[i].Takes
			}
			if first != reason {
				t.Fatalf("%s: the trace says %v, Find says %v", tool.Name, first, reason)
			}
		}
	})
}

func TestOutlookCases(t *testing.T) {
	tools := slices.Concat(coreTools(), plugin("github", "github__issue"))
	s := compile(t, Config{
		TEG: TEG{
			Preset: PresetWorkspace, Web: Web{AllowHosts: []string{"example.org"}}, Enable: []string{"nodes.camera_snap"},
			Tools: map[string]string{"message.pin": "blocked", "web_search": "needs_approval", "process.kill": "blocked"},
		},
		Agents: []Agent{
			{ID: "closed", Tools: Tools{Exec: Exec{Security: "deny"}, FS: FS{WorkspaceOnly: pointer(true)}}},
		},
	}, tools...)
	for _, c := range []struct {
		agent, tool string
		level       toolward.Level
		want        Possible
	}{
		{"main", "memory_get", toolward.Normal, Possible{Allow: true}},
		{"main", "memory_get", toolward.Lockdown, Possible{Ask: true}},
		{"main", "web_search", toolward.Normal, Possible{Ask: true}},
		{"main", "web_fetch", toolward.Normal, Possible{Allow: true}},
		{"main", "web_fetch", toolward.Elevated, Possible{Allow: true, Ask: true}}, // to the hosts of the list
		{"main", "write", toolward.Normal, Possible{Allow: true, Ask: true, Deny: true}},
		{"main", "exec", toolward.Normal, Possible{Allow: true, Ask: true, Deny: true}},
		{"closed", "exec", toolward.Normal, Possible{Deny: true}},
		{"main", "process", toolward.Normal, Possible{Allow: true, Ask: true, Deny: true}},
		{"main", "github__issue", toolward.Normal, Possible{Ask: true}},
		{"main", "nothing_yet", toolward.Normal, Possible{Ask: true}},
	} {
		t.Run(c.agent+" "+c.tool+" "+c.level.String(), func(t *testing.T) {
			caller := toolward.Caller{Agent: c.agent, Owner: true}
			if got := s.Outlook(caller, c.tool, c.level).Possible; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("an action of its own, and the same on another session's process", func(t *testing.T) {
		var got []string
		for _, one := range s.Outlook(toolward.Caller{Agent: "main", Owner: true}, "process", toolward.Normal).Cases {
			if one.Possible.Deny {
				got = append(append(got, one.Row), one.Actions...)
			}
		}
		if diff := cmp.Diff([]string{"process: end own", "kill", "process: other", "kill"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an action that no row names", func(t *testing.T) {
		cases := s.Outlook(toolward.Caller{Agent: "main", Owner: true}, "message", toolward.Normal).Cases
		last := cases[len(cases)-1]
		if !slices.Equal(last.Actions, []string{"pin"}) || last.Possible != (Possible{Deny: true}) || !slices.Equal(last.Overrides, []string{"message.pin"}) {
			t.Errorf("%+v", cases)
		}
	})
	t.Run("rules", func(t *testing.T) {
		s := compile(t, Config{TEG: TEG{Rules: []Rule{
			{Name: "never", Tool: "web_search", When: "true", Then: "deny", Reason: "offline"},
			{Name: "late", Tool: "web_fetch", When: "level == 'elevated'", Then: "ask", Reason: "look"},
			{Name: "trusted", Tool: "github__issue", When: "caller.owner", Then: "allow", Reason: "ours"},
		}}}, tools...)
		for tool, want := range map[string]Possible{
			"web_search": {Deny: true}, "web_fetch": {Allow: true, Ask: true}, "github__issue": {Allow: true, Ask: true}, "tts": {Allow: true},
		} {
			o := s.Outlook(toolward.Caller{Agent: "main"}, tool, toolward.Normal)
			if o.Possible != want || (len(o.Cases[0].Rules) == 0) != (tool == "tts") {
				t.Errorf("%s: %+v", tool, o)
			}
		}
	})
	t.Run("files outside the workspace", func(t *testing.T) {
		for _, one := range s.Outlook(toolward.Caller{Agent: "closed"}, "read", toolward.Normal).Cases {
			if one.Row == "read: outside, protected" && one.Possible != (Possible{Allow: true, Deny: true}) {
				t.Errorf("%+v", one)
			}
		}
	})
}

// TestLayersSaysWhatEachStepDoes: all ten are there, in order, with their keys and what they take.
func TestLayersSaysWhatEachStepDoes(t *testing.T) {
	s := compile(t, Config{
		Tools:  Tools{Profile: "coding", Deny: []string{"process"}},
		Agents: []Agent{{ID: "coder", Tools: Tools{Allow: []string{"group:fs", "exec", "process", "no_such"}, SelfLimit: []string{"exec"}}}},
	}, coreTools()...)
	steps := s.Layers(toolward.Caller{Agent: "coder"})
	var labels []string
	taken := map[string][]string{}
	for _, step := range steps {
		label := step.Label
		if step.Absent != "" {
			label = "-" + label
		}
		labels = append(labels, label)
		for _, r := range step.Removed {
			taken[step.Label] = append(taken[step.Label], r.Tool)
		}
	}
	want := []string{
		"before the layers", "tools.profile (coding)", "-tools.provider-profile", "tools.global", "-tools.global-provider",
		"tools.agent (coder)", "-tools.agent-provider", "-group tools.allow", "-sandbox tools.allow", "-subagent tools.allow",
		"tools.self-limit (coder)", "-inherited tools",
	}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"process"}, taken["tools.global"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"exec"}, taken["tools.self-limit (coder)"]); diff != "" {
		t.Error(diff)
	}
	agent := steps[5]
	if agent.Number != 5 || agent.AllowKey != "agents.list[0].tools.allow" || !slices.Equal(agent.Unknown, []string{"no_such"}) {
		t.Errorf("%+v", agent)
	}
}

func TestKnownTools(t *testing.T) {
	s := compile(t, Config{Agents: []Agent{{ID: "Zed"}, {ID: "abe"}}}, append(plugin("b", "b__x"), append(plugin("a", "z__y"), coreTools()[0])...)...)
	known := s.KnownTools()
	if len(known) != 25+2+1+2 {
		t.Fatalf("%d tools", len(known))
	}
	if k := known[0]; k.Name != "read" || k.Section != "fs" || !k.Available {
		t.Errorf("%+v", k)
	}
	if k := known[1]; k.Name != "write" || k.Available {
		t.Errorf("%+v", k)
	}
	if last := known[len(known)-1]; last.Name != "b__x" || last.Plugin != "b" || last.Section != SectionPlugin {
		t.Errorf("%+v", last)
	}
	if diff := cmp.Diff([]string{"abe", "zed"}, s.AgentIDs()); diff != "" {
		t.Error(diff)
	}
	if !s.Knows("cron") || !s.Knows("z__y") || s.Knows("nope") {
		t.Error("Knows")
	}
}
