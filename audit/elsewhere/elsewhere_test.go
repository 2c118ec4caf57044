package elsewhere

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/audit"
)

// broken is a place that may not answer.
type broken struct {
	mu    sync.Mutex
	err   error
	hangs bool
	lines []string
	at    []time.Time
}

func (b *broken) send(ctx context.Context, line []byte) error {
	b.mu.Lock()
	err, hangs := b.err, b.hangs
	if err == nil && !hangs {
		b.lines = append(b.lines, string(line))
	}
	b.at = append(b.at, time.Now())
	b.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (b *broken) set(err error, hangs bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err, b.hangs = err, hangs
}

func (b *broken) sent() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines
}

func keeper(log io.Writer, to place) *Keeper {
	ctx, stop := context.WithCancel(context.Background())
	w := &way{
		Options: Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }, Log: slog.New(slog.NewTextHandler(log, nil))},
		name:    "there", to: to, every: time.Minute, wake: make(chan struct{}, 1),
	}
	k := &Keeper{ways: []*way{w}, stop: stop}
	k.work.Go(func() { w.deliver(ctx) })
	return k
}

// TestDelivery: nobody waits for a place that fails or hangs; the newest checkpoint arrives when it can; failures are told once.
func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		to := &broken{}
		k := keeper(&log, to)
		begin := time.Now()
		for i := range 1000 {
			k.Keep(audit.Seal{Seq: int64(i)})
		}
		if time.Since(begin) != 0 {
			t.Error("a caller waited")
		}
		time.Sleep(2 * time.Second)
		if got := to.sent(); len(got) != 1 || !strings.Contains(got[0], `"seq":999`) {
			t.Fatalf("sent %q, want the newest, once", got)
		}
		if to.at[0].Sub(begin) < settle {
			t.Error("a checkpoint left before its record was on disk")
		}
		k.Keep(audit.Seal{Seq: 1000})
		time.Sleep(30 * time.Second)
		if len(to.sent()) != 1 {
			t.Error("a second one within a minute")
		}
		time.Sleep(time.Minute)
		if len(to.sent()) != 2 {
			t.Error("the second one did not arrive")
		}

		to.set(errors.New("refused: hunter2"), false)
		k.Keep(audit.Seal{Seq: 1001})
		time.Sleep(10 * time.Minute)
		if words := k.Failing(); len(words) != 1 || !strings.Contains(words[0], "there: refused: ***") {
			t.Errorf("failing: %q", words)
		}
		to.set(nil, true)
		k.Keep(audit.Seal{Seq: 1002})
		time.Sleep(10 * time.Minute)
		to.set(nil, false)
		time.Sleep(3 * time.Minute)
		if got := to.sent(); len(got) != 3 || !strings.Contains(got[2], `"seq":1002`) || k.Failing() != nil {
			t.Errorf("after it works again: %q, failing %q", got, k.Failing())
		}
		k.Keep(audit.Seal{Seq: 1003})
		k.Close(t.Context())
		if got := to.sent(); len(got) != 4 {
			t.Errorf("what waited at the end was not sent: %q", got)
		}
		if n := strings.Count(log.String(), "could not be kept"); n != 1 || strings.Contains(log.String(), "hunter2") {
			t.Errorf("%d failures told:\n%s", n, log.String())
		}
	})
}

// TestPlaces sends a checkpoint to each kind of place and reads it back.
func TestPlaces(t *testing.T) {
	seal := audit.Seal{Kind: audit.SealHead, Seq: 7, Time: time.Unix(1_800_000_000, 0), Open: 8}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	dir := t.TempDir()
	read := map[string]func() string{}
	list := map[string]place{}

	path := filepath.Join(dir, "checkpoints")
	list["file"] = file{path}
	read["file"] = func() string { text, _ := os.ReadFile(path); return string(text) }

	localLog = filepath.Join(dir, "log")
	t.Cleanup(func() { localLog = "/dev/log" })
	log, err := net.ListenPacket("unixgram", localLog)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	list["local"] = syslog{"local"}
	read["local"] = func() string { return datagram(t, log) }

	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	list["udp"] = syslog{"udp://" + udp.LocalAddr().String()}
	read["udp"] = func() string { return datagram(t, udp) }

	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	list["tcp"] = syslog{"tcp://" + tcp.Addr().String()}
	read["tcp"] = func() string {
		conn, err := tcp.Accept()
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		size, rest, _ := strings.Cut(string(text), " ")
		if len(size) != 3 || !strings.HasPrefix(rest, "<109>1 ") {
			t.Errorf("tcp: %q is not counted", text)
		}
		return rest
	}

	posted := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted <- r.Header.Get("Authorization") + " " + string(body)
	}))
	defer server.Close()
	t.Setenv("HOOK_TOKEN", "t0ken")
	list["webhook"] = newWebhook(Settings{Webhook: server.URL, WebhookTokenEnv: "HOOK_TOKEN"})
	read["webhook"] = func() string { return <-posted }

	for name, to := range list {
		if err := to.send(ctx, seal.Line()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := read[name]()
		if !strings.Contains(text, string(seal.Line())) {
			t.Errorf("%s: %q", name, text)
		}
		if name == "webhook" && !strings.HasPrefix(text, "Bearer t0ken ") {
			t.Errorf("webhook: %q", text)
		}
	}
}

func datagram(t *testing.T, from net.PacketConn) string {
	t.Helper()
	buf := make([]byte, 4096)
	n, _, err := from.ReadFrom(buf)
	if err != nil {
		t.Error(err)
	}
	if !bytes.HasPrefix(buf[:n], []byte("<109>1 ")) || !bytes.Contains(buf[:n], []byte(" toolward ")) {
		t.Errorf("%q is not of RFC 5424", buf[:n])
	}
	return string(buf[:n])
}

// TestPlacesThatAreNone: what is there in a place's stead gets nothing, and nobody waits for it.
func TestPlacesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/dev/null", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	moved := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	for name, to := range map[string]place{
		"a link":         file{filepath.Join(dir, "link")},
		"a directory":    file{dir},
		"a device":       file{"/dev/null"},
		"nobody listens": syslog{"tcp://127.0.0.1:1"},
		"a redirect":     newWebhook(Settings{Webhook: moved.URL}),
	} {
		if err := to.send(t.Context(), []byte("{}")); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	secret := newWebhook(Settings{Webhook: "http://127.0.0.1:1/hook?key=s3cret"})
	if err := secret.send(t.Context(), []byte("{}")); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error is %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		settings Settings
		wrong    string
	}{
		{Settings{}, ""},
		{Settings{Syslog: "local", File: "/var/log/toolward", Webhook: "https://log.example.org/?key=x", WebhookTokenEnv: "T", EveryMs: 1000}, ""},
		{Settings{Webhook: "http://127.0.0.1:9/x"}, ""},
		{Settings{Syslog: "udp://[::1]:514"}, ""},
		{Settings{Syslog: "yes"}, "syslog"},
		{Settings{Syslog: "unix:///tmp/x"}, "syslog"},
		{Settings{Syslog: "tcp://host"}, "syslog"},
		{Settings{File: "checkpoints"}, "file"},
		{Settings{File: "/var/log/../x"}, "file"},
		{Settings{Webhook: "http://localhost/x"}, "webhook"},
		{Settings{Webhook: "https://me:pass@host/"}, "webhook"},
		{Settings{Webhook: "file:///x"}, "webhook"},
		{Settings{WebhookTokenEnv: "T"}, "webhookTokenEnv"},
		{Settings{EveryMs: 10}, "everyMs"},
	} {
		wrong := test.settings.Check()
		if test.wrong == "" && len(wrong) != 0 || test.wrong != "" && (len(wrong) != 1 || wrong[0].Key != test.wrong) {
			t.Errorf("%+v: %v, want %q", test.settings, wrong, test.wrong)
		}
	}
}

// TestOpen delivers to what the settings name.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoints")
	k := Open(Settings{File: path}, Options{Redact: strings.ToLower, Log: slog.New(slog.DiscardHandler)})
	k.Keep(audit.Seal{Seq: 3})
	k.Close(t.Context())
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `"seq":3`) {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := audit.ReadStatements(bytes.NewReader(text), make(ed25519.PublicKey, ed25519.PublicKeySize)); err == nil {
		t.Error("a seal without a signature is read")
	}
}
