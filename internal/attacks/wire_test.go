package attacks

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/server/protocol"
)

// wired is the real doors with the gateway protocol, and a token that opens it.
type wired struct {
	*consoletest.World
	t      *testing.T
	secret string
	client *http.Client  // nil for the usual one
	log    *bytes.Buffer // written to by handlers that have ended when it is read
	watch  stopwatch
	last   map[string]any // what the last answer holds
}

func newWired(t *testing.T) *wired {
	t.Helper()
	w := &wired{t: t, log: &bytes.Buffer{}}
	w.World = consoletest.New(t, consoletest.Options{
		Protocol: &protocol.Config{}, Agents: protocol.AgentList{Default: "main"},
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	secret, _, err := w.People.CreateToken(t.Context(), w.Person(), identity.TokenSpec{Gateway: true}, nil)
	must(t, err)
	w.secret = secret
	return w
}

// judgeWebSocket plays one attempt against the real door, over a real socket.
func judgeWebSocket(t *testing.T, c *attack) (outcome, error) {
	if err := setupOnly(c, "bind", "auth"); err != nil {
		return outcome{}, err
	}
	attempt := c.Attempt.object("ws")
	if err := attempt.only("ws", "origin", "host", "token", "url", "first", "connect", "frame", "slow-reader", "text", "reconnect"); err != nil {
		return outcome{}, err
	}
	w := newWired(t)
	var o outcome
	switch {
	case attempt.has("url"):
		o = w.addressed(attempt.text("url"))
	case attempt.has("first"):
		o = w.outcome(w.connect(visit{}, func(f map[string]any) {
			f["method"], f["params"] = attempt.object("first").text("method"), map[string]any{}
		}))
	case attempt.object("connect").has("device"):
		o = w.changedDevice(attempt.object("connect").object("device").text("platform"))
	case attempt.has("connect"):
		o = w.outcome(w.connect(visit{}, func(f map[string]any) {
			auth, _ := json.Marshal(attempt.object("connect")["auth"])
			f["params"].(map[string]any)["auth"] = json.RawMessage(strings.ReplaceAll(string(auth), "SECRET", w.secret))
		}))
	case attempt.has("origin"):
		o = w.fromPage(attempt)
	case attempt.has("frame"), attempt.has("text"), attempt.flag("slow-reader"):
		o = w.abuse(attempt)
	default:
		return outcome{}, unsupported{"ws " + strings.Join(sorted(attempt), ", ")}
	}
	o.took = w.watch.longest
	return o, nil
}

// visit is where a connection comes from.
type visit struct{ host, origin string }

func (w *wired) port() string { return w.URL[strings.LastIndexByte(w.URL, ':')+1:] }

func (w *wired) dial(from visit, address string) (*websocket.Conn, map[string]any, error) {
	header := http.Header{}
	if from.origin != "" {
		header.Set("Origin", strings.ReplaceAll(from.origin, "PORT", w.port()))
	}
	if address == "" {
		address = "ws" + strings.TrimPrefix(w.URL, "http")
	}
	ws, _, err := websocket.Dial(w.t.Context(), address, &websocket.DialOptions{
		HTTPClient: w.client, HTTPHeader: header, Host: strings.ReplaceAll(from.host, "PORT", w.port()),
	})
	if err != nil {
		return nil, nil, err
	}
	w.t.Cleanup(func() { ws.CloseNow() })
	ws.SetReadLimit(64 << 20)
	challenge, err := receive(w.t.Context(), ws)
	payload, _ := challenge["payload"].(map[string]any)
	return ws, payload, err
}

func receive(ctx context.Context, ws *websocket.Conn) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, raw, err := ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	var f map[string]any
	return f, json.Unmarshal(raw, &f)
}

// connect opens a connection and sends its first frame, changed as the attempt wants it; nil if it was let in.
func (w *wired) connect(from visit, change func(map[string]any)) (*websocket.Conn, error) {
	ws, challenge, err := w.dial(from, "")
	if err != nil {
		return nil, err
	}
	params := map[string]any{
		"minProtocol": 3, "maxProtocol": 4, "auth": map[string]any{"token": w.secret}, "scopes": []string{"operator.read", "operator.approvals"},
		"client": map[string]any{"id": "cli", "version": "1", "platform": "linux", "mode": "cli"},
	}
	frame := map[string]any{"type": "req", "id": "1", "method": "connect", "params": params, "nonce": challenge["nonce"]}
	if change != nil {
		change(frame)
	}
	delete(frame, "nonce")
	return ws, w.exchange(ws, frame)
}

// write sends one frame.
func (w *wired) write(ws *websocket.Conn, raw []byte) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	return ws.Write(ctx, websocket.MessageText, raw)
}

// exchange sends a frame and waits until its request is answered; nil if that went well.
func (w *wired) exchange(ws *websocket.Conn, frame map[string]any) (err error) {
	raw, err := json.Marshal(frame)
	must(w.t, err)
	w.watch.time(func() {
		if err = ws.Write(w.t.Context(), websocket.MessageText, raw); err != nil {
			return
		}
		for {
			var f map[string]any
			if f, err = receive(w.t.Context(), ws); err != nil {
				return
			}
			if f["type"] == "res" {
				w.last, _ = f["payload"].(map[string]any)
			}
			if f["type"] == "res" && f["ok"] != true {
				err = fmt.Errorf("refused: %v", f["error"])
			}
			if f["type"] == "res" {
				return
			}
		}
	})
	return err
}

func (w *wired) outcome(_ *websocket.Conn, err error) outcome {
	if err != nil {
		return outcome{answer: denied, why: err.Error()}
	}
	return outcome{answer: allowed, why: "it was let in"}
}

// fromPage connects from a web page, with the right token and without any.
func (w *wired) fromPage(attempt fields) outcome {
	from := visit{attempt.text("host"), attempt.text("origin")}
	o := w.outcome(w.connect(from, nil))
	if attempt.text("token") == "VALID-OR-NONE" && o.answer == denied {
		o = w.outcome(w.connect(from, func(f map[string]any) { delete(f["params"].(map[string]any), "auth") }))
	}
	return o
}

// addressed connects to an address with a secret in it. Whatever becomes of it, the secret is in no log.
func (w *wired) addressed(address string) outcome {
	address = strings.NewReplacer("PORT", w.port(), "SECRET", w.secret).Replace(address)
	var err error
	w.watch.time(func() { _, _, err = w.dial(visit{}, address) })
	if err != nil && strings.Contains(w.log.String(), w.secret) {
		return outcome{answer: harmful, why: "the secret is in the log"}
	}
	return w.outcome(nil, err)
}

// changedDevice pairs a device and connects with its key again, as if it were of another platform.
func (w *wired) changedDevice(platform string) outcome {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(w.t, err)
	as := func(platform string) func(map[string]any) {
		return func(f map[string]any) {
			params := f["params"].(map[string]any)
			params["client"].(map[string]any)["platform"] = platform
			p := identity.Proof{
				DeviceID: identity.DeviceID(public), SignedAtMs: time.Now().UnixMilli(), Nonce: f["nonce"].(string), ClientID: "cli", ClientMode: "cli",
				Role: identity.RoleOperator, Scopes: params["scopes"].([]string), Token: w.secret, Platform: platform,
			}
			params["device"] = map[string]any{
				"id": p.DeviceID, "publicKey": base64.RawURLEncoding.EncodeToString(public), "signedAt": p.SignedAtMs, "nonce": p.Nonce,
				"signature": base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(p.Payload("v3")))),
			}
		}
	}
	if _, err := w.connect(visit{}, as("linux")); err != nil {
		return outcome{answer: harmful, why: "the device could not be paired at first: " + err.Error()}
	}
	return w.outcome(w.connect(visit{}, as(platform)))
}

// abuse sends what could fill the gateway, or confuse it. It is contained if the gateway ends that connection, or answers
// it, and goes on answering another.
func (w *wired) abuse(attempt fields) outcome {
	other, err := w.connect(visit{}, nil)
	must(w.t, err)
	ws, err := w.connect(visit{}, nil)
	must(w.t, err)
	why := ""
	switch {
	case attempt.text("frame") == "64MB":
		block := bytes.Repeat([]byte(" "), 64<<20)
		go ws.Write(w.t.Context(), websocket.MessageText, block)
		var err error
		for range 100 { // news may come before the end
			if _, err = receive(w.t.Context(), ws); err != nil {
				break
			}
		}
		var end websocket.CloseError
		if !errors.As(err, &end) || end.Code != websocket.StatusMessageTooBig {
			return outcome{answer: harmful, why: fmt.Sprint("it was not closed as too big: ", err)}
		}
		why = end.Error()
	case attempt.has("text"):
		must(w.t, ws.Write(w.t.Context(), websocket.MessageText, []byte(`{"type":"req","id":"`+attempt.text("text")+`","method":"health"}`)))
		if _, err := receive(w.t.Context(), ws); err != nil {
			why = err.Error()
		}
	default:
		// It asks and never reads. What waits for it is bounded, so it is answered no more or closed at some point.
		ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
		defer cancel()
		for i := 0; i < 20_000 && err == nil; i++ {
			err = ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"req","id":"%d","method":"tools.catalog"}`, i))
		}
		why = fmt.Sprint("its writes end with ", err)
	}
	if err := w.exchange(other, map[string]any{"type": "req", "id": "h", "method": "health"}); err != nil {
		return outcome{answer: harmful, why: "another connection is not served any more: " + err.Error()}
	}
	return outcome{answer: contained, why: why}
}
