package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

func TestSignIn(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := newBrowser(t, w)

	resp, body := b.get("/")
	if resp.StatusCode != 200 || !strings.Contains(body, `name="passphrase"`) || strings.Contains(body, "Set-up code") {
		t.Fatalf("front page: %d\n%s", resp.StatusCode, body)
	}
	resp, body = b.post("/sign-in", url.Values{"passphrase": {"wrong"}})
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "Wrong passphrase") || len(resp.Cookies()) != 0 {
		t.Fatalf("wrong passphrase: %d\n%s", resp.StatusCode, body)
	}
	resp, _ = b.post("/sign-in", url.Values{"passphrase": {consoletest.Passphrase}})
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		t.Fatalf("sign-in: %d, cookies %v", resp.StatusCode, resp.Cookies())
	}
	cookie, base := resp.Cookies()[0], strings.TrimSuffix(resp.Header.Get("Location"), "/")
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != base || !regexp.MustCompile(`^/c/[a-z0-9]{16}$`).MatchString(base) {
		t.Errorf("cookie %+v at %q", cookie, base)
	}
	resp, body = b.get(base + "/")
	if resp.StatusCode != 200 || !strings.Contains(body, "Nothing is waiting") {
		t.Fatalf("console: %d\n%s", resp.StatusCode, body)
	}

	t.Run("the cookie is worth nothing elsewhere", func(t *testing.T) {
		for name, req := range map[string]struct{ path, cookie string }{
			"another path":       {"/c/aaaaaaaaaaaaaaaa/", cookie.Value},
			"path alone":         {base + "/", ""},
			"path, other cookie": {base + "/", "another"},
			"api at the root":    {"/v1/approvals", cookie.Value},
		} {
			r, err := http.NewRequest("GET", w.URL+req.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if req.cookie != "" {
				r.AddCookie(&http.Cookie{Name: cookie.Name, Value: req.cookie})
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode == 200 {
				t.Errorf("%s: got in", name)
			}
		}
	})
	t.Run("a planted cookie does not hide the right one", func(t *testing.T) {
		r, _ := http.NewRequest("GET", w.URL+base+"/", nil)
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: "planted"})
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
	t.Run("sign-out ends it", func(t *testing.T) {
		if resp, body := b.get(base + "/sign-ins"); resp.StatusCode != 200 || !strings.Contains(body, "this browser") {
			t.Errorf("sign-ins: %d\n%s", resp.StatusCode, body)
		}
		if resp, _ := b.post(base+"/sign-out", nil); resp.Header.Get("Location") != "/?out=1" {
			t.Errorf("sign-out leads to %q", resp.Header.Get("Location"))
		}
		r, _ := http.NewRequest("GET", w.URL+base+"/", nil)
		r.AddCookie(cookie)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusSeeOther {
			t.Errorf("the ended session still answers %d", resp.StatusCode)
		}
	})
}

// TestLinksToACall follows the link that clients and chats are given, signed out and signed in.
func TestLinksToACall(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := newBrowser(t, w)
	w.Call("coder", "exec", map[string]any{"command": "make"})
	id := w.AwaitPending(1)[0].ID
	resp, body := b.get("/approvals/" + id)
	if resp.StatusCode != 200 || !strings.Contains(body, `name="for" value="`+id+`"`) || strings.Contains(body, "make") {
		t.Fatalf("link, signed out: %d\n%s", resp.StatusCode, body)
	}
	resp, body = b.post("/sign-in", url.Values{"passphrase": {"wrong"}, "for": {id}})
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, `name="for" value="`+id+`"`) {
		t.Errorf("a wrong passphrase loses the way: %d\n%s", resp.StatusCode, body)
	}
	resp, _ = b.post("/sign-in", url.Values{"passphrase": {consoletest.Passphrase}, "for": {id}})
	where := resp.Header.Get("Location")
	if !strings.HasSuffix(where, "/approvals/"+id) {
		t.Fatalf("sign-in leads to %q", where)
	}
	if resp, body := b.get(where); resp.StatusCode != 200 || !strings.Contains(body, "make") {
		t.Errorf("the call: %d\n%s", resp.StatusCode, body)
	}
	for _, hostile := range []string{"//evil.example", "../x", "https://evil.example", "a/b", "a b", strings.Repeat("a", 129), "a%2fb", `"><script>`} {
		resp, _ := b.post("/sign-in", url.Values{"passphrase": {consoletest.Passphrase}, "for": {hostile}})
		if where := resp.Header.Get("Location"); !regexp.MustCompile(`^/c/[a-z0-9]{16}/$`).MatchString(where) {
			t.Errorf("for %q the sign-in leads to %q", hostile, where)
		}
	}
	if resp, _ := newBrowser(t, w).get("/c/aaaaaaaaaaaaaaaa/approvals/" + id); resp.Header.Get("Location") != "/approvals/"+id+"?out=1" {
		t.Errorf("an ended session leads to %q", resp.Header.Get("Location"))
	}
}

func TestSignInIsRateLimited(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := newBrowser(t, w)
	for range 5 {
		b.post("/sign-in", url.Values{"passphrase": {"wrong"}})
	}
	resp, body := b.post("/sign-in", url.Values{"passphrase": {consoletest.Passphrase}})
	if resp.StatusCode == http.StatusSeeOther || !strings.Contains(body, "Too many wrong attempts") {
		t.Errorf("sixth attempt: %d\n%s", resp.StatusCode, body)
	}
}

// A browser that signed in before signs in while another program of this machine guesses.
func TestAKnownBrowserSignsInWhileOthersGuess(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	_, body := b.get(b.base + "/browser")
	var known struct{ Token string }
	if err := json.Unmarshal([]byte(body), &known); err != nil || known.Token == "" {
		t.Fatalf("%q, %v", body, err)
	}
	guesser := newBrowser(t, w)
	for range 60 {
		guesser.post("/sign-in", url.Values{"passphrase": {"wrong"}, "browser": {"made.up"}})
	}
	for token, in := range map[string]bool{"": false, "made.up": false, known.Token: true} {
		resp, _ := newBrowser(t, w).post("/sign-in", url.Values{"passphrase": {consoletest.Passphrase}, "browser": {token}})
		if (resp.StatusCode == http.StatusSeeOther) != in {
			t.Errorf("%q: %d", token, resp.StatusCode)
		}
	}
	if _, body := newBrowser(t, w).get("/"); !strings.Contains(body, `name="browser"`) {
		t.Errorf("the page has no place for it:\n%s", body)
	}
}

func TestSetUp(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{Fresh: true})
	b := newBrowser(t, w)
	if _, body := b.get("/"); !strings.Contains(body, "Set-up code") {
		t.Fatalf("front page of a fresh installation:\n%s", body)
	}
	form := func(code, passphrase, again string) url.Values {
		return url.Values{"code": {code}, "passphrase": {passphrase}, "again": {again}}
	}
	for name, wrong := range map[string]url.Values{
		"wrong code":      form("AAAAA-AAAAA", consoletest.Passphrase, consoletest.Passphrase),
		"no code":         form("", consoletest.Passphrase, consoletest.Passphrase),
		"they differ":     form(w.People.SetupCode(), consoletest.Passphrase, "something else"),
		"weak passphrase": form(w.People.SetupCode(), "short", "short"),
	} {
		if resp, _ := b.post("/setup", wrong); resp.StatusCode != http.StatusUnprocessableEntity || !w.People.NeedsSetup() {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	code := w.People.SetupCode()
	resp, body := b.post("/setup", form(code, consoletest.Passphrase, consoletest.Passphrase))
	if resp.StatusCode != http.StatusSeeOther || w.People.NeedsSetup() {
		t.Fatalf("set-up: %d\n%s", resp.StatusCode, body)
	}
	if resp, _ := b.get(resp.Header.Get("Location")); resp.StatusCode != 200 {
		t.Errorf("console after set-up: %d", resp.StatusCode)
	}
	if resp, _ := b.post("/setup", form(code, "another long passphrase", "another long passphrase")); resp.StatusCode == http.StatusSeeOther {
		t.Error("the code worked twice")
	}
}

// TestRequesterHasNoRights walks every route of the API as somebody who merely reached a door.
func TestRequesterHasNoRights(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	socket := w.SocketClient()
	routes := []string{
		"GET /v1/approvals", "GET /v1/approvals/events", "GET /v1/approvals/abcdefgh", "POST /v1/approvals/abcdefgh",
		"GET /v1/decisions", "GET /v1/grants", "POST /v1/grants/abc/revoke", "GET /v1/audit", "GET /v1/audit/tail",
		"GET /v1/audit/verify", "GET /v1/audit/export", "GET /v1/sessions", "GET /v1/anomalies", "GET /v1/level?session=agent:a:b", "POST /v1/level?session=agent:a:b",
		"DELETE /v1/level?session=agent:a:b", "GET /v1/tokens", "POST /v1/tokens", "POST /v1/tokens/x/revoke",
		"POST /v1/explain", "GET /v1/config/pending", "POST /v1/config/apply", "GET /v1/sign-ins",
		"POST /v1/sign-ins/x/end", "POST /v1/shutdown", "POST /v1/passphrase", "GET /v1/matrix", "GET /v1/matrix/tool?tool=exec", "GET /v1/layers?agent=coder",
	}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		for door, base := range map[string]string{"socket": "http://toolward", "tcp": w.URL, "tcp console": w.URL + "/c/aaaaaaaaaaaaaaaa"} {
			client := http.DefaultClient
			if door == "socket" {
				client = socket
			}
			req, err := http.NewRequest(method, base+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			want := []int{http.StatusUnauthorized}
			if door == "tcp" {
				want = []int{http.StatusNotFound}
			}
			if resp.StatusCode != want[0] {
				t.Errorf("%s at the %s door: %d, want %v", route, door, resp.StatusCode, want)
			}
		}
	}
	var status api.Status
	resp, err := socket.Get("http://toolward/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil || status.SignedIn || status.Waiting != nil || status.Console != w.URL {
		t.Errorf("status for a requester: %+v, %v", status, err)
	}
}

func TestTerminalSignIn(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	wire := &apiClient{t: t, http: w.SocketClient(), base: "http://toolward"}

	wire.want(http.StatusUnauthorized, "POST", "/v1/login", api.Passphrase{Passphrase: "wrong"}, nil)
	var in api.SignedIn
	wire.want(200, "POST", "/v1/login", api.Passphrase{Passphrase: consoletest.Passphrase}, &in)
	if !strings.Contains(in.Name, "terminal") {
		t.Errorf("signed in as %q", in.Name)
	}
	var status api.Status
	wire.want(200, "GET", "/v1/status", nil, &status)
	if !status.SignedIn || status.Waiting == nil {
		t.Errorf("status after sign-in: %+v", status)
	}
	wire.want(200, "GET", "/v1/approvals", nil, nil)

	t.Run("not for a process outside that terminal", func(t *testing.T) {
		w.Processes.Change(func(p *identity.Process) { p.TTY = 0 })
		defer w.Processes.Change(func(p *identity.Process) { p.TTY = 5 })
		other := &apiClient{t: t, http: w.SocketClient(), base: "http://toolward"}
		var p door.Problem
		other.want(http.StatusUnauthorized, "GET", "/v1/approvals", nil, &p)
		if !strings.Contains(p.Message, "terminal") {
			t.Errorf("the refusal does not say why: %q", p.Message)
		}
	})
	wire.want(200, "POST", "/v1/logout", nil, nil)
	wire.want(http.StatusUnauthorized, "GET", "/v1/approvals", nil, nil)
	wire.want(http.StatusConflict, "POST", "/v1/logout", nil, nil)
}

func TestPeerOf(t *testing.T) {
	peers := make(chan identity.Process, 1)
	w := consoletest.New(t, consoletest.Options{Hooks: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		peer, _ := door.PeerOf(r.Context())
		peers <- peer
	})})
	resp, err := w.SocketClient().Post("http://toolward/v1/hook/claude-code/PreToolUse", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := <-peers; got.PID != os.Getpid() {
		t.Errorf("peer %+v, want this process", got)
	}
	t.Run("another user's process is refused", func(t *testing.T) {
		w.Processes.Change(func(p *identity.Process) { p.UID += 7 })
		resp, err := w.SocketClient().Get("http://toolward/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
}

func TestSocketRoutesStayAtTheSocket(t *testing.T) {
	hook := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hook") })
	w := consoletest.New(t, consoletest.Options{Hooks: hook, MCP: hook})
	for path, want := range map[string]int{
		"/v1/hook/claude-code/PreToolUse": 404, "/v1/login": 404, "/mcp/stdio": 404, "/mcp": 200, "/healthz": 200, "/nothing": 404,
	} {
		resp, err := http.Get(w.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("GET %s at the TCP door: %d, want %d", path, resp.StatusCode, want)
		}
	}
	resp, err := w.SocketClient().Get("http://toolward/mcp")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 404 {
		t.Errorf("/mcp at the socket door: %d", resp.StatusCode)
	}
}
