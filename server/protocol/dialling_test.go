package protocol

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// client is one end of a connection.
type client struct {
	t     testing.TB
	ws    *websocket.Conn
	nonce string
	got   chan reading // nil: it reads only when it is asked to
	kept  []frame      // read while something else was looked for
}

type reading struct {
	raw []byte
	err error
}

// visit is where a connection comes from.
type visit struct {
	ip, host, origin string
	header           map[string]string
	lazy             bool // it reads only when the test does, and so answers no ping in between
}

// dial opens a connection and reads its challenge.
func (w *world) dial(from visit) *client {
	w.t.Helper()
	if from.ip == "" {
		from.ip = "127.0.0.1"
	}
	if from.host == "" {
		from.host = "127.0.0.1:7411"
	}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return w.listener.dial(from.ip), nil }}
	header := http.Header{}
	for name, value := range from.header {
		header.Set(name, value)
	}
	if from.origin != "" {
		header.Set("Origin", from.origin)
	}
	ws, _, err := websocket.Dial(w.t.Context(), "ws://gateway/", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, HTTPHeader: header, Host: from.host,
	})
	must(w.t, err)
	ws.SetReadLimit(maxFrame)
	w.t.Cleanup(func() { ws.CloseNow() })
	c := &client{t: w.t, ws: ws}
	if !from.lazy {
		c.got = make(chan reading, 4096)
		go c.follow(w.t.Context())
	}
	first := c.read()
	if first.Event != "connect.challenge" {
		w.t.Fatalf("the first frame is %+v", first)
	}
	c.nonce, _ = first.Payload["nonce"].(string)
	return c
}

// frame is any frame of the server.
type frame struct {
	Type, ID, Event string
	OK              bool
	Seq             uint64
	Payload         map[string]any
	Error           *Error
	list            []any
}

func (f *frame) UnmarshalJSON(raw []byte) error {
	var plain struct {
		Type, ID, Event string
		OK              bool
		Seq             uint64
		Payload         any
		Error           *Error
	}
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	*f = frame{Type: plain.Type, ID: plain.ID, Event: plain.Event, OK: plain.OK, Seq: plain.Seq, Error: plain.Error}
	f.Payload, _ = plain.Payload.(map[string]any)
	f.list, _ = plain.Payload.([]any)
	return nil
}

// follow reads all that comes, as programs do.
func (c *client) follow(ctx context.Context) {
	defer close(c.got)
	for {
		_, raw, err := c.ws.Read(ctx)
		c.got <- reading{raw, err}
		if err != nil {
			return
		}
	}
}

// next reads the next frame, or the error with which the connection ended.
func (c *client) next() (frame, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
	defer cancel()
	var r reading
	if c.got == nil {
		_, r.raw, r.err = c.ws.Read(ctx)
	} else {
		select {
		case next, open := <-c.got:
			if r = next; !open {
				r.err = net.ErrClosed
			}
		case <-ctx.Done():
			r.err = ctx.Err()
		}
	}
	if r.err != nil {
		return frame{}, r.err
	}
	var f frame
	return f, json.Unmarshal(r.raw, &f)
}

func (c *client) read() frame {
	c.t.Helper()
	f, err := c.next()
	must(c.t, err)
	return f
}

// response is the next answer with this id.
func (c *client) response(id string) frame {
	c.t.Helper()
	return c.find("answer to "+id, func(f *frame) bool { return f.Type == "res" && f.ID == id })
}

// event is the next event of this name.
func (c *client) event(name string) frame {
	c.t.Helper()
	return c.find("event "+name, func(f *frame) bool { return f.Event == name })
}

// find reads until a frame is the one that is looked for; the others are kept for whoever looks for them.
func (c *client) find(what string, is func(*frame) bool) frame {
	c.t.Helper()
	for i := range c.kept {
		if f := c.kept[i]; is(&f) {
			c.kept = slices.Delete(c.kept, i, i+1)
			return f
		}
	}
	for range 1000 {
		f := c.read()
		if is(&f) {
			return f
		}
		c.kept = append(c.kept, f)
	}
	c.t.Fatalf("there was no %s among 1000 frames", what)
	return frame{}
}

func (c *client) send(v any) {
	c.t.Helper()
	raw, isText := v.(string)
	if !isText {
		b, err := json.Marshal(v)
		must(c.t, err)
		raw = string(b)
	}
	must(c.t, c.ws.Write(c.t.Context(), websocket.MessageText, []byte(raw)))
}

// request sends a request and reads its answer.
func (c *client) request(method string, params any) frame {
	c.t.Helper()
	id := rand.Text()
	c.begin(id, method, params)
	return c.response(id)
}

func (c *client) begin(id, method string, params any) {
	c.t.Helper()
	f := map[string]any{"type": "req", "id": id, "method": method}
	if params != nil {
		f["params"] = params
	}
	c.send(f)
}

// closed is how the server ended the connection.
func (c *client) closed() (code int, reason string) {
	c.t.Helper()
	for {
		_, err := c.next()
		if err == nil {
			continue
		}
		var end websocket.CloseError
		if errors.As(err, &end) {
			return int(end.Code), end.Reason
		}
		return -1, err.Error()
	}
}

// pipeListener serves connections in memory that come from wherever they say.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) dial(ip string) net.Conn {
	ours, theirs := net.Pipe()
	l.conns <- &fromConn{theirs, &net.TCPAddr{IP: net.ParseIP(ip), Port: 40000}}
	return ours
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7411} }

type fromConn struct {
	net.Conn
	from net.Addr
}

func (c *fromConn) RemoteAddr() net.Addr { return c.from }
