package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy/report"
)

// ruled is a configuration with rules that are named by their position, so that tables stay short.
func ruled(rules ...Rule) Config {
	for i := range rules {
		if rules[i].Name == "" {
			rules[i].Name = string(rune('a' + i))
		}
		rules[i].Reason = "because"
	}
	return Config{TEG: TEG{Rules: rules}}
}

func on(tool, then, when string) Rule { return Rule{Tool: tool, Then: then, When: when} }

func TestRules(t *testing.T) {
	const normal, ask, deny, allow = toolward.Normal, toolward.Ask, toolward.Deny, toolward.Allow
	blockedBy := func(layers string) outcome { return outcome{deny, toolward.CodeBlocked, "", false, false, "", layers} }
	askedBy := func(layers string) outcome { return outcome{ask, "", "", false, false, "", layers} }
	free := func(layers string) outcome { return outcome{allow, "", "", false, false, "", layers} }
	grantable := func(layers string) outcome { return outcome{ask, "", "", true, true, "", layers} }
	const yes, no, broken = "true", "false", "params.absent == 1"
	withURL := func(u string) toolward.Facts {
		return toolward.Facts{URLs: []string{u}, Hosts: []string{"https://example.org:443"}}
	}
	tightened := ruled(on("web_fetch", "allow", yes))
	tightened.TEG.Tools = map[string]string{"web_fetch": "needs_approval"}
	insisting := ruled(on("write", "allow", yes))
	insisting.Agents = []Agent{{ID: "main", TEG: AgentTEG{Tools: map[string]string{"write": "needs_approval"}}}}
	refused := ruled(on("write", "allow", yes))
	refused.TEG.Tools = map[string]string{"write": "blocked"}
	camera := ruled(on("nodes", "allow", yes))
	camera.TEG.Enable = []string{"nodes.camera_snap"}
	hosts := ruled(on("web_fetch", "ask", yes))
	hosts.TEG.Web.AllowHosts = []string{"example.org"}

	for _, c := range []struct {
		name   string
		config Config
		level  toolward.Level
		tool   string
		params string
		facts  toolward.Facts
		want   outcome
	}{
		{"deny", ruled(on("read", "deny", yes)), normal, "read", `{}`, target("workspace", "read"), blockedBy("class teg.rules")},
		{"deny that does not hold", ruled(on("read", "deny", no)), normal, "read", `{}`, target("workspace", "read"), free("class")},
		{"deny for another tool", ruled(on("write", "deny", yes)), normal, "read", `{}`, target("workspace", "read"), free("class")},
		{"ask", ruled(on("read", "ask", yes)), normal, "read", `{}`, target("workspace", "read"), askedBy("class teg.rules")},
		{"ask where people decide anyway: no grant", ruled(on("write", "ask", yes)), normal, "write", `{}`, target("workspace", "write"), askedBy("class teg.rules")},
		{"ask beats allowed hosts", hosts, elevated, "web_fetch", `{}`, withURL("https://example.org/"), askedBy("class teg.rules level")},
		{"allow", ruled(on("write", "allow", yes)), normal, "write", `{}`, target("workspace", "write"), free("class teg.rules")},
		{"allow that does not hold", ruled(on("write", "allow", no)), normal, "write", `{}`, target("workspace", "write"), grantable("class")},
		{"allow, elevated", ruled(on("write", "allow", yes)), elevated, "write", `{}`, target("workspace", "write"), grantable("class teg.rules level")},
		{"allow, lockdown", ruled(on("write", "allow", yes)), lockdown, "write", `{}`, target("workspace", "write"), askedBy("class teg.rules level")},
		{"allow, critical", ruled(on("write", "allow", yes)), normal, "write", `{}`, target("secret", "write"), askedBy("class place")},
		{"allow, blocked", ruled(on("write", "allow", yes)), normal, "write", `{}`, target("self", "write"), blockedBy("class place")},
		{"allow, blocked by the operator", refused, normal, "write", `{}`, target("workspace", "write"), blockedBy("class teg.tools")},
		{"allow, enabled", camera, normal, "nodes", `{"action":"camera_snap"}`, toolward.Facts{}, askedBy("class")},
		{"allow, asked for by the operator", tightened, normal, "web_fetch", `{}`, withURL("https://example.org/"), free("class teg.tools teg.rules")},
		{"allow, agent insists", insisting, normal, "write", `{}`, target("workspace", "write"), grantable("class agents.list[].teg.tools")},
		{"allow, command", ruled(on("exec", "allow", yes)), normal, "exec", `{}`, toolward.Facts{Command: "ls"}, grantable("class exec")},
		{"allow, finding that asks", ruled(on("web_fetch", "allow", yes)), normal, "web_fetch", `{}`, withURL("https://example.org/" + strings.Repeat("a", 3000)), askedBy("class validation")},
		{"allow, finding that denies", ruled(on("web_fetch", "allow", yes)), normal, "web_fetch", `{}`, withURL("file:///etc/passwd"), outcome{deny, toolward.CodeValidation, "url_scheme", false, false, "", "class validation"}},
		{"finding before rule", ruled(on("web_fetch", "deny", yes)), normal, "web_fetch", `{}`, withURL("file:///etc/passwd"), outcome{deny, toolward.CodeValidation, "url_scheme", false, false, "", "class validation"}},
		{"ask, command", ruled(on("exec", "ask", yes)), normal, "exec", `{}`, toolward.Facts{Command: "ls"}, askedBy("class teg.rules exec")},
		{"deny, command", ruled(on("exec", "deny", yes)), normal, "exec", `{}`, toolward.Facts{Command: "ls"}, blockedBy("class teg.rules")},
		{"deny before ask before allow", ruled(on("write", "allow", yes), on("write", "ask", yes), on("write", "deny", yes)), normal, "write", `{}`, target("workspace", "write"), blockedBy("class teg.rules")},
		{"ask before allow", ruled(on("write", "allow", yes), on("write", "ask", yes)), normal, "write", `{}`, target("workspace", "write"), askedBy("class teg.rules")},
		{"deny that fails", ruled(on("read", "deny", broken)), normal, "read", `{}`, target("workspace", "read"), blockedBy("class teg.rules")},
		{"ask that fails", ruled(on("read", "ask", broken)), normal, "read", `{}`, target("workspace", "read"), askedBy("class teg.rules")},
		{"allow that fails", ruled(on("write", "allow", broken)), normal, "write", `{}`, target("workspace", "write"), grantable("class")},
		{"allow that fails beside one that holds", ruled(on("write", "allow", broken), on("write", "allow", yes)), normal, "write", `{}`, target("workspace", "write"), free("class teg.rules")},
		{"glob", ruled(on("web_*", "deny", yes)), normal, "web_search", `{}`, toolward.Facts{}, blockedBy("class teg.rules")},
		{"group", ruled(on("group:fs", "deny", yes)), normal, "read", `{}`, target("workspace", "read"), blockedBy("class teg.rules")},
		{"alias", ruled(on("Bash", "deny", yes)), normal, "exec", `{}`, toolward.Facts{Command: "ls"}, blockedBy("class teg.rules")},
		{"action", ruled(Rule{Tool: "process", Action: "send_keys", Then: "deny", When: yes}), normal, "process", `{"action":"send-keys"}`, toolward.Facts{}, blockedBy("class teg.rules")},
		{"another action", ruled(Rule{Tool: "process", Action: "kill", Then: "deny", When: yes}), normal, "process", `{"action":"list"}`, toolward.Facts{}, free("class")},
		{"command of a node", ruled(Rule{Tool: "nodes", Action: "invoke:system.which", Then: "deny", When: yes}), normal, "nodes", `{"action":"invoke","invokeCommand":"system.which"}`, toolward.Facts{}, blockedBy("class teg.rules")},
		{"any command of a node", ruled(Rule{Tool: "nodes", Action: "invoke", Then: "deny", When: yes}), normal, "nodes", `{"action":"invoke","invokeCommand":"system.which"}`, toolward.Facts{}, blockedBy("class teg.rules")},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(t, c.tool, json.RawMessage(c.params), c.facts)
			r.Level = c.level
			j := compile(t, c.config, coreTools()...).Judge(r)
			got := outcomeOf(j)
			got.Row = ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s\n%+v", diff, j.Reasons)
			}
		})
	}
}

// A tool of a plug-in is concerned by rules that name it, its plug-in or all plug-ins; a client's tool that is not
// registered by rules that match its name.
func TestRulesForOtherTools(t *testing.T) {
	tools := append(coreTools(), gatetest.Plugin("files", "files__delete", "other")...)
	for _, c := range []struct {
		entry string
		tool  toolward.Tool
		hit   bool
	}{
		{"files__delete", toolward.Tool{Name: "files__delete", Plugin: "files"}, true},
		{"files", toolward.Tool{Name: "files__delete", Plugin: "Files"}, true},
		{"files", toolward.Tool{Name: "files"}, false},
		{"group:plugins", toolward.Tool{Name: "other", Plugin: "files"}, true},
		{"mcp__*", toolward.Tool{Name: "mcp__x__y", Plugin: "x"}, true},
		{"*", toolward.Tool{Name: "never-seen"}, true},
		{"mcp__x__y", toolward.Tool{Name: "mcp__x__z", Plugin: "x"}, false},
	} {
		s := compile(t, ruled(on(c.entry, "deny", "true")), tools...)
		r := request(t, c.tool.Name, json.RawMessage(`{}`), toolward.Facts{})
		r.Tool = &c.tool
		for range 2 { // the second time it is remembered
			if j := s.Judge(r); (j.Verdict == toolward.Deny) != c.hit {
				t.Errorf("%s on %s of %q: %+v", c.entry, c.tool.Name, c.tool.Plugin, j)
			}
		}
	}
}

func TestARuleIsNamed(t *testing.T) {
	c := ruled(on("write", "ask", `params.amount > 3`))
	c.TEG.Rules[0].Name, c.TEG.Rules[0].Reason = "big", "large sums need a second look"
	j := compile(t, c, coreTools()...).Judge(request(t, "write", json.RawMessage(`{"amount":4}`), target("workspace", "write")))
	want := toolward.Reason{Layer: "teg.rules", Rule: "big", Matched: "write", Text: `rule "big": a person decides, each time anew: large sums need a second look`}
	if diff := cmp.Diff(want, j.Reasons[1]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"teg.rules: big"}, j.Overrides); diff != "" {
		t.Error(diff)
	}
	j = compile(t, c, coreTools()...).Judge(request(t, "write", json.RawMessage(`{"amount":"\u202e"}`), target("workspace", "write")))
	if text := j.Reasons[1].Text; !strings.Contains(text, "not known: no such overload") {
		t.Error(text)
	}
}

func TestWrongRules(t *testing.T) {
	good := Rule{Name: "a", Tool: "write", When: "true", Then: "ask", Reason: "because"}
	with := func(change func(*Rule)) []Rule { r := good; change(&r); return []Rule{r} }
	for _, c := range []struct {
		name  string
		rules []Rule
		want  string // path and problem; "" for none
	}{
		{"good", []Rule{good}, ""},
		{"no name", with(func(r *Rule) { r.Name = " " }), "teg.rules[0].name: it is blank"},
		{"long name", with(func(r *Rule) { r.Name = strings.Repeat("ä", 101) }), "teg.rules[0].name: it is longer than 100 characters"},
		{"name just short enough", with(func(r *Rule) { r.Name = strings.Repeat("ä", 100) }), ""},
		{"deceiving name", with(func(r *Rule) { r.Name = "a\u202eb" }), "teg.rules[0].name: it holds line breaks or characters that nobody sees"},
		{"name twice", []Rule{good, good}, `teg.rules[1].name: "a" is the name of teg.rules[0] too`},
		{"no reason", with(func(r *Rule) { r.Reason = "" }), "teg.rules[0].reason: it is blank"},
		{"no tool", with(func(r *Rule) { r.Tool = "" }), "teg.rules[0].tool: no tool is named"},
		{"unreadable action", with(func(r *Rule) { r.Action = "--" }), `teg.rules[0].action: "--" is not the name of an action`},
		{"unknown consequence", with(func(r *Rule) { r.Then = "Deny" }), `teg.rules[0].then: "Deny" is unknown; use ask, deny or allow`},
		{"no condition", with(func(r *Rule) { r.When = "" }), "teg.rules[0].when: the expression is blank"},
		{"unfinished condition", with(func(r *Rule) { r.When = "level ==" }), "teg.rules[0].when: column 9 of the expression: "},
		{"unknown variable", with(func(r *Rule) { r.When = "true &&\n  fact.place == ''" }), `teg.rules[0].when: line 2, column 7 of the expression: there is no "fact.place"; variables are params`},
		{"not a truth", with(func(r *Rule) { r.When = "size(params)" }), "teg.rules[0].when: the expression is of type int"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Compile(Config{TEG: TEG{Rules: c.rules}}, coreTools())
			var all report.Errors
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &all) || len(all) != 1 || !strings.HasPrefix(all[0].Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestWarningsAboutRules(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want string // code and path
	}{
		{on("writ", "deny", "true"), "policy.unknown_entries teg.rules[0].tool"},
		{on("write", "deny", "true"), ""},
		{Rule{Tool: "process", Action: "sendkeys", Then: "deny", When: "true"}, ""},
		{Rule{Tool: "process", Action: "send_kys", Then: "deny", When: "true"}, "policy.unknown_entries teg.rules[0].action"},
		{Rule{Tool: "exec", Action: "elevated", Then: "deny", When: "true"}, ""},
		{on("write", "allow", "true"), "teg.loosened teg.rules[0]"},
		{on("exec", "allow", "true"), "teg.rule_allows_nothing teg.rules[0]"},
		{on("tts", "allow", "true"), "teg.rule_allows_nothing teg.rules[0]"},
	} {
		_, warnings, err := Compile(ruled(c.rule), coreTools())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range warnings {
			got += w.Code + " " + w.Path.String()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.rule, got, c.want)
		}
	}
}
