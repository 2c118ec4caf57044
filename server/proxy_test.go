package server_test

import (
	"context"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/internal/passkeytest"
	"github.com/toolward/toolward/server/protocol"
)

const publicOrigin = "https://example.com" // the name in the certificate of httptest

// inFront is a reverse proxy that ends TLS, and a browser before it.
func inFront(t *testing.T, w *consoletest.World) *browser {
	t.Helper()
	target, err := url.Parse(w.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header["X-Forwarded-For"] = []string{"203.0.113.7"} // as if the browser was there
	}})
	t.Cleanup(proxy.Close)
	client := proxy.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", proxy.Listener.Addr().String())
	}
	if client.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return &browser{t: t, w: w, origin: publicOrigin, http: client}
}

// TestBehindAProxy signs in through a reverse proxy: cookies are for TLS only, browsers are told to stay with TLS, the
// client's address is the browser's, passkeys belong to the public name, and WebSockets pass.
func TestBehindAProxy(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{Public: publicOrigin, Proxies: []string{"127.0.0.1"}, Protocol: &protocol.Config{
		Auth: protocol.Auth{Token: "a token for tests"}, TrustedProxies: []string{"127.0.0.1"},
	}})
	b := inFront(t, w)
	resp, body := b.get("/")
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, `<span class="mono">`+publicOrigin+`<`) {
		t.Fatalf("%d\n%s", resp.StatusCode, body)
	}
	if got := resp.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" {
		t.Errorf("Strict-Transport-Security: %q", got)
	}
	resp, _ = b.post("/sign-in", url.Values{"passphrase": {consoletest.Passphrase}})
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 || !resp.Cookies()[0].Secure {
		t.Fatalf("%d %v", resp.StatusCode, resp.Cookies())
	}
	b.base = strings.TrimSuffix(resp.Header.Get("Location"), "/")
	if _, body := b.get(b.base + "/sign-ins"); !strings.Contains(body, "203.0.113.7") {
		t.Error("the sign-in's address is not the browser's")
	}
	a := passkeytest.New(publicOrigin)
	b.register(a, "phone")
	c := inFront(t, w)
	if status, said := c.enterWith(a); status != http.StatusOK {
		t.Errorf("%d %s", status, said)
	}
	if resp, _ := c.get(c.base + "/"); resp.StatusCode != http.StatusOK {
		t.Errorf("the console: %d", resp.StatusCode)
	}
	home := at(t, w, "localhost")
	if _, body := home.get("/"); strings.Contains(body, "data-passkey") {
		t.Error("a passkey of the public name is offered at localhost")
	}

	t.Run("without TLS nothing is promised", func(t *testing.T) {
		resp, _ := home.post("/sign-in", url.Values{"passphrase": {consoletest.Passphrase}})
		if resp.StatusCode != http.StatusSeeOther || resp.Cookies()[0].Secure || resp.Header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%d %v %v", resp.StatusCode, resp.Cookies(), resp.Header)
		}
	})
	t.Run("another name is refused", func(t *testing.T) {
		b := inFront(t, w)
		b.origin = "https://evil.example.com"
		b.http.Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com"
		if resp, _ := b.get("/"); resp.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%d", resp.StatusCode)
		}
	})
	t.Run("websocket", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		socket, _, err := websocket.Dial(ctx, publicOrigin+"/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: b.http.Transport}})
		if err != nil {
			t.Fatal(err)
		}
		defer socket.CloseNow()
		if _, text, err := socket.Read(ctx); err != nil || !strings.Contains(string(text), "connect.challenge") {
			t.Errorf("%s, %v", text, err)
		}
	})
}

// TestUntrustedProxy counts wrong passphrases of everybody behind a proxy that nobody trusts as those of one: a header
// that anybody can write is no new start for who guesses.
func TestUntrustedProxy(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := newBrowser(t, w)
	for i := range 7 {
		resp, body := b.do("POST", "/sign-in", strings.NewReader("passphrase=wrong"), map[string]string{
			"Content-Type": "application/x-www-form-urlencoded", "X-Forwarded-For": "203.0.113." + string(rune('1'+i)),
		})
		if i > 4 && !strings.Contains(body, "Too many wrong attempts") {
			t.Errorf("attempt %d: %d", i, resp.StatusCode)
		}
	}
}
