package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

func TestListsVisibleTools(t *testing.T) {
	everyFace(t, func(t *testing.T, face, version string) {
		w := newWorld(t)
		session := w.connect(t, face, version, nil)
		list, err := session.ListTools(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		if diff := cmp.Diff([]string{"echo", "act"}, names); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
		want := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}}
		if diff := cmp.Diff(want, list.Tools[0].InputSchema); diff != "" {
			t.Errorf("schema of echo (-want +got):\n%s", diff)
		}
		if version >= version20260728 && list.CacheScope != "private" {
			t.Errorf("cache scope %q: a shared cache would show one caller the tools of another", list.CacheScope)
		}
	})
}

// TestListsForTheCallerWhoCalls: else the list would show tools that calls do not reach, or hide others.
func TestListsForTheCallerWhoCalls(t *testing.T) {
	everyFace(t, func(t *testing.T, face, version string) {
		w := newWorld(t)
		session := w.connect(t, face, version, nil)
		if _, err := session.ListTools(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"text":"hello"}`)}); err != nil {
			t.Fatal(err)
		}
		callers := w.Policy.Callers()
		if len(callers) < 2 || callers[0].Session == "" || callers[0].Surface != toolward.SurfaceMCP {
			t.Fatalf("%+v", callers)
		}
		if diff := cmp.Diff(callers[0], callers[len(callers)-1]); diff != "" {
			t.Errorf("(-list +call)\n%s", diff)
		}
	})
}

func TestSafeCallRuns(t *testing.T) {
	everyFace(t, func(t *testing.T, face, version string) {
		w := newWorld(t)
		session := w.connect(t, face, version, nil)
		result, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"text":"hello"}`)})
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, result); got != "hello" || result.IsError {
			t.Errorf("got %q, isError %v", got, result.IsError)
		}
		decisions := w.Auditor.Decisions()
		if len(decisions) != 1 {
			t.Fatalf("%d decision records, want 1", len(decisions))
		}
		call := decisions[0].Call
		if call.Surface != toolward.SurfaceMCP || call.Caller.Agent != "coder" || call.Caller.Owner || call.WorkDir != "/work" || call.Caller.Client != "tester 1" {
			t.Errorf("recorded call %+v", call)
		}
		if call.Run == "" || call.ID == "" || !strings.HasPrefix(string(call.Session), "agent:coder:mcp:") {
			t.Errorf("recorded run %q, id %q, session %q", call.Run, call.ID, call.Session)
		}
	})
}

func TestRefusalIsAResult(t *testing.T) {
	cases := []struct {
		name, tool string
		prepare    func(*world)
		code       toolward.Code
		retry      toolward.Retry
	}{
		{"unknown tool", "nothing", nil, toolward.CodeUnknownTool, toolward.RetryNever},
		{"the SDK's own tool", gateTool, nil, toolward.CodeUnknownTool, toolward.RetryNever},
		{"empty name", "", nil, toolward.CodeUnknownTool, toolward.RetryNever},
		{"name with NUL", "echo\x00", nil, toolward.CodeUnknownTool, toolward.RetryNever},
		{"endless name", strings.Repeat("echo", 10_000), nil, toolward.CodeUnknownTool, toolward.RetryNever},
		{"blocked", "echo", func(w *world) {
			w.Policy.JudgeFunc = func(*toolward.Request) toolward.Judgment { return toolward.Judgment{} }
		}, toolward.CodeBlocked, toolward.RetryNever},
		{"no record", "echo", func(w *world) { w.Auditor.Err = context.DeadlineExceeded }, toolward.CodeAuditUnavailable, toolward.RetryLater},
		{"panic in policy", "echo", func(w *world) {
			w.Policy.JudgeFunc = func(*toolward.Request) toolward.Judgment { panic("boom") }
		}, toolward.CodeInternal, toolward.RetryLater},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.prepare != nil {
				c.prepare(w)
			}
			session := w.connect(t, faceStdio, version20251125, nil)
			result, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: c.tool, Arguments: json.RawMessage(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			checkDenied(t, result, c.code, c.retry)
		})
	}
}

func checkDenied(t testing.TB, result *sdk.CallToolResult, code toolward.Code, retry toolward.Retry) {
	t.Helper()
	var got struct {
		Status, Tool, Message string
		Code                  toolward.Code
		Retry                 toolward.Retry
	}
	body := text(t, result)
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if !result.IsError || got.Status != "denied" || got.Code != code || got.Retry != retry || got.Message == "" {
		t.Errorf("isError %v, %s; want denied, code %s, retry %s", result.IsError, body, code, retry)
	}
	if len(body) > 2000 {
		t.Errorf("refusal of %d bytes", len(body))
	}
}

// The gateway's decoder must see what the client sent, byte by byte: whatever a layer before it "repairs" would be
// decided in another form than it was written in.
func TestArgumentsArriveUnchanged(t *testing.T) {
	cases := []struct{ name, sent, want string }{
		{"duplicate keys", `{"text":"a","text":"b"}`, ""},
		{"duplicate keys by escape", `{"text":"a","te\u0078t":"b"}`, ""},
		{"lone surrogate", `{"text":"\ud800"}`, ""},
		{"NUL", `{"text":"a\u0000b"}`, ""},
		{"odd spacing and escapes", `{ "text" :	"\u0041\/" }`, ""},
		{"big integer", `{"n":123456789012345678901234567890}`, ""},
		{"number spelling", `{"n":1.0e+2}`, ""},
		{"array", `[1,2]`, ""},
		{"text", `"x"`, ""},
		{"invalid UTF-8", "{\"text\":\"\xff\"}", ""},
		{"HTML", `{"text":"<&>"}`, ""},
		{"deep", `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, ""},
		{"none", "", `{}`},
		{"null", `null`, "null"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.want = c.sent + c.want
			if c.name == "null" {
				c.want = "null"
			}
			member := `,"arguments":` + c.sent
			if c.sent == "" {
				member = ""
			}
			raw := newRaw(t, w.stdio(t, coder))
			raw.initialize(version20251125)
			raw.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"` + member + `}}`)
			if answer := raw.receive(); answer.Result == nil {
				t.Fatalf("no result: %s", answer.line)
			}
			decisions := w.Auditor.Decisions()
			if len(decisions) != 1 {
				t.Fatalf("%d decision records", len(decisions))
			}
			if got := string(decisions[0].Call.Arguments); got != c.want {
				t.Errorf("the gateway got %q, want %q", got, c.want)
			}
		})
	}
}

func TestResultForms(t *testing.T) {
	w := newWorld(t)
	w.add(&toolward.Tool{Name: "forms", Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
		return toolward.Result{
			Content: []toolward.Content{
				{Text: "words"},
				{MIME: "image/png", Data: []byte{1, 2}},
				{MIME: "audio/wav", Data: []byte{3}},
				{MIME: "application/pdf", Data: []byte{4}},
			},
			Structured: json.RawMessage(`{"n":1}`),
			IsError:    true,
			External:   []string{"https://example.org"},
		}, nil
	}})
	w.add(&toolward.Tool{Name: "fails", Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
		return toolward.Result{}, context.DeadlineExceeded
	}})
	w.add(&toolward.Tool{Name: "panics", Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
		panic("boom")
	}})
	session := w.connect(t, faceStdio, version20250618, nil)
	call := func(name string) *sdk.CallToolResult {
		result, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	result := call("forms")
	want := []sdk.Content{
		&sdk.TextContent{Text: "words"},
		&sdk.ImageContent{Data: []byte{1, 2}, MIMEType: "image/png"},
		&sdk.AudioContent{Data: []byte{3}, MIMEType: "audio/wav"},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "toolward:result", MIMEType: "application/pdf", Blob: []byte{4}}},
	}
	if diff := cmp.Diff(want, result.Content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"n": 1.0}, result.StructuredContent); diff != "" {
		t.Errorf("structured (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"https://example.org"}, result.Meta[metaExternal]); diff != "" {
		t.Errorf("external mark (-want +got):\n%s", diff)
	}
	if !result.IsError {
		t.Error("isError is lost")
	}
	decision := w.Auditor.Decisions()[0]
	if diff := cmp.Diff([]string{"https://example.org"}, w.Sessions.Exposed(decision.Call.Session)); diff != "" {
		t.Errorf("exposure of the session (-want +got):\n%s", diff)
	}
	if result := call("fails"); !result.IsError || !strings.Contains(text(t, result), "deadline") {
		t.Errorf("failed tool: %+v", result)
	}
	if result := call("panics"); !result.IsError {
		t.Errorf("panicking tool: %+v", result)
	}
}

func TestToolsChangedIsTold(t *testing.T) {
	w := newWorld(t)
	changed := make(chan struct{}, 1)
	w.connect(t, faceStdio, version20251125, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	w.server.ToolsChanged()
	<-changed
}

func TestNewServerNeedsItsParts(t *testing.T) {
	h := gatetest.New(t, toolward.Allow)
	key := make([]byte, 32)
	cases := []struct {
		name   string
		config Config
	}{
		{"nothing", Config{}},
		{"no gateway", Config{Policy: h.Policy, StateKey: key}},
		{"no policy", Config{Gateway: h.Gateway, StateKey: key}},
		{"no key", Config{Gateway: h.Gateway, Policy: h.Policy}},
		{"short key", Config{Gateway: h.Gateway, Policy: h.Policy, StateKey: key[:31]}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if s, err := NewServer(c.config); err == nil || s != nil {
				t.Errorf("got a server (%v), want an error", err)
			}
		})
	}
}
