package client

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/identity"
)

// Who the program is in the words of the protocol.
const (
	clientID   = "gateway-client"
	clientMode = "backend"
	version    = 4
)

// Bounds of a connection.
const (
	connectPatience = 20 * time.Second // from dialing to the answer of connect
	writePatience   = 20 * time.Second // for one frame
	closePatience   = time.Second      // for the gateway to close its side
	longestFrame    = 64 << 20         // bytes; a list of approvals is the longest
	silence         = 70 * time.Second // two ticks and a little: then nobody is there any more
	queuedFrames    = 16
)

// link is one connection. One goroutine reads, one writes.
type link struct {
	ws    *websocket.Conn
	token string // the device's own, "" if none was given
	out   chan []byte
	over  chan struct{} // closed when it has ended
	last  atomic.Uint64 // id of the latest request
	seq   uint64        // of the latest event; the reader's

	mu      sync.Mutex
	waiting map[string]*exchange
	ended   bool
}

// exchange is a request that waits for its answer.
type exchange struct {
	id     string
	method string
	phases bool       // it is answered twice
	first  chan reply // of two
	final  chan reply
}

type reply struct {
	payload json.RawMessage
	err     error
}

// frame is anything that the gateway sends.
type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	OK      bool            `json:"ok"`
	Payload json.RawMessage `json:"payload"`
	Error   *wireError      `json:"error"`
	Event   string          `json:"event"`
	Seq     uint64          `json:"seq"`
}

type wireError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Details struct {
		Code      string `json:"code"`
		RequestID string `json:"requestId"`
	} `json:"details"`
	Retryable    bool  `json:"retryable"`
	RetryAfterMs int64 `json:"retryAfterMs"`
}

// refusal is a frame's error for people and programs. Programs print it: what answers may be no gateway, and must not write
// to a terminal as it likes.
func (f *frame) refusal(method string) error {
	e := f.Error
	if e == nil {
		return fmt.Errorf("%s: the gateway refused without a reason", method)
	}
	return &Error{
		Method: method, Code: display.Line(e.Code), Detail: e.Details.Code, Message: display.Line(e.Message),
		Pairing: display.Line(e.Details.RequestID), Retryable: e.Retryable,
		RetryAfter: time.Duration(min(max(e.RetryAfterMs, 0), int64(time.Hour/time.Millisecond))) * time.Millisecond,
	}
}

// open makes a connection and is let in, or says why not.
func open(ctx context.Context, o *Options, deviceToken string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	address, path, err := o.target()
	if err != nil {
		return nil, err
	}
	httpClient, done := o.httpClient(path)
	defer done()
	ws, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: httpClient, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o.Address, err)
	}
	ws.SetReadLimit(longestFrame)
	l := &link{ws: ws, out: make(chan []byte, queuedFrames), over: make(chan struct{}), waiting: map[string]*exchange{}}
	if err := l.greet(ctx, o, deviceToken); err != nil {
		_ = ws.CloseNow() // it is of no use either way
		return nil, err
	}
	return l, nil
}

// greet answers the challenge.
func (l *link) greet(ctx context.Context, o *Options, deviceToken string) error {
	var challenge struct{ Nonce string }
	f, err := l.read(ctx)
	if err != nil || f.Event != "connect.challenge" || json.Unmarshal(f.Payload, &challenge) != nil || challenge.Nonce == "" {
		return errors.Join(fmt.Errorf("connect to %s: it does not greet as a gateway does", o.Address), err)
	}
	raw, err := json.Marshal(map[string]any{"type": "req", "id": "connect", "method": "connect", "params": connectParams(o, challenge.Nonce, deviceToken)})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := l.ws.Write(ctx, websocket.MessageText, raw); err != nil {
		return fmt.Errorf("connect to %s: %w", o.Address, err)
	}
	for {
		f, err := l.read(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("connect to %s: %w", o.Address, err)
		case f.Type != "res" || f.ID != "connect":
			continue
		case !f.OK:
			return f.refusal("connect")
		}
		var hello struct {
			Auth struct {
				DeviceToken string `json:"deviceToken"`
			} `json:"auth"`
		}
		if err := json.Unmarshal(f.Payload, &hello); err != nil {
			return fmt.Errorf("connect to %s: %w", o.Address, err)
		}
		l.token = hello.Auth.DeviceToken
		return nil
	}
}

func connectParams(o *Options, nonce, deviceToken string) map[string]any {
	about := map[string]any{"id": clientID, "mode": clientMode, "version": "1", "platform": runtime.GOOS}
	if o.Version != "" {
		about["version"] = o.Version
	}
	if o.Name != "" {
		about["displayName"] = o.Name
	}
	auth, signed := map[string]any{}, ""
	switch {
	case o.Token != "":
		auth["token"], signed = o.Token, o.Token
	case o.Password != "":
		auth["password"] = o.Password
	case deviceToken != "":
		auth["deviceToken"], signed = deviceToken, deviceToken
	}
	scopes := o.Scopes
	if scopes == nil {
		scopes = []string{}
	}
	params := map[string]any{
		"minProtocol": version, "maxProtocol": version, "client": about, "role": "operator", "scopes": scopes, "auth": auth,
	}
	if o.Identity != nil {
		params["device"] = o.Identity.prove(o, nonce, signed)
	}
	return params
}

func (l *link) read(ctx context.Context) (*frame, error) {
	kind, raw, err := l.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	var f frame
	if kind != websocket.MessageText || json.Unmarshal(raw, &f) != nil {
		return nil, errors.New("the gateway sent what is no frame")
	}
	return &f, nil
}

// serve reads and writes until the connection ends. tell gets the events; missed says that some did not come.
func (l *link) serve(tell func(name string, payload json.RawMessage), missed func()) {
	ctx, cancel := context.WithCancel(context.Background()) // close ends it, in good order
	defer cancel()
	var writing sync.WaitGroup
	writing.Go(func() { l.write(ctx) })
	for {
		patience, done := context.WithTimeout(ctx, silence)
		f, err := l.read(patience)
		done()
		if err != nil {
			break
		}
		l.take(f, tell, missed)
	}
	cancel()
	_ = l.ws.CloseNow() // it is over either way
	writing.Wait()
	l.end()
}

func (l *link) take(f *frame, tell func(string, json.RawMessage), missed func()) {
	switch f.Type {
	case "res":
		l.deliver(f)
	case "event":
		if f.Seq > 0 {
			if f.Seq != l.seq+1 {
				missed()
			}
			l.seq = f.Seq
		}
		tell(f.Event, f.Payload)
	}
}

// deliver gives an answer to whoever waits for it.
func (l *link) deliver(f *frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.waiting[f.ID]
	if x == nil {
		return
	}
	r := reply{payload: f.Payload}
	if !f.OK {
		r.err = f.refusal(x.method)
	}
	if x.phases && f.OK {
		var phase struct{ Status string }
		if json.Unmarshal(f.Payload, &phase) == nil && phase.Status == "accepted" {
			select {
			case x.first <- r:
			default: // only the first one counts
			}
			return
		}
	}
	delete(l.waiting, f.ID)
	x.final <- r // has room: there is one of these for each request
}

func (l *link) write(ctx context.Context) {
	for {
		select {
		case raw := <-l.out:
			limited, done := context.WithTimeout(ctx, writePatience)
			err := l.ws.Write(limited, websocket.MessageText, raw)
			done()
			if err != nil {
				_ = l.ws.CloseNow() // the reader notices
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// end tells everybody who still waits that no answer comes.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	clear(l.waiting)
	close(l.over)
}

// close ends the connection as the protocol wants it, or hard after a moment.
func (l *link) close() {
	hard := time.AfterFunc(closePatience, func() { _ = l.ws.CloseNow() })
	defer hard.Stop()
	_ = l.ws.Close(websocket.StatusNormalClosure, "") // it is over either way
}

// begin sends a request.
func (l *link) begin(ctx context.Context, method string, params any, phases bool) (*exchange, error) {
	x := &exchange{
		id: strconv.FormatUint(l.last.Add(1), 10), method: method, phases: phases, first: make(chan reply, 1), final: make(chan reply, 1),
	}
	body := map[string]any{"type": "req", "id": x.id, "method": method}
	if params != nil {
		body["params"] = params
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return nil, ErrLost
	}
	l.waiting[x.id] = x
	l.mu.Unlock()
	select {
	case l.out <- raw:
		return x, nil
	case <-l.over:
		return nil, ErrLost
	case <-ctx.Done():
		l.forget(x)
		return nil, fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// forget drops a request: its answer interests nobody any more.
func (l *link) forget(x *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, x.id)
}

// await waits for the last answer. What had come before the connection broke counts.
func (l *link) await(ctx context.Context, x *exchange) (json.RawMessage, error) {
	select {
	case r := <-x.final:
		return r.payload, r.err
	case <-l.over:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", x.method, context.Cause(ctx))
	}
	select {
	case r := <-x.final:
		return r.payload, r.err
	default:
		return nil, fmt.Errorf("%s: %w", x.method, ErrLost)
	}
}

// prove signs this connection's challenge and everything that the connect frame says of the program.
func (i *Identity) prove(o *Options, nonce, token string) map[string]any {
	p := identity.Proof{
		DeviceID: i.ID(), SignedAtMs: time.Now().UnixMilli(), Nonce: nonce, ClientID: clientID, ClientMode: clientMode,
		Role: identity.RoleOperator, Scopes: o.Scopes, Token: token, Platform: runtime.GOOS,
	}
	return map[string]any{
		"id": p.DeviceID, "publicKey": base64.RawURLEncoding.EncodeToString(i.key.Public().(ed25519.PublicKey)), "signedAt": p.SignedAtMs,
		"nonce": nonce, "signature": base64.RawURLEncoding.EncodeToString(ed25519.Sign(i.key, []byte(p.Payload("v3")))),
	}
}
