package audit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/redact"
)

func realCleaner() *cleaner {
	return &cleaner{
		redact: redact.New("correct-horse-battery").String, escape: display.Line,
		selectors: []string{"action", "elevated", "request.kind", "to"},
	}
}

// full is a decision in which every field of the record has a value.
func full() *toolward.DecisionRecord {
	return &toolward.DecisionRecord{
		Time: time.Date(2026, 3, 1, 12, 30, 45, 678_900_000, time.FixedZone("", 3600)), Tool: "write",
		Call: toolward.Call{
			ID: "toolu_01", Run: "run-7", Tool: "write", NativeName: "Write", Session: "agent:coder:mcp:laptop",
			Surface: toolward.SurfaceHook, WorkDir: "/home/ada/project", Host: toolward.HostGateway, ByClient: true,
			Caller: toolward.Caller{
				Agent: "coder", Depth: 1, Owner: true, Context: "main", Channel: "chat", Account: "acc",
				Sender: "ada", Client: "claude-code", Device: "laptop", Group: "team", Provider: "openai", Model: "gpt-5",
				SenderPhone: "+1", SenderUser: "ada99", SenderName: "Ada", Parent: "agent:main:main", Ceiling: `{"deny":["exec"]}`,
				Sandboxed: true, SandboxReadOnly: true, Workspace: "/home/ada/project",
			},
			Form: &toolward.Tool{Name: "write"},
		},
		Plugin: "notes", OwnerOnly: true,
		Digest: strings.Repeat("ab", 32), DigestOriginal: strings.Repeat("cd", 32),
		Params: toolward.NewParams([]byte(`{"path":"a.go"}`), map[string]any{
			"action": "push", "elevated": true, "request": map[string]any{"kind": "evaluate"}, "to": "what people wrote, at some length",
		}),
		Facts: toolward.Facts{
			Action: "push", Hosts: []string{"https://example.org:443"}, Recipients: []string{"chat:acc:bob"}, TargetID: "p1",
			Command: "git push", URLs: []string{"https://example.org/"}, Outbound: []string{"hello"}, Elevated: true,
			Mutates: true, Deletes: 2, BrowserOn: "host", Sandbox: "toolward-sbx-coder", Scope: "tree",
			Targets: []toolward.Target{{Real: "/home/ada/project/a.go", Op: toolward.OpWrite, Zone: "workspace", Kind: "file", Links: 2, Left: true}},
		},
		Judgment: toolward.Judgment{
			Verdict: toolward.Ask, Finding: "path_link", Row: "write workspace", Overrides: []string{"teg.tools.write"},
			Class:    toolward.Classification{Class: toolward.NeedsApproval, From: toolward.Normal, Severity: toolward.Warning, Grant: toolward.GrantPath},
			Findings: []toolward.Finding{{Code: "path_link", Effect: toolward.EffectAsk, Detail: "a hard link"}},
			Reasons:  []toolward.Reason{{Layer: "class", Rule: "write", Matched: "write", Text: "writes ask"}},
		},
		Policy: &toolward.Judgment{Verdict: toolward.Ask, GrantOK: true, AllowAlways: true, Row: "write workspace"},
		Shadow: &toolward.ShadowJudgment{
			Revision: "8", Change: toolward.ChangeStricter, Code: toolward.CodeBlocked, Row: "write workspace", GrantOK: true, AllowAlways: true,
			Findings: []toolward.Finding{{Code: "path_escape"}}, Reasons: []toolward.Reason{{Layer: "class", Text: "configured as blocked"}},
		},
		First: toolward.Ask, Verdict: toolward.Deny, Level: toolward.Elevated, Code: toolward.CodeDeniedByUser,
		Via: "denied", Revision: "7", Cause: "because",
		Inputs: toolward.LevelInputs{ContextTokens: -1, Compacted: true, External: true, Suspicious: true, Floor: toolward.Elevated, Reasons: []string{"r"}},
		Hooks:  []toolward.HookRun{{Plugin: "p", Hook: "before_tool_call", Effect: "rewrite", Detail: "shorter\x1b", Before: "cd", After: "ab", Ms: 3}},
		Answer: toolward.Answer{ApprovalID: "ap1", Decision: toolward.DenyCall, By: "ada", Reason: "not now", Path: "push", Waited: 1500 * time.Millisecond},
	}
}

// text puts an entry together as the chain would.
func text(e *entry) string {
	return string(e.appendTo(nil, []byte(strings.Repeat("0", 64)), 7))
}

// canonical re-encodes JSON the way RFC 8785 does, for values whose numbers
// are whole: sorted keys, nothing escaped that need not be.
func canonical(t testing.TB, s string) string {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, s)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestRecordsAreCanonical(t *testing.T) {
	c := realCleaner()
	d := full()
	for _, test := range []struct {
		name string
		make func(*entry)
	}{
		{"decision", func(e *entry) { c.decision(e, d) }},
		{"empty decision", func(e *entry) { c.decision(e, &toolward.DecisionRecord{}) }},
		{"outcome", func(e *entry) {
			c.outcome(e, 5, &openCall{call: "c", session: "s", agent: "a", tool: "t"}, &toolward.OutcomeRecord{
				Time: d.Time, Status: toolward.StatusError, Error: "no such file", ResultBytes: 12, ResultDigest: "ab",
				External: []string{"web_fetch"}, Duration: time.Second, ExitCode: new(3),
			})
		}},
		{"event", func(e *entry) {
			err := c.event(e, &Event{Type: TypeConfig, Time: d.Time, Session: "s", Agent: "a", Tool: "t", CallID: "c", Data: map[string]any{
				"z": "text", "a": 1, "b": true, "list": []string{"x", "y"}, "map": map[string]any{"k": int64(2)},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := &entry{}
			test.make(e)
			got := text(e)
			if want := canonical(t, got); got != want {
				t.Errorf("not canonical:\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestDecisionRecordHoldsWhatWasDecidedOn(t *testing.T) {
	e := &entry{}
	realCleaner().decision(e, full())
	want := `{"agentId":"coder",` +
		`"approval":{"decision":"deny","id":"ap1","path":"push","reason":"not now","resolvedBy":"ada","waitedMs":1500},` +
		`"byClient":true,"callId":"toolu_01","cause":"because","class":"needs_approval","code":"denied_by_user","depth":1,` +
		`"digest":"` + strings.Repeat("ab", 32) + `","digestOriginal":"` + strings.Repeat("cd", 32) + `",` +
		`"facts":{"action":"push","browserOn":"host","commandBytes":8,"deletes":2,"elevated":true,"hosts":["https://example.org:443"],` +
		`"mutates":true,"outboundBytes":[5],"params":{"action":"push","elevated":true,"request.kind":"evaluate","to":""},"recipients":["chat:acc:bob"],"sandbox":"toolward-sbx-coder","scope":"tree","targetId":"p1",` +
		`"targets":[{"kind":"file","left":true,"links":2,"op":"write","path":"/home/ada/project/a.go","place":"workspace"}],"urlBytes":[20]},` +
		`"finding":"path_link","findings":[{"code":"path_link","detail":"a hard link","effect":"ask"}],"form":true,"from":"normal","grantKind":"path",` +
		`"hooks":[{"detail":"shorter⟦U+001B⟧","digestAfter":"ab","digestBefore":"cd","effect":"rewrite","hook":"before_tool_call","ms":3,"plugin":"p"}],"host":"gateway","level":"elevated",` +
		`"levelInputs":{"compacted":true,"contextTokens":-1,"external":true,"floor":"elevated","maxContextTokens":0,"reasons":["r"],"suspicious":true},` +
		`"nativeName":"Write","overrides":["teg.tools.write"],"ownerOnly":true,"plugin":"notes",` +
		`"policy":{"allowAlways":true,"grantOk":true,"verdict":"ask"},"policyRevision":"7","prev":"` + strings.Repeat("0", 64) + `",` +
		`"preview":"{\"path\":\"a.go\"}","reasons":[{"layer":"class","matched":"write","rule":"write","text":"writes ask"}],` +
		`"requester":{"account":"acc","ceiling":"{\"deny\":[\"exec\"]}","channel":"chat","client":"claude-code","context":"main","device":"laptop",` +
		`"group":"team","model":"gpt-5","parent":"agent:main:main","provider":"openai","sandboxReadOnly":true,"sandboxed":true,"senderId":"ada",` +
		`"senderIsOwner":true,"senderName":"Ada","senderPhone":"+1","senderUser":"ada99","workspace":"/home/ada/project"},` +
		`"row":"write workspace","runId":"run-7","seq":7,"sessionKey":"agent:coder:mcp:laptop","severity":"warning",` +
		`"shadow":{"allowAlways":true,"change":"stricter","code":"blocked","findings":[{"code":"path_escape","effect":"deny"}],"grantOk":true,` +
		`"reasons":[{"layer":"class","text":"configured as blocked"}],"revision":"8","row":"write workspace","verdict":"deny"},` +
		`"surface":"hook-adapter","tool":"write","ts":"2026-03-01T11:30:45.678Z","type":"decision","v":1,"v1":"ask","v2":"ask",` +
		`"verdict":"deny","via":"denied","withheld":true,"workDir":"/home/ada/project"}`
	if diff := cmp.Diff(want, text(e)); diff != "" {
		t.Error(diff)
	}
}

func TestNothingSecretOrInvisibleIsKept(t *testing.T) {
	const secret = "correct-horse-battery"
	c := realCleaner()
	long := strings.Repeat("x", previewLimit-10)
	d := full()
	d.Params = toolward.NewParams([]byte(`{"content":"`+long+secret+"\u202e"+`"}`), nil)
	d.Cause = "failed with " + secret
	d.Facts.Targets[0].Real = "/tmp/" + secret
	d.Facts.Hosts = []string{secret}
	d.Judgment.Findings[0].Detail = secret + "\u200b"
	d.Judgment.Reasons[0].Text = secret
	d.Answer.Reason = secret
	d.Call.ID = "id\u202e" + strings.Repeat("y", 500)
	d.Tool = "tool\x1b[2J" + strings.Repeat("z", 1<<20)
	e := &entry{}
	c.decision(e, d)
	got := text(e)
	for _, part := range []string{secret, secret[:12], "\u202e", "\u200b", `\u001b`} {
		if strings.Contains(got, part) {
			t.Errorf("the record holds %q", part)
		}
	}
	if len(got) > 12<<10 {
		t.Errorf("the record has %d bytes", len(got))
	}
	if len(e.record.Tool) > nameLimit {
		t.Errorf("the tool's name has %d bytes", len(e.record.Tool))
	}
}

func TestErrorsAreCut(t *testing.T) {
	e := &entry{}
	realCleaner().outcome(e, 1, &openCall{}, &toolward.OutcomeRecord{Error: strings.Repeat("é", 4000)})
	var body struct{ Error string }
	if err := json.Unmarshal([]byte(text(e)), &body); err != nil {
		t.Fatal(err)
	}
	if len(body.Error) > errorLimit || !strings.HasSuffix(body.Error, "é…") {
		t.Errorf("error of %d bytes ends in %q", len(body.Error), body.Error[max(0, len(body.Error)-10):])
	}
}

func TestEventsRefuseWhatTheyCannotKeep(t *testing.T) {
	deep := map[string]any{}
	for range 10 {
		deep = map[string]any{"a": deep}
	}
	for name, data := range map[string]map[string]any{
		"a float": {"x": 1.5}, "an unknown type": {"x": struct{}{}}, "nothing": {"x": nil}, "too deep": deep,
	} {
		if err := realCleaner().event(&entry{}, &Event{Type: TypeConfig, Data: data}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// Any text becomes a JSON string that is canonical and means the same.
func TestTextIsEncodedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		encoded := string(appendText(nil, s))
		var back string
		if err := json.Unmarshal([]byte(encoded), &back); err != nil {
			t.Fatalf("%q: %v", encoded, err)
		}
		if want := string([]rune(s)); back != want { // bytes that are no character become U+FFFD
			t.Fatalf("%q became %q, want %q", s, back, want)
		}
		if strings.ContainsFunc(encoded, func(r rune) bool { return r < 0x20 }) {
			t.Fatalf("%q holds a control character", encoded)
		}
	})
}

func BenchmarkDecisionRecord(b *testing.B) {
	d := full()
	d.Answer = toolward.Answer{}
	d.Params = toolward.NewParams([]byte(`{"content":"`+strings.Repeat("package main\\n", 10)+`","path":"src/server/handlers/list.go"}`), nil)
	for _, bench := range []struct {
		name  string
		clean *cleaner
	}{
		{"encoding", &cleaner{redact: func(s string) string { return s }, escape: func(s string) string { return s }}},
		{"with redaction", realCleaner()},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var log Log
			b.ReportAllocs()
			for b.Loop() {
				e := log.entry()
				bench.clean.decision(e, d)
				log.recycle(e)
			}
		})
	}
}
