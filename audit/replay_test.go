package audit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
)

// readBack writes a decision and reads it again.
func readBack(t *testing.T, d *toolward.DecisionRecord) *Past {
	t.Helper()
	e := &entry{}
	realCleaner().decision(e, d)
	p, err := ReadDecision(&Record{Seq: 7, Time: d.Time, Type: TypeDecision, Agent: d.Call.Caller.Agent, Tool: d.Tool, JSON: text(e)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPastCallsAreReadBack(t *testing.T) {
	d := full()
	p := readBack(t, d)
	call := d.Call
	call.Arguments, call.Caller.Connection = nil, ""
	got := p.Request.Call
	got.ID, got.Run, got.NativeName, got.Form, call.Form = call.ID, call.Run, call.NativeName, nil, nil
	if diff := cmp.Diff(call, got); diff != "" {
		t.Errorf("call (-made +read):\n%s", diff)
	}
	facts := d.Facts
	facts.Command, facts.Outbound, facts.URLs, facts.Findings = "", nil, d.Facts.Hosts, nil // contents are not kept
	facts.Targets[0].Path = facts.Targets[0].Real
	if diff := cmp.Diff(facts, p.Request.Facts); diff != "" {
		t.Errorf("facts (-made +read):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"action": "push", "elevated": true, "request": map[string]any{"kind": "evaluate"}, "to": ""}, p.Request.Params.Object()); diff != "" {
		t.Error(diff)
	}
	judged := toolward.Judgment{
		Verdict: toolward.Ask, GrantOK: true, AllowAlways: true, Row: "write workspace", Overrides: d.Judgment.Overrides,
		Class: d.Judgment.Class, Findings: d.Judgment.Findings,
	}
	if diff := cmp.Diff(judged, *p.Judged); diff != "" {
		t.Errorf("judgement (-made +read):\n%s", diff)
	}
	if p.Decision != toolward.DenyCall || p.Code != toolward.CodeDeniedByUser || p.Verdict != toolward.Deny || p.Request.Level != toolward.Elevated {
		t.Errorf("%+v", p)
	}
}

func TestGaps(t *testing.T) {
	whole := func() *toolward.DecisionRecord {
		d := full()
		d.Params, d.DigestOriginal, d.Code = toolward.NewParams([]byte(`{"action":"push"}`), map[string]any{"action": "push"}), "", ""
		return d
	}
	for name, c := range map[string]struct {
		change func(*toolward.DecisionRecord)
		want   string
	}{
		"none":             {func(*toolward.DecisionRecord) {}, ""},
		"a long path":      {func(d *toolward.DecisionRecord) { d.Facts.Targets[0].Real = "/" + strings.Repeat("x", 600) }, "too long or too secret"},
		"a secret host":    {func(d *toolward.DecisionRecord) { d.Facts.Hosts = []string{"https://correct-horse-battery:443"} }, "too long or too secret"},
		"many targets":     {func(d *toolward.DecisionRecord) { d.Facts.Targets = make([]toolward.Target, listLimit+1) }, "too long or too secret"},
		"many hosts":       {func(d *toolward.DecisionRecord) { d.Facts.Hosts = make([]string, listLimit+1) }, "too long or too secret"},
		"an odd workspace": {func(d *toolward.DecisionRecord) { d.Call.Caller.Workspace = "/w\u202es" }, "too long or too secret"},
		"a large ceiling": {func(d *toolward.DecisionRecord) {
			d.Call.Caller.Ceiling = toolward.Ceiling(strings.Repeat("x", ceilingLimit+1))
		}, "too long or too secret"},
		"an odd action": {func(d *toolward.DecisionRecord) {
			d.Params = toolward.NewParams([]byte(`{}`), map[string]any{"action": "pu\u200bsh"})
		}, "too long or too secret"},
		"never judged":     {func(d *toolward.DecisionRecord) { d.Policy, d.Judgment.Row, d.Code = nil, "", toolward.CodeLoop }, "before the policy was asked"},
		"an old record":    {func(d *toolward.DecisionRecord) { d.Policy = nil }, "of this age"},
		"a rewritten call": {func(d *toolward.DecisionRecord) { d.DigestOriginal = "ab" }, "a plug-in rewrote"},
		"a tool not shown": {func(d *toolward.DecisionRecord) {
			d.Policy, d.Judgment.Row, d.Code = nil, "", toolward.CodeUnknownTool
		}, ""},
		"wrong arguments": {func(d *toolward.DecisionRecord) {
			d.Policy, d.Judgment.Row, d.Code = nil, "", toolward.CodeInvalidArgs
		}, ""},
		"without judgement": {func(d *toolward.DecisionRecord) { d.Policy, d.Judgment.Row, d.Code = nil, "", toolward.CodeInternal }, "before the policy was asked"},
	} {
		d := whole()
		c.change(d)
		if got := readBack(t, d).Gap; (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A record of a version that kept less, as it stands in databases.
func TestOldRecordsAreRead(t *testing.T) {
	const old = `{"agentId":"coder","class":"needs_approval","depth":0,"digest":"ab","facts":{"mutates":true,"targets":[{"kind":"file","op":"write","path":"/ws/a","place":"workspace"}]},` +
		`"from":"normal","level":"normal","levelInputs":{"compacted":false,"contextTokens":-1,"external":false,"floor":"normal","maxContextTokens":0,"suspicious":false},` +
		`"policyRevision":"7","preview":"{}","requester":{"context":"main","senderIsOwner":false},"row":"write: workspace","sessionKey":"agent:coder:x","severity":"info",` +
		`"surface":"mcp","tool":"write","ts":"2026-03-01T11:30:45.678Z","type":"decision","v":1,"v1":"ask","verdict":"allow","via":"approval 1"}`
	p, err := ReadDecision(&Record{Seq: 1, Type: TypeDecision, Tool: "write", JSON: old})
	if err != nil || p.Gap == "" || p.Judged != nil || p.Request.Facts.Targets[0].Real != "/ws/a" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := ReadDecision(&Record{Seq: 1, Type: TypeOutcome, JSON: `{}`}); err == nil {
		t.Error("an outcome was read as a decision")
	}
	if _, err := ReadDecision(&Record{Seq: 1, Type: TypeDecision, JSON: `{"level":"calm"}`}); err == nil {
		t.Error("a level that does not exist was read")
	}
}

// Parameters that are not in the list, and values that are no plain words, are content.
func TestOnlySelectorsAreKept(t *testing.T) {
	d := full()
	d.Params = toolward.NewParams([]byte(`{}`), map[string]any{
		"action": "correct-horse-battery", "elevated": []any{"text that people wrote"}, "content": "text that people wrote",
		"request": map[string]any{"kind": json.Number("5"), "other": "text that people wrote"}, "to": strings.Repeat("a", selectorLimit+1),
	})
	e := &entry{}
	realCleaner().decision(e, d)
	got := text(e)
	if !strings.Contains(got, `"params":{"action":"","elevated":true,"request.kind":"5","to":""}`) || strings.Contains(got, "people wrote") {
		t.Error(got)
	}
}

func TestTalliesAreBounded(t *testing.T) {
	all := map[string]*Tally{}
	for i := range 3 * tallies {
		in(all, time.Duration(i).String()).Calls++
	}
	if len(all) > tallies+1 || all["…"].Calls != 2*tallies {
		t.Errorf("%d names, %+v", len(all), all["…"])
	}
}
