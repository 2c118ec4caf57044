package netguard

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/proxy"
)

// way is a proxy on a socket, with what it was asked for.
type way struct {
	socket string
	permit Permit

	mu    sync.Mutex
	asked []string
	ended chan Connection
}

func newWay(t *testing.T, permit Permit) *way {
	t.Helper()
	w := &way{socket: filepath.Join(t.TempDir(), "s"), permit: permit, ended: make(chan Connection, 100)}
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	names := answers{"site.example": {"127.0.0.1"}, "inner.example": {"10.0.0.1"}}
	p := &Proxy{
		Guard: NewGuard(allowing(t, Config{AllowedCIDRs: []string{"127.0.0.1/32"}}), names),
		Permit: func(ctx context.Context, host string, port uint16) error {
			w.mu.Lock()
			w.asked = append(w.asked, fmt.Sprintf("%s:%d", host, port))
			w.mu.Unlock()
			return w.permit(ctx, host, port)
		},
		Ended: func(c Connection) { w.ended <- c },
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *way) questions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked...)
}

func (w *way) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// client is an HTTP client that knows no other way out.
func (w *way) client(t *testing.T) *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the test's own server
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func yes(context.Context, string, uint16) error { return nil }

func site(t *testing.T, secure bool) (port string) {
	t.Helper()
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s %s %s %s", r.Method, r.Host, r.Header.Get("Proxy-Authorization"), body)
	})
	server := httptest.NewUnstartedServer(handler)
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server.URL[strings.LastIndexByte(server.URL, ':')+1:]
}

func TestProxyConnect(t *testing.T) {
	w := newWay(t, yes)
	port := site(t, true)
	answer, err := w.client(t).Post("https://SITE.example:"+port+"/", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if !strings.HasSuffix(string(body), " hello") {
		t.Errorf("%q", body)
	}
	if asked := w.questions(); len(asked) != 1 || asked[0] != "site.example:"+port {
		t.Errorf("asked for %q", asked)
	}
}

func TestProxyPlainRequest(t *testing.T) {
	w := newWay(t, yes)
	port := site(t, false)
	conn := w.dial(t)
	// The Host header would reach another site of the same server.
	fmt.Fprintf(conn, "PUT http://site.example:%s/x HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: secret\r\nContent-Length: 4\r\n\r\ndata", port)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if want := "PUT site.example:" + port + "  data"; string(body) != want {
		t.Errorf("%q, want %q", body, want)
	}
	c := <-w.ended
	if c.Err != nil || c.Host != "site.example" || c.Sent == 0 || c.Received == 0 {
		t.Errorf("%+v", c)
	}
}

func TestProxySOCKS(t *testing.T) {
	w := newWay(t, yes)
	port := site(t, false)
	dialer, err := proxy.SOCKS5("unix", w.socket, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"site.example", "127.0.0.1"} {
		conn, err := dialer.Dial("tcp", host+":"+port)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", host)
		body, _ := io.ReadAll(conn)
		_ = conn.Close()
		if !strings.Contains(string(body), "200 OK") {
			t.Errorf("%s: %q", host, body)
		}
	}
	if _, err := dialer.Dial("tcp", "inner.example:"+port); err == nil {
		t.Error("a private answer was dialled")
	}
}

func TestProxyRefuses(t *testing.T) {
	w := newWay(t, func(_ context.Context, host string, _ uint16) error {
		if host == "site.example" {
			return errors.New("a person said no")
		}
		return nil
	})
	for name, tt := range map[string]struct{ request, want string }{
		"people said no":      {"CONNECT site.example:443 HTTP/1.1\r\nHost: site.example\r\n\r\n", "403"},
		"a private answer":    {"CONNECT inner.example:443 HTTP/1.1\r\n\r\n", "403"},
		"a literal":           {"CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n", "403"},
		"another spelling":    {"CONNECT 0x7f.1:80 HTTP/1.1\r\n\r\n", "403"},
		"a mail port":         {"CONNECT example.com:25 HTTP/1.1\r\n\r\n", "403"},
		"no port":             {"CONNECT example.com HTTP/1.1\r\n\r\n", "400"},
		"user":                {"CONNECT a@example.com:443 HTTP/1.1\r\n\r\n", "400"},
		"another scheme":      {"GET ftp://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "400"},
		"origin form":         {"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "400"},
		"no HTTP":             {"hello\r\n\r\n", "400"},
		"a very long request": {"GET http://example.com/" + strings.Repeat("a", maxHead) + " HTTP/1.1\r\n\r\n", "400"},
	} {
		conn := w.dial(t)
		go func() { _, _ = io.WriteString(conn, tt.request) }()
		line, _ := bufio.NewReader(conn).ReadString('\n')
		if !strings.Contains(line, " "+tt.want+" ") {
			t.Errorf("%s: %q, want %s", name, line, tt.want)
		}
	}
	for _, question := range w.questions() {
		if question != "site.example:443" && question != "inner.example:443" {
			t.Errorf("people were asked about %s, which nobody may reach", question)
		}
	}
	for name, raw := range map[string]string{
		"no method fits": "\x05\x01\x02", "bind": "\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", "unknown address": "\x05\x01\x00\x05\x01\x00\x09",
	} {
		conn := w.dial(t)
		_, _ = io.WriteString(conn, raw)
		if answer, _ := io.ReadAll(conn); len(answer) < 2 || answer[len(answer)-1] == 0 && len(answer) == 2 {
			t.Errorf("SOCKS, %s: %x", name, answer)
		}
	}
}

func TestHangingUpWithdrawsTheQuestion(t *testing.T) {
	asked, withdrawn := make(chan struct{}), make(chan struct{})
	w := newWay(t, func(ctx context.Context, _ string, _ uint16) error {
		close(asked)
		<-ctx.Done()
		close(withdrawn)
		return ctx.Err()
	})
	conn := w.dial(t)
	_, _ = io.WriteString(conn, "CONNECT site.example:443 HTTP/1.1\r\n\r\n")
	<-asked
	_ = conn.Close()
	select {
	case <-withdrawn:
	case <-time.After(20 * time.Second):
		t.Fatal("people are still asked for a caller that is gone")
	}
}

func TestDataSentBeforeTheAnswerIsKept(t *testing.T) {
	w := newWay(t, yes)
	l, port := listen(t, "127.0.0.1:0")
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b, _ := io.ReadAll(conn)
		got <- string(b)
	}()
	conn := w.dial(t)
	fmt.Fprintf(conn, "CONNECT site.example:%d HTTP/1.1\r\n\r\nearly ", port)
	if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, "200") {
		t.Fatalf("%q", line)
	}
	_, _ = io.WriteString(conn, "late")
	_ = conn.(*net.UnixConn).CloseWrite()
	if text := <-got; text != "early late" {
		t.Errorf("%q", text)
	}
}

func TestZeroProxyRefuses(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go (&Proxy{}).serve(t.Context(), here)
	_, _ = io.WriteString(there, "CONNECT example.com:443 HTTP/1.1\r\n\r\n")
	if line, _ := bufio.NewReader(there).ReadString('\n'); !strings.Contains(line, "403") {
		t.Errorf("%q", line)
	}
}
