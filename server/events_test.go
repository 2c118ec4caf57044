package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/server/api"
)

// stream reads server-sent events.
type stream struct {
	t    *testing.T
	body io.Closer
	in   *bufio.Scanner
}

func openStream(t *testing.T, client *http.Client, address string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("stream: %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	t.Cleanup(func() { resp.Body.Close() })
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 8<<20)
	return &stream{t: t, body: resp.Body, in: in}
}

// next skips to the next event of a name and decodes its data.
func (s *stream) next(name string, into any) {
	s.t.Helper()
	event := ""
	for s.in.Scan() {
		line := s.in.Text()
		if after, ok := strings.CutPrefix(line, "event: "); ok {
			event = after
		}
		if after, ok := strings.CutPrefix(line, "data: "); ok && event == name {
			if into != nil {
				if err := json.Unmarshal([]byte(after), into); err != nil {
					s.t.Fatalf("event %s: %v", name, err)
				}
			}
			return
		}
	}
	s.t.Fatalf("the stream ended before an event %q: %v", name, s.in.Err())
}

func TestConsoleEvents(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b, other := signedIn(t, w), signedIn(t, w)
	events := openStream(t, b.http, w.URL+b.base+"/events")
	var synced struct{ IDs []string }
	if events.next("sync", &synced); len(synced.IDs) != 0 {
		t.Errorf("sync: %+v", synced)
	}
	call := w.Call("coder", "exec", map[string]any{"command": "make"})
	id := w.AwaitPending(1)[0].ID
	var shown struct{ HTML string }
	events.next("card", &shown)
	stamp := seen(t, shown.HTML, id)
	var count struct {
		Waiting  int
		Headline string
	}
	if events.next("count", &count); count.Waiting != 1 || count.Headline != "1 call is waiting" {
		t.Errorf("count: %+v", count)
	}
	form := url.Values{"decision": {"deny"}, "seen": {stamp}}
	if resp, _ := other.post(other.base+"/approvals/"+id, form); resp.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("a card of another browser's stream was answered: %d", resp.StatusCode)
	}
	if resp := b.answer(id, form, time.Now().Add(-500*time.Millisecond)); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("answer: %d", resp.StatusCode)
	}
	<-call
	var gone struct{ ID, Said, Outcome string }
	if events.next("gone", &gone); gone.ID != id || gone.Outcome != "denied" || !strings.HasPrefix(gone.Said, "Denied by owner") {
		t.Errorf("gone: %+v", gone)
	}
	var entry struct{ HTML string }
	if events.next("entry", &entry); !strings.Contains(entry.HTML, "make") {
		t.Errorf("entry: %+v", entry)
	}

	t.Run("sign-out ends the stream", func(t *testing.T) {
		b.post(b.base+"/sign-out", nil)
		w.Call("coder", "exec", map[string]any{"command": "again"}) // the next event finds the sign-in gone
		events.next("reload", nil)
	})
}

// TestSomebodyIsThere shows when a call waits for people and when it is refused at once.
func TestSomebodyIsThere(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{Refuse: true})
	refused := func(when string) {
		t.Helper()
		result := <-w.Call("coder", "exec", map[string]any{"command": "make " + when})
		var refusal *toolward.Refusal
		if !errors.As(result.Err, &refusal) || refusal.Code != toolward.CodeNoApprovalChannel {
			t.Errorf("%s: ran %v, %v", when, result.Ran, result.Err)
		}
	}
	refused("nobody has signed in")
	b := signedIn(t, w)
	refused("signed in, but no page is open")
	b.get(b.base + "/") // a browser without script has no stream, but its person is there
	w.Call("coder", "exec", map[string]any{"command": "make"})
	w.AwaitPending(1)
	b.post(b.base+"/sign-out", nil)
	refused("signed out")

	watcher := signedIn(t, w)
	events := openStream(t, watcher.http, w.URL+watcher.base+"/events")
	events.next("sync", nil)
	w.Call("coder", "exec", map[string]any{"command": "make again"})
	w.AwaitPending(2)
}

func TestConfigurationInTheStream(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	events := openStream(t, b.http, w.URL+b.base+"/events")
	events.next("sync", nil)
	w.Config.Offer(desk.ConfigChange{File: "toolward.jsonc", Revision: "r1", Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+<new>\n"})
	var shown struct{ HTML string }
	events.next("config", &shown)
	if !strings.Contains(shown.HTML, `data-revision="r1"`) || strings.Contains(shown.HTML, "<new>") {
		t.Errorf("config: %s", shown.HTML)
	}
	if err := w.Config.ApplyPending("r1"); err != nil {
		t.Fatal(err)
	}
	if events.next("config", &shown); shown.HTML != "" {
		t.Errorf("after it was applied: %s", shown.HTML)
	}
}

func TestWatchThroughTheAPI(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	client := w.SocketClient()
	wire := &apiClient{t: t, http: client, base: "http://toolward"}
	wire.want(200, "POST", "/v1/login", api.Passphrase{Passphrase: consoletest.Passphrase}, nil)
	events := openStream(t, client, "http://toolward/v1/approvals/events")
	events.next("sync", nil)
	call := w.Call("coder", "exec", map[string]any{"command": "make"})
	var a api.Approval
	events.next("approval", &a)
	if a.Request == nil || a.Request.Command != "make" || a.Seen == "" {
		t.Fatalf("approval: %+v", a)
	}
	for shown := time.Now(); time.Since(shown) < 600*time.Millisecond; {
		wire.want(200, "GET", "/v1/status", nil, nil)
	}
	wire.want(200, "POST", "/v1/approvals/"+a.ID, api.Answer{Decision: "allow-once", Seen: a.Seen}, nil)
	if result := <-call; !result.Ran {
		t.Errorf("an allowed call did not run: %v", result.Err)
	}
	var done api.Approval
	if events.next("resolved", &done); done.ID != a.ID || done.Said != "Allowed once by owner (terminal)" {
		t.Errorf("resolved: %+v", done)
	}
}

// TestSlowReaderHoldsNobodyUp opens streams that nobody reads, and floods them.
func TestSlowReaderHoldsNobodyUp(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{Total: 5000})
	b := signedIn(t, w)
	page, err := url.Parse(w.URL + b.base + "/events")
	if err != nil {
		t.Fatal(err)
	}
	cookie := b.http.Jar.Cookies(page)
	for range 4 {
		conn, err := net.Dial("tcp", page.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(conn, "GET %s/events HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n", b.base, page.Host, cookie[0])
	}
	fast := openStream(t, b.http, w.URL+b.base+"/events")
	fast.next("sync", nil)
	var results []<-chan consoletest.Result
	long := strings.Repeat("x", 6000)
	for i := range 600 {
		results = append(results, w.Call("coder", "exec", map[string]any{"command": fmt.Sprint(i, " ", long)}))
	}
	w.AwaitPending(600)
	var count struct{ Waiting int }
	for count.Waiting != 600 { // the one who reads learns of all of them, though the flood was too fast for its buffer
		fast.next("count", &count)
	}
	if resp, page := b.get(b.base + "/"); resp.StatusCode != 200 || !strings.Contains(page, "560</span> more calls are waiting") {
		t.Errorf("the page of 600 calls: %d", resp.StatusCode)
	}
	w.Approvals.Close() // ends all calls
	for _, r := range results {
		<-r
	}
}

func TestStreamsAreBounded(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	for range 64 {
		openStream(t, &http.Client{Jar: b.http.Jar, Transport: &http.Transport{}}, w.URL+b.base+"/events")
	}
	if resp, _ := b.get(b.base + "/events"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the 65th stream: %d", resp.StatusCode)
	}
	if resp, _ := b.get(b.base + "/"); resp.StatusCode != 200 {
		t.Errorf("the console besides: %d", resp.StatusCode)
	}
}

func TestAuditThroughTheAPI(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	client := w.SocketClient()
	wire := &apiClient{t: t, http: client, base: "http://toolward"}
	wire.want(200, "POST", "/v1/login", api.Passphrase{Passphrase: consoletest.Passphrase}, nil)
	for _, path := range []string{"a.txt", "b.txt", "c.txt"} {
		if result := <-w.Call("coder", "read", map[string]any{"path": path}); !result.Ran {
			t.Fatal(result.Err)
		}
	}
	var records struct {
		Records []struct {
			Seq  int64
			Type string
			Tool string
		}
	}
	wire.want(200, "GET", "/v1/decisions?tool=read&limit=2", nil, &records)
	if len(records.Records) != 2 || records.Records[0].Type != "decision" || records.Records[0].Seq <= records.Records[1].Seq {
		t.Errorf("decisions: %+v", records)
	}
	for _, bad := range []string{"limit=x", "limit=5000", "verdict=maybe", "tools=read", "since=yesterday", "type=x", "agent=a&agent=b"} {
		wire.want(400, "GET", "/v1/audit?"+bad, nil, nil)
	}
	var verified api.Verified
	wire.want(200, "GET", "/v1/audit/verify", nil, &verified)
	if !verified.Sound || verified.Records < 6 {
		t.Errorf("verify: %+v", verified)
	}
	resp, err := client.Get("http://toolward/v1/audit/export")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for in := bufio.NewScanner(resp.Body); in.Scan(); lines++ {
		if !json.Valid(in.Bytes()) {
			t.Fatalf("line %d is no JSON: %s", lines, in.Text())
		}
	}
	resp.Body.Close()
	if int64(lines) < verified.Records {
		t.Errorf("the export has %d lines, the log %d records", lines, verified.Records)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://toolward/v1/audit/tail?last=1", nil)
	tail, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Body.Close()
	in := bufio.NewScanner(tail.Body)
	in.Scan()
	<-w.Call("coder", "read", map[string]any{"path": "followed.txt"})
	for in.Scan() {
		if strings.Contains(in.Text(), "followed.txt") {
			return
		}
	}
	t.Errorf("the tail ended: %v", in.Err())
}

func TestAdministrationThroughTheAPI(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	wire := &apiClient{t: t, http: w.SocketClient(), base: "http://toolward"}
	wire.want(200, "POST", "/v1/login", api.Passphrase{Passphrase: consoletest.Passphrase}, nil)

	var created api.CreatedToken
	wire.want(201, "POST", "/v1/tokens", api.NewToken{Agent: "coder", Workspace: w.Workspace, Life: "24h"}, &created)
	if created.Secret == "" || created.Agent != "coder" || created.Expires.IsZero() {
		t.Errorf("token: %+v", created)
	}
	wire.want(422, "POST", "/v1/tokens", api.NewToken{Agent: "Not An Agent", Workspace: w.Workspace}, nil)
	wire.want(400, "POST", "/v1/tokens", api.NewToken{Agent: "coder", Workspace: w.Workspace, Life: "soon"}, nil)
	var tokens api.Tokens
	wire.want(200, "GET", "/v1/tokens", nil, &tokens)
	if len(tokens.Tokens) != 1 {
		t.Errorf("tokens: %+v", tokens)
	}
	wire.want(200, "POST", "/v1/tokens/"+created.ID+"/revoke", nil, nil)
	wire.want(404, "POST", "/v1/tokens/"+created.ID+"/revoke", nil, nil)

	var level api.Level
	wire.want(200, "POST", "/v1/level?session=agent:coder:main", api.LevelFloor{Level: "lockdown"}, &level)
	if level.Level.String() != "lockdown" {
		t.Errorf("level: %+v", level)
	}
	wire.want(400, "POST", "/v1/level?session=agent:coder:main", api.LevelFloor{Level: "relaxed"}, nil)
	wire.want(400, "GET", "/v1/level?session=coder", nil, nil)
	wire.want(200, "DELETE", "/v1/level?session=agent:coder:main", nil, &level)
	if level.Level.String() != "normal" {
		t.Errorf("level: %+v", level)
	}

	var trace struct{ Verdict string }
	wire.want(200, "POST", "/v1/explain", map[string]any{"tool": "exec", "agent": "coder", "arguments": map[string]any{"command": "make"}}, &trace)
	if trace.Verdict != "ask" {
		t.Errorf("explain: %+v", trace)
	}
	var views api.ToolViews
	wire.want(200, "POST", "/v1/explain", map[string]any{"agent": "coder"}, &views)
	if len(views.Tools) != 5 || !views.Tools[0].Visible || views.Tools[4].Tool != "write" || views.Tools[4].Removed == nil {
		t.Errorf("explain without a tool: %+v", views)
	}
	wire.want(400, "POST", "/v1/explain", map[string]any{"agent": ""}, nil)

	var signIns api.SignIns
	wire.want(200, "GET", "/v1/sign-ins", nil, &signIns)
	if len(signIns.SignIns) != 1 {
		t.Errorf("sign-ins: %+v", signIns)
	}
	wire.want(404, "POST", "/v1/sign-ins/s-nothing/end", nil, nil)
	wire.want(404, "GET", "/v1/config/pending", nil, nil)
	wire.want(404, "GET", "/v1/nothing", nil, nil)
	wire.want(415, "POST", "/v1/tokens", nil, nil)
	wire.want(200, "POST", "/v1/shutdown", nil, nil)
	wire.want(200, "POST", "/v1/sign-ins/"+signIns.SignIns[0].ID+"/end", nil, nil)
	wire.want(401, "GET", "/v1/sign-ins", nil, nil)
}
