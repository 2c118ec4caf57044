package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/internal/passkeytest"
)

// front is a browser before a reverse proxy that ends TLS for https://example.com, before a daemon.
type front struct {
	t      *testing.T
	http   *http.Client
	target atomic.Pointer[url.URL] // where the daemon is; another port after each start
	base   string
}

const frontOrigin = "https://example.com" // the name in the certificate of httptest

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{t: t}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(f.target.Load())
		r.Out.Host = r.In.Host
		r.Out.Header["X-Forwarded-For"] = []string{"203.0.113.7"}
	}})
	t.Cleanup(proxy.Close)
	f.http = proxy.Client()
	f.http.Timeout = time.Minute
	f.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	f.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", proxy.Listener.Addr().String())
	}
	t.Cleanup(f.http.CloseIdleConnections)
	var err error
	if f.http.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *front) to(m *live.Machine) {
	f.t.Helper()
	target, err := url.Parse(m.URL)
	if err != nil {
		f.t.Fatal(err)
	}
	f.target.Store(target)
}

func (f *front) send(method, path, media string, body []byte) (*http.Response, string) {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.t.Context(), method, frontOrigin+path, bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	request.Header.Set("Origin", frontOrigin)
	if media != "" {
		request.Header.Set("Content-Type", media)
	}
	if media == "application/json" {
		request.Header.Set("Accept", media)
	}
	response, err := f.http.Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return response, string(text)
}

func (f *front) json(path string, body any) (out struct {
	Question   json.RawMessage
	Answer, To string
},
) {
	f.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		f.t.Fatal(err)
	}
	response, text := f.send("POST", path, "application/json", raw)
	if response.StatusCode != http.StatusOK {
		f.t.Fatalf("%s: %d %s", path, response.StatusCode, text)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		f.t.Fatalf("%v: %s", err, text)
	}
	return out
}

// TestDaemonBehindAProxy runs the daemon with the settings of deploy/toolward.jsonc behind a reverse proxy with TLS: the
// console, a passkey that outlives a restart, a WebSocket, the client's address.
func TestDaemonBehindAProxy(t *testing.T) {
	settings, err := os.ReadFile("../../deploy/toolward.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	m := live.NewMachine(t, strings.ReplaceAll(string(settings), "https://gate.example.org", frontOrigin))
	m.Start()
	f := newFront(t)
	f.to(m)
	form := url.Values{"passphrase": {live.Passphrase}}.Encode()
	response, text := f.send("POST", "/sign-in", "application/x-www-form-urlencoded", []byte(form))
	if response.StatusCode != http.StatusSeeOther || len(response.Cookies()) != 1 || !response.Cookies()[0].Secure {
		t.Fatalf("sign-in: %d %v\n%s", response.StatusCode, response.Cookies(), text)
	}
	if got := response.Header.Get("Strict-Transport-Security"); got == "" {
		t.Error("no Strict-Transport-Security")
	}
	f.base = strings.TrimSuffix(response.Header.Get("Location"), "/")
	if response, text := f.send("GET", f.base+"/sign-ins", "", nil); response.StatusCode != http.StatusOK || !strings.Contains(text, "203.0.113.7") {
		t.Errorf("sign-ins: %d, or not the browser's address", response.StatusCode)
	}
	a := passkeytest.New(frontOrigin)
	made := a.Make(t, []byte(f.json(f.base+"/passkeys/new", map[string]any{"passphrase": live.Passphrase}).Question))
	f.json(f.base+"/passkeys", map[string]any{"name": "phone", "answer": json.RawMessage(made)})

	m.Restart()
	f.to(m)
	if response, _ := f.send("GET", f.base+"/", "", nil); response.StatusCode != http.StatusSeeOther {
		t.Errorf("a sign-in outlived the restart: %d", response.StatusCode)
	}
	asked := f.json("/sign-in/passkey", nil)
	in := f.json(asked.Answer, map[string]any{"answer": json.RawMessage(a.Sign(t, []byte(asked.Question)))})
	if response, text := f.send("GET", in.To, "", nil); response.StatusCode != http.StatusOK || !strings.Contains(text, "Nothing is waiting") {
		t.Errorf("the console, by passkey: %d\n%s", response.StatusCode, text)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	socket, _, err := websocket.Dial(ctx, frontOrigin+"/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: f.http.Transport}})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	if _, first, err := socket.Read(ctx); err != nil || !strings.Contains(string(first), "connect.challenge") {
		t.Errorf("websocket: %s, %v", first, err)
	}
}
