package attacks

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/server/protocol"
)

// judgeOwner: somebody says about itself that it acts for the owner, in every place where a call over the network has
// room for it, and in the settings of a channel. Only a token can say so, and its person has made it.
func judgeOwner(t *testing.T, c *attack, claims fields) (outcome, error) {
	w := newWorld(t)
	w.set([]any{"gateway", "cron"}, "gateway", "tools", "allow") // not hidden for another reason
	if claims.has("allowFrom") {
		channel := cmp.Or(claims.text("surface"), "internal")
		before := w.config
		w.set(claims["allowFrom"], "channels", channel, "allowFrom")
		if _, err := w.load(); err != nil {
			w.config = before // such a setting is not even known
			delete(w.config, "channels")
		}
	}
	w.compile()
	doors := w.serveGateway()
	call := func(tool string) map[string]any {
		body := map[string]any{"tool": tool, "dryRun": true, "args": map[string]any{}}
		for name, value := range claims {
			body[name] = value
			body["args"].(map[string]any)[name] = value
		}
		return body
	}
	headers := map[string]string{"X-Openclaw-Message-Channel": claims.text("surface")}
	for name, value := range claims {
		headers["X-Openclaw-"+name] = fmt.Sprint(value)
	}
	for _, tool := range []string{"gateway", "cron"} {
		if status, answer, err := doors.post(ownerToken, map[string]any{"tool": tool, "dryRun": true}, nil); err != nil || status != http.StatusOK {
			return outcome{}, fmt.Errorf("the owner does not see %s either, which proves nothing: %d %s %v", tool, status, answer, err)
		}
		for _, token := range []string{agentToken, gatewaySecret} {
			status, answer, err := doors.post(token, call(tool), headers)
			if err != nil {
				return outcome{}, err
			}
			if status == http.StatusOK {
				return outcome{answer: allowed, why: tool + ": " + answer}, nil
			}
		}
		if why := doors.claimed(tool, claims); why != "" {
			return outcome{answer: allowed, why: why}, nil
		}
	}
	return outcome{answer: denied, took: max(doors.watch.longest, w.watch.longest)}, nil
}

// claimed tries the same over the gateway protocol; it says what was answered if that was a decision.
func (w *wired) claimed(tool string, claims fields) string {
	ws, err := w.connect(visit{}, nil)
	must(w.t, err)
	params := map[string]any{"name": tool, "dryRun": true, "args": map[string]any(claims)}
	if err := w.exchange(ws, map[string]any{"type": "req", "id": "plain", "method": "tools.invoke", "params": params}); err != nil {
		return "" // refused as a whole
	}
	if w.last["ok"] == true {
		return fmt.Sprint(tool, " over the gateway protocol: ", w.last)
	}
	for name, value := range claims {
		params[name] = value
	}
	if err := w.exchange(ws, map[string]any{"type": "req", "id": "claims", "method": "tools.invoke", "params": params}); err == nil && w.last["ok"] == true {
		return fmt.Sprint(tool, " over the gateway protocol: ", w.last)
	}
	return ""
}

// judgeLog: a client whose credential is refused chooses texts that are logged. It comes over a socket, byte for byte as
// the case says, and, because the HTTP server refuses some of that, once more behind it.
func judgeLog(t *testing.T, _ *attack, what fields) (outcome, error) {
	if err := what.only("log", "header", "path"); err != nil {
		return outcome{}, err
	}
	var b safeBuffer
	w := consoletest.New(t, consoletest.Options{Protocol: &protocol.Config{}, Log: display.NewLog(&b, slog.LevelDebug)})
	name, value, _ := strings.Cut(what.text("header"), ":")
	name, value = cmp.Or(strings.TrimSpace(name), "User-Agent"), strings.TrimPrefix(value, " ")
	path := cmp.Or(what.text("path"), protocol.ToolsPath)
	var watch stopwatch
	watch.time(func() {
		_, _ = sendRaw(strings.TrimPrefix(w.URL, "http://"), fields{
			"method": http.MethodPost, "path": path, "headers": map[string]any{name: value},
		}, "wrong")
	})
	r := httptest.NewRequest(http.MethodPost, protocol.ToolsPath, strings.NewReader("{}"))
	r.URL.Path = path
	r.Header[http.CanonicalHeaderKey(name)] = []string{value}
	r.Header.Set("Authorization", "Bearer wrong")
	watch.time(func() { w.Protocol.Tools().ServeHTTP(httptest.NewRecorder(), r) })
	out := b.String()
	entries := strings.Count(out, " level=") - strings.Count(out, `\" level=`)
	if !strings.Contains(out, "refused") {
		return outcome{}, fmt.Errorf("nothing is logged: %q", out)
	}
	o := outcome{answer: sanitized, took: watch.longest}
	lines := strings.Count(out, "\n")
	if forged := wrongLines(out, lines); forged != "" || entries < lines {
		o.found(fmt.Sprintf("%s: %q", forged, out))
	}
	return o, nil
}

// judgeBind: the address that is listened on, and what is proven there. The gateway starts only if both fit.
func judgeBind(t *testing.T, c *attack) (outcome, error) {
	if err := c.Attempt.only("bind", "bind", "auth"); err != nil {
		return outcome{}, err
	}
	host := c.Attempt.text("bind")
	if named, ok := map[string]string{"loopback": "127.0.0.1", "localhost": "localhost", "lan": "0.0.0.0", "all": "0.0.0.0", "any": "::", "": ""}[host]; ok {
		host = named
	}
	listen := net.JoinHostPort(strings.Trim(host, "[]"), "7411")
	w := newWorld(t)
	if auth := c.Attempt.text("auth"); auth != "" {
		w.set(auth, "gateway", "auth", "mode")
	}
	// The address is named on the command line, or in the file.
	var onCommandLine, inFile error
	w.watch.time(func() {
		var loaded *config.Loaded
		if loaded, onCommandLine = w.load(); onCommandLine == nil {
			onCommandLine = loaded.File.Gateway.Check(listen)
		}
		w.set(listen, "server", "listen")
		_, inFile = w.load()
	})
	o := outcome{answer: allowed, why: fmt.Sprint(onCommandLine), took: w.watch.longest}
	switch {
	case (onCommandLine == nil) != (inFile == nil):
		o.answer, o.why = harmful, fmt.Sprintf("on the command line %v, in the file %v", onCommandLine, inFile)
	case inFile != nil:
		o.answer = denied
	}
	return o, nil
}

// safeBuffer is written to by the server while it is read.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
