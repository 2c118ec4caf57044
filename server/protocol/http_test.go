package protocol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/server/protocol"
)

const secret = "s3cret-s3cret"

// desk is the real doors on a real gateway, with tools that only note that they ran.
type desk struct {
	*consoletest.World
	t   *testing.T
	ran atomic.Int64
}

func newDesk(t *testing.T, config policy.Config) *desk {
	t.Helper()
	d := &desk{t: t}
	var tools []*toolward.Tool
	for _, name := range append(visible.CoreTools(), "whatsapp_login") {
		tools = append(tools, &toolward.Tool{
			Name: name, Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"command":{"type":"string"},"action":{"type":"string"}},"additionalProperties":true}`),
			Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
				d.ran.Add(1)
				return toolward.TextResult("ran"), nil
			},
		})
	}
	rules, _, err := policy.Compile(config, tools)
	if err != nil {
		t.Fatal(err)
	}
	d.World = consoletest.New(t, consoletest.Options{
		Refuse: true, Rules: rules,
		Protocol: &protocol.Config{Auth: protocol.Auth{Mode: protocol.ModeToken, Token: secret}, TrustedProxies: []string{"127.0.0.1"}},
		Agents:   protocol.AgentList{Default: "main", All: []protocol.Agent{{ID: "main", Workspace: t.TempDir()}}},
	})
	return d
}

type httpCase struct {
	Method, Path, RemoteIP string
	Auth                   *string
	Body                   json.RawMessage
	BodyBytes              int
	RawBody                *string
	Headers                map[string]string
	PriorFailures          int
	Approvers              int
	Decision               string
	Config                 struct {
		ChatCompletions, Responses bool
		ToolsAllow, ToolsDeny      []string
	}
}

func (d *desk) send(in *httpCase) (*http.Response, map[string]any) {
	d.t.Helper()
	body := []byte(in.Body)
	switch {
	case in.BodyBytes > 0:
		body = bytes.Repeat([]byte(" "), in.BodyBytes)
	case in.RawBody != nil:
		body = []byte(*in.RawBody)
	}
	r, err := http.NewRequestWithContext(d.t.Context(), in.Method, d.URL+in.Path, bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range in.Headers {
		r.Header.Set(name, value)
	}
	if in.RemoteIP != "" {
		r.Header.Set("X-Forwarded-For", in.RemoteIP)
	}
	switch {
	case in.Auth == nil:
	case *in.Auth == "valid":
		r.Header.Set("Authorization", "Bearer "+secret)
	case *in.Auth == "wrong":
		r.Header.Set("Authorization", "Bearer wrong")
	default:
		d.t.Fatalf("nobody plays the credential %q", *in.Auth)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	var answer map[string]any
	_ = json.Unmarshal(raw, &answer) // pages have none
	return response, answer
}

func TestHTTPVectors(t *testing.T) {
	const file = "runtime.json"
	gatetest.Play(t, file, "http", gatetest.Vectors(t, file, "http")["http"], func(t *testing.T, c gatetest.Case) {
		var in httpCase
		gatetest.Decode(t, c.Input, &in)
		if in.Config.ChatCompletions || in.Config.Responses {
			gatetest.Waits(t, "the agent runtime, which answers chat completions and responses, is not there")
		}
		var want struct {
			Status          int
			ErrorType       string
			OK, Executed    *bool
			DecisionPresent *bool
			Headers         map[string]string
			HeadersPresent  []string
		}
		gatetest.Decode(t, c.Want, &want)
		d := newDesk(t, policy.Config{HTTP: visible.HTTPTools{Allow: in.Config.ToolsAllow, Deny: in.Config.ToolsDeny}})
		for range in.PriorFailures {
			wrong := "wrong"
			d.send(&httpCase{Method: http.MethodPost, Path: protocol.ToolsPath, Auth: &wrong, RemoteIP: in.RemoteIP, Body: json.RawMessage(`{"tool":"x"}`)})
		}
		d.attend(in.Approvers, in.Decision)
		response, answer := d.send(&in)
		failure, _ := answer["error"].(map[string]any)
		got, wanted := map[string]any{"status": response.StatusCode}, map[string]any{"status": want.Status}
		compare := func(name string, is, should any) { got[name], wanted[name] = is, should }
		if want.ErrorType != "" {
			compare("errorType", fmt.Sprint(failure["type"]), want.ErrorType)
		}
		if want.OK != nil {
			compare("ok", answer["ok"], *want.OK)
		}
		if want.Executed != nil {
			compare("executed", d.ran.Load() > 0, *want.Executed)
		}
		if want.DecisionPresent != nil {
			compare("decision", answer["decision"] != nil, *want.DecisionPresent)
		}
		for name, value := range want.Headers {
			compare(name, response.Header.Get(name), value)
		}
		for _, name := range want.HeadersPresent {
			compare(name, response.Header.Get(name) != "", true)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("input %s\n%s\n%v", c.Input, diff, answer)
		}
	})
}

// attend puts people in front of consoles who answer everything alike.
func (d *desk) attend(n int, decision string) {
	for i := range n {
		by := d.Person()
		presence, err := d.Approvals.Attach(approval.Approver{Name: "console", By: by, Connection: fmt.Sprint("console ", i)})
		if err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(presence.Close)
	}
	if n == 0 || decision == "" {
		return
	}
	by := d.Person()
	news, err := d.Approvals.Subscribe(by, 16)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(news.Close)
	go func() {
		for e := range news.C {
			if e.Type != approval.EventRequested {
				continue
			}
			for {
				_, err := d.Approvals.Resolve(context.Background(), approval.Response{ID: e.Approval.ID, Decision: decision, By: by, Connection: "desk", Typed: true})
				if err == nil || !strings.Contains(err.Error(), "half a second") {
					break
				}
			}
		}
	}()
}

// A call over HTTP waits for people like every other, and says so when they decline.
func TestCallsOverHTTPAsk(t *testing.T) {
	valid := "valid"
	call := func(d *desk, body string) (int, map[string]any) {
		r, answer := d.send(&httpCase{Method: http.MethodPost, Path: protocol.ToolsPath, Auth: &valid, Body: json.RawMessage(body)})
		return r.StatusCode, answer
	}
	open := policy.Config{HTTP: visible.HTTPTools{Allow: []string{"write"}}}
	const write = `{"tool":"write","args":{"path":"a.txt","content":"x"}}`
	for _, c := range []struct {
		name, decision string
		approvers      int
		status         int
		kind           string
		ran            int64
	}{
		{"nobody is there", "", 0, 403, "approval_denied", 0},
		{"declined", "deny", 1, 403, "approval_denied", 0},
		{"allowed", "allow-once", 1, 200, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, open)
			d.attend(c.approvers, c.decision)
			status, answer := call(d, write)
			failure, _ := answer["error"].(map[string]any)
			kind, _ := failure["type"].(string)
			if status != c.status || kind != c.kind || d.ran.Load() != c.ran {
				t.Errorf("status %d, %v, ran %d times", status, answer, d.ran.Load())
			}
		})
	}
	d := newDesk(t, open)
	status, answer := call(d, `{"tool":"write","args":{"path":"a.txt","content":"x"},"dryRun":true}`)
	if decision, _ := answer["decision"].(map[string]any); status != 200 || decision["verdict"] != "ask" || d.ran.Load() != 0 || d.Approvals.Count() != 0 {
		t.Errorf("dry run: %d %v", status, answer)
	}
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"hidden, tried":       {`{"tool":"exec","dryRun":true}`, 404},
		"twice the same name": {`{"tool":"read","tool":"exec"}`, 400},
		"a list":              {`[]`, 400},
		"arguments as a list": {`{"tool":"sessions_list","args":[]}`, 400},
		"number as tool":      {`{"tool":1}`, 400},
		"another agent":       {`{"tool":"sessions_list","sessionKey":"agent:other:main"}`, 404},
	} {
		if status, answer := call(d, c.body); status != c.want {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
}

// Whoever has no secret gets nowhere, and a body whose end two servers could see in two places is not read.
func TestToolsDoor(t *testing.T) {
	d := newDesk(t, policy.Config{})
	valid := "valid"
	status := func(change func(*http.Request)) int {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+protocol.ToolsPath, strings.NewReader(`{"tool":"sessions_list"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+secret)
		change(r)
		w := httptest.NewRecorder()
		d.Protocol.Tools().ServeHTTP(w, r)
		return w.Code
	}
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"as it should be":   {func(*http.Request) {}, 200},
		"no credential":     {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"empty credential":  {func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		"undefined":         {func(r *http.Request) { r.Header.Set("Authorization", "Bearer undefined") }, 401},
		"basic":             {func(r *http.Request) { r.Header.Set("Authorization", "Basic "+secret) }, 401},
		"a user by header":  {func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("X-Forwarded-User", "op1") }, 401},
		"text":              {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 400},
		"unknown length":    {func(r *http.Request) { r.TransferEncoding = []string{"chunked"} }, 411},
		"token in the path": {func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "token=" + secret }, 401},
	} {
		if got := status(c.change); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	for path, want := range map[string]string{"/healthz": `{"ok":true}`, "/health": `{"ok":true}`, "/readyz": `{"ready":true}`, "/ready": `{"ready":true}`} {
		r, answer := d.send(&httpCase{Method: http.MethodGet, Path: path})
		raw, _ := json.Marshal(answer)
		if r.StatusCode != 200 || string(raw) != want {
			t.Errorf("%s: %d %s", path, r.StatusCode, raw)
		}
	}
	if _, answer := d.send(&httpCase{Method: http.MethodGet, Path: "/readyz", Auth: &valid}); answer["details"] == nil {
		t.Error("whoever has the secret is told no details")
	}
}
