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
	permit func(context.Context, string, uint16) error
	most   int // bytes that may leave by one connection; 0 is any number

	mu      sync.Mutex
	asked   []string
	refused []string
	ended   chan Connection
}

// leave is what one connection may do.
type leave struct {
	*way
	sent int
}

func (l *leave) Spend(n int) error {
	if l.sent += n; l.most > 0 && l.sent > l.most {
		return &Error{Code: CodeSentLimit}
	}
	return nil
}

func (l *leave) Guard() *Guard { return nil }

func (l *leave) End(c Connection) { l.ended <- c }

func newWay(t *testing.T, permit func(context.Context, string, uint16) error) *way {
	t.Helper()
	w := &way{socket: filepath.Join(t.TempDir(), "s"), permit: permit, ended: make(chan Connection, 100)}
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	names := answers{"site.example": {"127.0.0.1"}, "inner.example": {"10.0.0.1"}}
	p := &Proxy{
		Guard: NewGuard(allowing(t, Config{AllowedCIDRs: []string{"127.0.0.1/32"}}), names),
		Permit: func(ctx context.Context, host string, port uint16) (Leave, error) {
			w.mu.Lock()
			w.asked = append(w.asked, fmt.Sprintf("%s:%d", host, port))
			w.mu.Unlock()
			if err := w.permit(ctx, host, port); err != nil {
				return nil, err
			}
			return &leave{way: w}, nil
		},
		Refused: func(host string, port uint16, why *Error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.refused = append(w.refused, fmt.Sprintf("%s:%d %s", host, port, why.Code))
		},
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
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the test's own server
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
	// The Host header would reach another site of the same server, and so may another spelling.
	fmt.Fprintf(conn, "PUT http://Site.EXAMPLE.:%s/x HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: secret\r\nContent-Length: 4\r\n\r\ndata", port)
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

// hangUp asks for a connection, sends what is to come while people are asked, hangs up, and waits until nobody is asked.
func hangUp(t *testing.T, request, more string) {
	t.Helper()
	asked, withdrawn := make(chan struct{}), make(chan struct{})
	w := newWay(t, func(ctx context.Context, _ string, _ uint16) error {
		close(asked)
		<-ctx.Done()
		close(withdrawn)
		return ctx.Err()
	})
	conn := w.dial(t)
	_, _ = io.WriteString(conn, request)
	<-asked
	_, _ = io.WriteString(conn, more)
	_ = conn.Close()
	select {
	case <-withdrawn:
	case <-time.After(20 * time.Second):
		t.Fatal("people are still asked for a caller that is gone")
	}
}

func TestHangingUpWithdrawsTheQuestion(t *testing.T) {
	hangUp(t, "CONNECT site.example:443 HTTP/1.1\r\n\r\n", "")
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

func TestOnlyOnePlainRequestPasses(t *testing.T) {
	w := newWay(t, yes)
	l, port := listen(t, "127.0.0.1:0")
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		reader := bufio.NewReader(conn)
		if _, err := http.ReadRequest(reader); err != nil {
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		_ = conn.(*net.TCPConn).CloseWrite()
		rest, _ := io.ReadAll(reader)
		got <- string(rest)
	}()
	conn := w.dial(t)
	fmt.Fprintf(conn, "GET http://site.example:%d/ HTTP/1.1\r\nHost: site.example\r\nConnection: keep-alive\r\n\r\n"+
		"GET http://other.example/secret HTTP/1.1\r\nHost: other.example\r\n\r\n", port)
	if answer, _ := io.ReadAll(conn); !strings.HasSuffix(string(answer), "\r\n\r\nok") {
		t.Errorf("the answer is %q", answer)
	}
	_ = conn.Close()
	if rest := <-got; rest != "" {
		t.Errorf("behind the request came %q", rest)
	}
	if asked := w.questions(); len(asked) != 1 {
		t.Errorf("asked for %q", asked)
	}
}

func TestSentLimitCutsTheConnection(t *testing.T) {
	w := newWay(t, yes)
	w.most = 1000
	l, port := listen(t, "127.0.0.1:0")
	got := make(chan int, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		n, _ := io.Copy(io.Discard, conn)
		got <- int(n)
	}()
	conn := w.dial(t)
	fmt.Fprintf(conn, "CONNECT site.example:%d HTTP/1.1\r\n\r\n", port)
	if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, "200") {
		t.Fatalf("%q", line)
	}
	_, _ = conn.Write(make([]byte, 600))
	_, _ = conn.Write(make([]byte, 5000))
	if n := <-got; n > 1000 {
		t.Errorf("%d bytes left", n)
	}
	c := <-w.ended
	if refused, ok := errors.AsType[*Error](c.Err); !ok || refused.Code != CodeSentLimit || c.Sent > 1000 {
		t.Errorf("%+v", c)
	}
}

func TestHangingUpAfterSendingSomething(t *testing.T) {
	hangUp(t, "CONNECT site.example:443 HTTP/1.1\r\n\r\nearly", " data")
}

func TestRefusalsSayWhy(t *testing.T) {
	w := newWay(t, func(_ context.Context, host string, _ uint16) error {
		return &Error{Code: CodeNotPermitted, Host: host, Why: "a person declined it\r\nX: y"}
	})
	for request, want := range map[string]string{
		"CONNECT site.example:443 HTTP/1.1\r\n\r\n":     "HTTP/1.1 403 toolward: site.example was not reached: a person declined it??X: y",
		"CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n":   "HTTP/1.1 403 toolward: 169.254.169.254 was not reached: it is not a host of the public internet, and sandboxes reach no others (ip_not_public)",
		"CONNECT example.com:25 HTTP/1.1\r\n\r\n":       "HTTP/1.1 403 toolward: example.com was not reached: its port is not one for such connections",
		"GET /index.html HTTP/1.1\r\nHost: a.b\r\n\r\n": "HTTP/1.1 400 toolward: this is a proxy: send CONNECT host:port, or one plain request for an http URL",
	} {
		conn := w.dial(t)
		_, _ = io.WriteString(conn, request)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%q: %v", request, err)
			continue
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if line := answer.Proto + " " + answer.Status; line != want || !strings.HasPrefix(string(body), "toolward: ") {
			t.Errorf("%q:\n%s\n%s\n%q", request, line, want, body)
		}
		if len(answer.Header["X"]) > 0 {
			t.Error("words of a reason became a header")
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.refused) != 2 {
		t.Errorf("told of %q", w.refused)
	}
	for code, want := range map[Code]byte{
		CodeNotPermitted: 2, CodeAddress: 2, CodeDNSAddress: 2, CodePort: 2, CodeNoRecords: 4, CodeDNS: 4, CodeTimeout: 4, CodeConnect: 5, CodeInvalidHost: 1,
	} {
		if got := socksStatus(&Error{Code: code}); got != want {
			t.Errorf("SOCKS, %s: %d, want %d", code, got, want)
		}
	}
}
