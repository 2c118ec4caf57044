package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
)

// poster sends hand-made HTTP requests.
type poster struct {
	t          testing.TB
	url        string
	version    string
	token      string
	connection string
}

// newPoster opens a session, if the version has such a thing.
func newPoster(t testing.TB, url, version string) *poster {
	t.Helper()
	p := &poster{t: t, url: url, version: version, token: "coder-secret"}
	if version < version20260728 {
		response := p.post(context.Background(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+
			version+`","capabilities":{},"clientInfo":{"name":"poster","version":"1"}}}`, nil)
		if response == nil || response.status != http.StatusOK {
			t.Fatalf("initialize: %+v", response)
		}
		p.connection = response.header.Get(connectionHeader)
	}
	return p
}

type httpAnswer struct {
	status int
	header http.Header
	body   string
}

// post sends a body and reads the whole answer; nil if there is none.
func (p *poster) post(ctx context.Context, body string, change func(*http.Request)) *httpAnswer {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return nil
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if p.version >= version20260728 || p.connection != "" {
		request.Header.Set(versionHeader, p.version)
	}
	if p.connection != "" {
		request.Header.Set(connectionHeader, p.connection)
	}
	if change != nil {
		change(request)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil
	}
	return &httpAnswer{response.StatusCode, response.Header, string(data)}
}

// try calls a tool; extra members of params may follow the arguments.
func (p *poster) try(ctx context.Context, tool, arguments string, extra ...string) *httpAnswer {
	meta := ""
	if p.version >= version20260728 {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + p.version + `","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}`
		if p.noLinks() {
			meta = strings.Replace(meta, `{"elicitation":{"url":{}}}`, `{}`, 1)
		}
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s%s%s}}`, tool, arguments, meta, strings.Join(extra, ""))
	return p.post(ctx, body, func(r *http.Request) {
		if p.version >= version20260728 {
			r.Header.Set("Mcp-Method", "tools/call")
			r.Header.Set("Mcp-Name", tool)
		}
	})
}

func (p *poster) noLinks() bool { return p.token == "coder-secret" }

// message is the JSON-RPC message of an answer, out of its event stream if it is one.
func (a *httpAnswer) message(t testing.TB) answer {
	t.Helper()
	body := a.body
	if _, data, ok := strings.Cut(body, "data: "); ok {
		body, _, _ = strings.Cut(data, "\n")
	}
	var out answer
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("status %d: %v: %q", a.status, err, a.body)
	}
	return out
}

func TestHTTPNeedsAToken(t *testing.T) {
	cases := []struct{ name, header string }{
		{"none", ""},
		{"wrong", "Bearer nobody"},
		{"empty", "Bearer "},
		{"other scheme", "Basic coder-secret"},
		{"no scheme", "coder-secret"},
		{"two words", "Bearer coder-secret coder-secret"},
	}
	w := newWorld(t)
	url := w.http(t).URL
	for _, c := range cases {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			t.Run(c.name+" "+method, func(t *testing.T) {
				request, err := http.NewRequest(method, url+"?token=coder-secret", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
				if err != nil {
					t.Fatal(err)
				}
				if c.header != "" {
					request.Header.Set("Authorization", c.header)
				}
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(response.Body)
				response.Body.Close()
				if response.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(response.Header.Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("status %d, WWW-Authenticate %q, want 401 Bearer", response.StatusCode, response.Header.Get("WWW-Authenticate"))
				}
				if strings.Contains(string(body), "nobody") {
					t.Errorf("the answer repeats the token or says why: %q", body)
				}
			})
		}
	}
}

func TestHTTPIdentity(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			url := w.http(t).URL
			for _, token := range []string{"coder-secret", "owner-secret"} {
				p := &poster{t: t, url: url, version: version, token: token}
				if version < version20260728 {
					p.connection = newPosterAs(t, url, version, token).connection
				}
				if a := p.try(context.Background(), "echo", `{}`); a == nil || a.status != http.StatusOK {
					t.Fatalf("call: %+v", a)
				}
			}
			decisions := w.Auditor.Decisions()
			if len(decisions) != 2 {
				t.Fatalf("%d records", len(decisions))
			}
			first, second := decisions[0].Call, decisions[1].Call
			if first.Caller.Owner || !second.Caller.Owner {
				t.Errorf("owner %v and %v, want only the token that says so", first.Caller.Owner, second.Caller.Owner)
			}
			if first.Session == second.Session || first.Run == second.Run || first.Caller.Connection == second.Caller.Connection {
				t.Errorf("two tokens share a session, run or connection: %+v, %+v", first, second)
			}
			if !strings.HasPrefix(string(first.Session), "agent:coder:mcp:t1:") {
				t.Errorf("session %q", first.Session)
			}
		})
	}
}

func newPosterAs(t testing.TB, url, version, token string) *poster {
	p := &poster{t: t, url: url, version: version, token: token}
	response := p.post(context.Background(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+
		version+`","capabilities":{},"clientInfo":{"name":"poster","version":"1"}}}`, nil)
	if response == nil {
		t.Fatal("initialize failed")
	}
	p.connection = response.header.Get(connectionHeader)
	return p
}

func TestHTTPSessionIsItsTokens(t *testing.T) {
	w := newWorld(t)
	url := w.http(t).URL
	victim := newPoster(t, url, version20251125)
	thief := &poster{t: t, url: url, version: version20251125, token: "other-secret", connection: victim.connection}
	if a := thief.try(context.Background(), "echo", `{}`); a == nil || a.status != http.StatusForbidden {
		t.Errorf("another token in the session: %+v, want 403", a)
	}
	if n := len(w.Auditor.Decisions()); n != 0 {
		t.Errorf("%d calls reached the gateway", n)
	}
}

func TestHTTPHostileMessages(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	cases := []struct {
		name, body string
		change     func(*http.Request)
		status     int
		code       int // JSON-RPC, 0: none expected
	}{
		{"empty", "", nil, 400, -32700},
		{"no JSON", "hello", nil, 400, -32700},
		{"two messages", call + call, nil, 400, -32700},
		{"batch", "[" + call + "]", nil, 400, -32600},
		{"wrong version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, nil, 400, -32600},
		{"deeper than any message", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, nil, 400, -32700},
		{"duplicate method", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, nil, 400, -32600},
		{"too long", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", 5<<20) + `"}}`, nil, 413, -32600},
		{"unknown session", call, func(r *http.Request) { r.Header.Set(connectionHeader, "nobody") }, 404, 0},
		{"foreign content type", call, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, 0},
		{"foreign host", call, func(r *http.Request) { r.Host = "evil.example" }, 403, 0},
		{"unknown protocol", call, func(r *http.Request) { r.Header.Set(versionHeader, "2024-11-05") }, 400, 0},
		{
			"new protocol without its header", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			func(r *http.Request) { r.Header.Del(versionHeader) }, 400, -32020,
		},
	}
	w := newWorld(t)
	p := newPoster(t, w.http(t).URL, version20251125)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := p.post(context.Background(), c.body, c.change)
			if a == nil {
				t.Fatal("no answer")
			}
			if a.status != c.status {
				t.Errorf("status %d, want %d: %.200s", a.status, c.status, a.body)
			}
			if c.code != 0 {
				if m := a.message(t); m.Error == nil || m.Error.Code != c.code {
					t.Errorf("error %.200s, want code %d", a.body, c.code)
				}
			}
		})
	}
	if n := len(w.Auditor.Decisions()); n != 0 {
		t.Errorf("%d calls reached the gateway", n)
	}
	if a := p.try(context.Background(), "echo", `{"text":"still here"}`); a == nil || !strings.Contains(a.body, "still here") {
		t.Errorf("the session afterwards: %+v", a)
	}
}

// The mark that joins a call to its request comes from this package only.
func TestHTTPMarkCannotBeForged(t *testing.T) {
	w := newWorld(t)
	p := newPoster(t, w.http(t).URL, version20251125)
	a := p.post(context.Background(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}`,
		func(r *http.Request) { r.Header.Set(markHeader, "forged") })
	if a == nil || !strings.Contains(a.body, "hi") {
		t.Errorf("got %+v", a)
	}
	w.server.carriers.mu.Lock()
	defer w.server.carriers.mu.Unlock()
	if n := len(w.server.carriers.byMark); n != 0 {
		t.Errorf("%d requests are still remembered", n)
	}
}

func TestHTTPSignsOfLife(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			w.server.aliveEvery = time.Millisecond
			p := newPoster(t, w.http(t).URL, version)
			got := make(chan *httpAnswer, 1)
			go func() { got <- p.try(context.Background(), "act", `{}`) }()
			w.people.until(t, "a1", func(*entry) bool { return true })
			time.Sleep(20 * time.Millisecond) // of a real connection: some signs must have been sent by now
			w.people.decide(t, "a1", toolward.AllowOnce)
			a := <-got
			if a == nil || strings.Count(a.body, ": waiting\n\n") < 2 {
				t.Fatalf("got %+v, want comments in the stream", a)
			}
			if m := a.message(t); !strings.Contains(string(m.Result), "done") {
				t.Errorf("result %s", a.body)
			}
		})
	}
}

// A page's time-outs must not end a call that waits for a person.
func TestHTTPOutlivesServerTimeouts(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			server := httptest.NewUnstartedServer(w.server.Handler(authenticate))
			server.Config.ReadTimeout, server.Config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
			server.Start()
			t.Cleanup(server.Close)
			p := newPoster(t, server.URL, version)
			got := make(chan *httpAnswer, 1)
			go func() { got <- p.try(context.Background(), "act", `{}`) }()
			w.people.until(t, "a1", func(*entry) bool { return true })
			time.Sleep(100 * time.Millisecond) // the server's time-outs run on the real clock
			w.people.decide(t, "a1", toolward.AllowOnce)
			if a := <-got; a == nil || !strings.Contains(a.body, "done") {
				t.Errorf("got %+v", a)
			}
		})
	}
}

func TestHTTPDeleteEndsCalls(t *testing.T) {
	w := newWorld(t)
	url := w.http(t).URL
	p := newPoster(t, url, version20251125)
	remove := func(token string) int {
		t.Helper()
		request, err := http.NewRequest(http.MethodDelete, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set(connectionHeader, p.connection)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.try(context.Background(), "act", `{}`)
	}()
	w.people.until(t, "a1", func(*entry) bool { return true })
	if status := remove("other-secret"); status != http.StatusForbidden {
		t.Errorf("another token deletes the session: status %d", status)
	}
	w.people.until(t, "a1", func(e *entry) bool { return e.gone == nil })
	if status := remove("coder-secret"); status != http.StatusNoContent {
		t.Errorf("status %d", status)
	}
	w.people.withdrawn(t, "a1")
	<-done
	w.neverRan(t)
}

func TestCloseEndsHTTPCalls(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			p := newPoster(t, w.http(t).URL, version)
			done := make(chan struct{})
			go func() {
				defer close(done)
				p.try(context.Background(), "act", `{}`)
			}()
			w.people.until(t, "a1", func(*entry) bool { return true })
			w.server.Close()
			w.people.withdrawn(t, "a1")
			<-done
			w.neverRan(t)
			p.try(context.Background(), "act", `{}`)
			w.neverRan(t)
		})
	}
}

func TestHTTPSessionsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.server.maxConnections = 2
	url := w.http(t).URL
	newPoster(t, url, version20251125)
	p := newPoster(t, url, version20251125)
	late := &poster{t: t, url: url, version: version20251125, token: "coder-secret"}
	if a := late.post(context.Background(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`, nil); a == nil || a.status != http.StatusServiceUnavailable {
		t.Errorf("a third session: %+v", a)
	}
	if a := p.try(context.Background(), "echo", `{"text":"hi"}`); a == nil || a.status != http.StatusOK {
		t.Errorf("an open session: %+v", a)
	}
}

// TestInputRequired walks through the rounds of protocol 2026-07-28 by hand, with every state that must be refused.
func TestInputRequired(t *testing.T) {
	w := newWorld(t)
	url := w.http(t).URL
	ask := func(token string) (*poster, string) {
		t.Helper()
		p := &poster{t: t, url: url, version: version20260728, token: token}
		m := p.try(context.Background(), "act", `{"n":1,"m":2}`).message(t)
		var result struct {
			ResultType    string
			RequestState  string
			InputRequests map[string]struct {
				Method string
				Params struct{ Mode, URL string }
			}
		}
		if err := json.Unmarshal(m.Result, &result); err != nil {
			t.Fatal(err)
		}
		link := result.InputRequests[linkRequest]
		if result.ResultType != "input_required" || result.RequestState == "" || link.Method != "elicitation/create" || link.Params.Mode != "url" {
			t.Fatalf("first round: %s", m.Result)
		}
		return p, result.RequestState
	}
	again := func(p *poster, arguments, state string) answer {
		t.Helper()
		quoted, _ := json.Marshal(state)
		return p.try(context.Background(), "act", arguments, `,"requestState":`+string(quoted)+`,"inputResponses":{"approval":{"action":"accept"}}`).message(t)
	}
	refused := func(name string, m answer, code toolward.Code) {
		t.Helper()
		if !strings.Contains(string(m.Result), `\"code\":\"`+string(code)+`\"`) || !strings.Contains(string(m.Result), `"isError":true`) {
			t.Errorf("%s: %s; want a refusal with code %s", name, m.Result, code)
		}
	}

	p, state := ask("owner-secret") // a1
	w.people.decide(t, "a1", toolward.AllowOnce)
	head, signature, _ := strings.Cut(state, ".")
	for name, forged := range map[string]string{
		"garbage": "x", "no signature": head, "empty signature": head + ".", "other head": "e30." + signature,
		"cut": state[:len(state)-1], "longer": state + "A", "endless": strings.Repeat("A", 10_000),
		"other key": func() string {
			s, _ := sealer{key: make([]byte, 32)}.seal(waiting{Approval: "a1"})
			return s
		}(),
	} {
		refused("forged: "+name, again(p, `{"n":1,"m":2}`, forged), toolward.CodeInvalidArgs)
	}
	refused("other arguments", again(p, `{"n":2,"m":2}`, state), toolward.CodeInvalidArgs)
	refused("another client", again(&poster{t: t, url: url, version: version20260728, token: "other-secret"}, `{"n":1,"m":2}`, state), toolward.CodeInvalidArgs)
	w.neverRan(t)

	// The same arguments in another spelling are the same call.
	m := again(p, `{ "m":2, "n":1 }`, state)
	if !strings.Contains(string(m.Result), "done") {
		t.Errorf("resumed: %s", m.Result)
	}
	w.ranOnce(t)
	// The approval is used up: the state is good for nothing any more.
	w.people.decide(t, "a1", toolward.AllowOnce)
	refused("replayed", again(p, `{"n":1,"m":2}`, state), toolward.CodeTargetChanged)
	w.ranOnce(t)

	p, state = ask("owner-secret") // a2
	w.Policy.Rev = "2"
	refused("policy changed", again(p, `{"n":1,"m":2}`, state), toolward.CodeTargetChanged)
	w.people.withdrawn(t, "a2")
	w.ranOnce(t)

	w.people.life = 0
	p, state = ask("owner-secret") // a3
	refused("stale", again(p, `{"n":1,"m":2}`, state), toolward.CodeApprovalTimeout)
	w.ranOnce(t)

	for _, d := range w.Auditor.Decisions() {
		if d.Verdict == toolward.Allow && d.Via != "approval a1" {
			t.Errorf("allowed via %s", d.Via)
		}
	}
}
