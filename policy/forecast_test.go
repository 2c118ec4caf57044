package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy/visible"
	"pgregory.net/rapid"
)

func (p Possible) has(v toolward.Verdict) bool {
	other := p
	other.add(v)
	return other == p
}

// TestForecastCoversEveryJudgment: whatever a call turns out to be, what becomes of it is in the outlook, under the
// row that judged it. Nothing is promised to run that asks or is refused.
func TestForecastCoversEveryJudgment(t *testing.T) {
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
		for _, one := range s.Forecast(r.Call.Caller, r.Tool.Name, r.Level).Cases {
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
			s.Forecast(r.Call.Caller, r.Tool.Name, r.Level).Cases)
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

// TestForecastSeesWhatTheCallerSees: hidden tools have no possible end, and the step that takes a tool is the one that
// Find names.
func TestForecastSeesWhatTheCallerSees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig().Draw(t, "config")
		c.Agents = []Agent{{ID: "main", Tools: anyTools().Draw(t, "agent's tools")}}
		s := mustCompile(t, c)
		caller := toolward.Caller{
			Agent: rapid.SampledFrom([]string{"main", "other"}).Draw(t, "agent"), Owner: rapid.Bool().Draw(t, "owner"),
			Sandboxed: rapid.Bool().Draw(t, "sandboxed"), Depth: rapid.IntRange(0, 2).Draw(t, "depth"),
			Provider: rapid.SampledFrom([]string{"", "openai"}).Draw(t, "provider"),
		}
		if rapid.Bool().Draw(t, "http") {
			caller.Surface = toolward.SurfaceHTTP
		}
		for _, tool := range someTools {
			found, reason := s.Find(caller, tool.Name)
			o := s.Forecast(caller, tool.Name, toolward.Normal)
			if o.Visible != (found != nil) || o.Visible != (o.Possible != Possible{}) || !o.Visible && *o.Removed != reason {
				t.Fatalf("%s: found %t %v, outlook %+v", tool.Name, found != nil, reason, o)
			}
		}
	})
}

func TestForecastCases(t *testing.T) {
	tools := slices.Concat(coreTools(), gatetest.Plugin("github", "github__issue"))
	s := compile(t, Config{
		TEG: TEG{
			Preset: PresetWorkspace, Web: Web{AllowHosts: []string{"example.org"}}, Enable: []string{"nodes.camera_snap"},
			Tools: map[string]string{"message.pin": "blocked", "web_search": "needs_approval", "process.kill": "blocked"},
		},
		Agents: []Agent{
			{ID: "closed", Tools: visible.Tools{Exec: visible.Exec{Security: "deny"}, FS: visible.FS{WorkspaceOnly: pointer(true)}}},
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
			if got := s.Forecast(caller, c.tool, c.level).Possible; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("an action of its own, and the same on another session's process", func(t *testing.T) {
		var got []string
		for _, one := range s.Forecast(toolward.Caller{Agent: "main", Owner: true}, "process", toolward.Normal).Cases {
			if one.Possible.Deny {
				got = append(append(got, one.Row), one.Actions...)
			}
		}
		if diff := cmp.Diff([]string{"process: end own", "kill", "process: other", "kill"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an action that no row names", func(t *testing.T) {
		cases := s.Forecast(toolward.Caller{Agent: "main", Owner: true}, "message", toolward.Normal).Cases
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
			o := s.Forecast(toolward.Caller{Agent: "main"}, tool, toolward.Normal)
			if o.Possible != want || (len(o.Cases[0].Rules) == 0) != (tool == "tts") {
				t.Errorf("%s: %+v", tool, o)
			}
		}
	})
	t.Run("files outside the workspace", func(t *testing.T) {
		for _, one := range s.Forecast(toolward.Caller{Agent: "closed"}, "read", toolward.Normal).Cases {
			if one.Row == "read: outside, protected" && one.Possible != (Possible{Allow: true, Deny: true}) {
				t.Errorf("%+v", one)
			}
		}
	})
}
