package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"github.com/cedar-policy/cedar-go"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
)

// engines prepares all of them for the same rules and calls.
func engines(t testing.TB, rules []rule, calls []call) []engine {
	return []engine{
		{"toolward", withToolward(t, rules, calls)},
		{"cedar", withCedar(t, rules, calls)},
		{"cel", withCEL(t, rules, calls)},
		{"opa", withOPA(t, rules, calls)},
	}
}

// withToolward decides by Find and Judge: besides the rules that is every layer of the tool policy, the class table,
// the checks of what the call would touch, and the reasons in words.
func withToolward(t testing.TB, rules []rule, calls []call) func(int) toolward.Verdict {
	c := policy.Config{TEG: policy.TEG{Tools: map[string]string{}}, Agents: []policy.Agent{{ID: "coder", TEG: policy.AgentTEG{Tools: map[string]string{}}}}}
	tools := []*toolward.Tool{{Name: "message", Schema: json.RawMessage(`{"type":"object","properties":{"action":{"type":"string"}}}`)}}
	for _, r := range rules {
		key, entries := r.tool, c.TEG.Tools
		if r.agent != "" {
			entries = c.Agents[0].TEG.Tools
		}
		if r.action != "" {
			key += "." + r.action
		} else {
			tools = append(tools, &toolward.Tool{Name: r.tool, Plugin: "server", Schema: json.RawMessage(`{"type":"object"}`)})
		}
		entries[key] = map[toolward.Verdict]string{toolward.Deny: "blocked", toolward.Allow: "safe"}[r.then]
	}
	snapshot, _, err := policy.Compile(c, tools)
	if err != nil {
		t.Fatal(err)
	}
	requests := make([]*toolward.Request, len(calls))
	for i, c := range calls {
		session := toolward.SessionKey("agent:" + c.agent + ":main")
		caller := toolward.Caller{Agent: c.agent, Workspace: "/ws", Session: session}
		tool, reason := snapshot.Find(caller, c.tool)
		if tool == nil {
			t.Fatal(c.tool, reason)
		}
		raw := `{}`
		if c.action != "" {
			raw = fmt.Sprintf(`{"action":%q}`, c.action)
		}
		params, err := snapshot.Decode(tool, json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		requests[i] = &toolward.Request{
			Call: toolward.Call{Tool: c.tool, Caller: caller, Session: session, WorkDir: "/ws", Host: toolward.HostGateway},
			Tool: tool, Params: params, Facts: toolward.Facts{Action: c.action}, Level: toolward.Normal,
		}
	}
	return func(i int) toolward.Verdict {
		r := requests[i]
		if tool, _ := snapshot.Find(r.Call.Caller, r.Call.Tool); tool == nil {
			return toolward.Deny
		}
		return snapshot.Judge(r).Verdict
	}
}

// withCedar writes one policy for each rule. A call that no policy is about asks.
func withCedar(t testing.TB, rules []rule, calls []call) func(int) toolward.Verdict {
	var text strings.Builder
	for _, r := range rules {
		principal, when := "principal", ""
		if r.agent != "" {
			principal = fmt.Sprintf("principal == Agent::%q", r.agent)
		}
		if r.action != "" {
			when = fmt.Sprintf(" when { context.action == %q }", r.action)
		}
		effect := map[toolward.Verdict]string{toolward.Deny: "forbid", toolward.Allow: "permit"}[r.then]
		fmt.Fprintf(&text, "%s (%s, action == Action::\"call\", resource == Tool::%q)%s;\n", effect, principal, r.tool, when)
	}
	policies, err := cedar.NewPolicySetFromBytes("rules.cedar", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	requests := make([]cedar.Request, len(calls))
	for i, c := range calls {
		requests[i] = cedar.Request{
			Principal: cedar.NewEntityUID("Agent", cedar.String(c.agent)), Action: cedar.NewEntityUID("Action", "call"),
			Resource: cedar.NewEntityUID("Tool", cedar.String(c.tool)),
			Context:  cedar.NewRecord(cedar.RecordMap{"action": cedar.String(c.action)}),
		}
	}
	entities := cedar.EntityMap{}
	return func(i int) toolward.Verdict {
		decision, diagnostic := cedar.Authorize(policies, entities, requests[i])
		switch {
		case decision == cedar.Allow:
			return toolward.Allow
		case len(diagnostic.Reasons) > 0 || len(diagnostic.Errors) > 0:
			return toolward.Deny
		}
		return toolward.Ask
	}
}

// withCEL writes the rules of each effect as one expression of alternatives, of which the first that holds ends it.
func withCEL(t testing.TB, rules []rule, calls []call) func(int) toolward.Verdict {
	env, err := cel.NewEnv(cel.Variable("agent", cel.StringType), cel.Variable("tool", cel.StringType), cel.Variable("action", cel.StringType))
	if err != nil {
		t.Fatal(err)
	}
	program := func(then toolward.Verdict) cel.Program {
		var terms []string
		for _, r := range rules {
			if r.then != then {
				continue
			}
			term := fmt.Sprintf("tool == %q", r.tool)
			if r.agent != "" {
				term += fmt.Sprintf(" && agent == %q", r.agent)
			}
			if r.action != "" {
				term += fmt.Sprintf(" && action == %q", r.action)
			}
			terms = append(terms, term)
		}
		// The parser bounds how deep an expression may be; brackets keep it flat.
		checked, issues := env.Compile(anyOf(terms))
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		p, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	deny, allow := program(toolward.Deny), program(toolward.Allow)
	inputs := make([]map[string]any, len(calls))
	for i, c := range calls {
		inputs[i] = map[string]any{"agent": c.agent, "tool": c.tool, "action": c.action}
	}
	holds := func(p cel.Program, i int) bool {
		out, _, err := p.Eval(inputs[i])
		if err != nil {
			t.Fatal(err)
		}
		return out.Value() == true
	}
	return func(i int) toolward.Verdict {
		switch {
		case holds(deny, i):
			return toolward.Deny
		case holds(allow, i):
			return toolward.Allow
		}
		return toolward.Ask
	}
}

// anyOf joins terms as a balanced tree.
func anyOf(terms []string) string {
	if len(terms) == 1 {
		return terms[0]
	}
	half := len(terms) / 2
	return "(" + anyOf(terms[:half]) + ") || (" + anyOf(terms[half:]) + ")"
}

// withOPA writes one rule of Rego for each, as its index of equalities likes them.
func withOPA(t testing.TB, rules []rule, calls []call) func(int) toolward.Verdict {
	var text strings.Builder
	text.WriteString("package tools\n\ndefault verdict := \"ask\"\n\nverdict := \"deny\" if deny\n\nelse := \"allow\" if allow\n\n")
	for _, r := range rules {
		fmt.Fprintf(&text, "%s if {\n\tinput.tool == %q\n", r.then, r.tool)
		if r.agent != "" {
			fmt.Fprintf(&text, "\tinput.agent == %q\n", r.agent)
		}
		if r.action != "" {
			fmt.Fprintf(&text, "\tinput.action == %q\n", r.action)
		}
		text.WriteString("}\n\n")
	}
	ctx := context.Background()
	query, err := rego.New(rego.Query("data.tools.verdict"), rego.Module("rules.rego", text.String())).PrepareForEval(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inputs := make([]ast.Value, len(calls))
	for i, c := range calls {
		if inputs[i], err = ast.InterfaceToValue(map[string]any{"agent": c.agent, "tool": c.tool, "action": c.action}); err != nil {
			t.Fatal(err)
		}
	}
	return func(i int) toolward.Verdict {
		results, err := query.Eval(ctx, rego.EvalParsedInput(inputs[i]))
		if err != nil || len(results) != 1 {
			t.Fatal(err, len(results))
		}
		switch results[0].Expressions[0].Value {
		case "deny":
			return toolward.Deny
		case "allow":
			return toolward.Allow
		}
		return toolward.Ask
	}
}
