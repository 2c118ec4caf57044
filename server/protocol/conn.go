package protocol

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// conn is one connection. One goroutine reads, one writes, and one answers each request.
type conn struct {
	server   *Server
	id       string
	queue    *queue
	greeting bool // guarded by the server's lock
	// pushedOut says that its place was given to another one before it was let in; guarded by the server's lock.
	pushedOut bool

	admitted *admitted // nil until it was let in; then it does not change
	by       identity.Authority
	since    time.Time // it began, then: it was let in
	presence *approval.Presence

	ws       *websocket.Conn
	wire     *wire              // below ws; what waits in the queue is written to it
	finished chan struct{}      // closed when the connection is over
	cancel   context.CancelFunc // guarded by the server's lock

	inFlight  atomic.Int64
	paramSize atomic.Int64
	wrongRole int // calls in a row; the reader's
}

// endGreeting cuts off a connection that has not said anything yet.
func (c *conn) endGreeting() {
	c.server.mu.Lock()
	greeting, cancel := c.greeting, c.cancel
	c.server.mu.Unlock()
	if greeting && cancel != nil {
		cancel()
	}
}

// serve upgrades the request and serves the connection until it ends.
func (c *conn) serve(w http.ResponseWriter, r *http.Request) {
	defer close(c.finished)
	at := c.server.keeper.proxies.Locate(r)
	header := r.Header.Clone()
	c.wire = newWire()
	ws, err := websocket.Accept(&upgrader{w, c.wire}, r, &websocket.AcceptOptions{
		// Which page may connect is checked with the connect frame, where the client says what it is; until then it
		// gets nothing but a random number. Frames are never compressed: a secret next to what somebody else chose
		// could be guessed from the length.
		InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		c.server.log.Debug("a connection could not be upgraded", "err", err)
		return
	}
	ctx, cancel := context.WithCancel(c.server.ctx)
	defer cancel()
	c.server.mu.Lock()
	c.ws, c.cancel = ws, cancel
	c.server.mu.Unlock()
	defer ws.CloseNow() // it is over either way
	if !c.greet(ctx, at, header) {
		return
	}
	defer c.depart()
	defer context.AfterFunc(ctx, func() { _ = c.wire.Close() })() // frees a writer whose client takes nothing
	var running sync.WaitGroup
	running.Go(func() { c.write(ctx); cancel() })
	running.Go(func() { c.ping(ctx); cancel() })
	c.read(ctx)
	c.queue.close(closing{closeNormal, ""})
	cancelSoon := time.AfterFunc(time.Second, cancel)
	defer cancelSoon.Stop()
	running.Wait()
}

// greet sends the challenge, reads the first frame and answers it. It reports whether the client was let in.
func (c *conn) greet(ctx context.Context, at door.Source, header http.Header) bool {
	limited, done := context.WithTimeout(ctx, handshakeTime)
	defer done()
	c.ws.SetReadLimit(-1) // readFrame has limits of its own
	h := &handshake{server: c.server, keeper: c.server.keeper, at: at, header: header, challenge: rand.Text()}
	if err := c.ws.Write(limited, websocket.MessageText, challengeFrame(h.challenge, time.Now())); err != nil {
		return false
	}
	raw, end, err := c.readFrame(limited, maxFirstFrame)
	if err != nil {
		return false // too late, or gone: closed without a word
	}
	if end != nil {
		c.hangUp(*end)
		return false
	}
	in, refused := h.connect(limited, raw)
	if refused != nil {
		if refused.answer != nil {
			if err := c.ws.Write(limited, websocket.MessageText, encodeResponse(refused.id, nil, refused.answer)); err != nil {
				return false
			}
		}
		c.hangUp(refused.end)
		return false
	}
	c.arrive(in)
	return true
}

// hangUp closes the connection and says why. It waits a little for the client to close its side.
func (c *conn) hangUp(why closing) {
	if err := c.ws.Close(websocket.StatusCode(why.code), shortReason(why.reason)); err != nil {
		c.server.log.Debug("a connection was not closed cleanly", "err", err)
	}
}

// cutOff ends a connection whose client reads nothing: its writer may be stuck in the middle of a frame.
func (c *conn) cutOff(why closing) {
	c.server.log.Info("a client was cut off", "connection", c.id, "why", why.reason)
	c.hangUp(why)
	c.cancel()
}

// arrive makes the connection one that gets events, and answers its connect frame.
func (c *conn) arrive(in *admitted) {
	c.by = identity.Requester()
	if in.deviceID != "" && in.role == identity.RoleOperator {
		c.by = c.server.pairings.Authority(in.deviceID, in.scopes)
	}
	c.wire.beginFrames()
	c.queue.answer(encodeResponse(in.requestID, c.server.hello(c, in), nil))
	c.server.welcome(c, in)
	if c.by.MayAnswer() == nil {
		presence, err := c.server.approvals.Attach(approval.Approver{
			Name: in.client.name(), By: c.by, Connection: c.id, Device: in.deviceID,
		})
		if err == nil {
			c.presence = presence
		}
	}
}

func (c *conn) depart() {
	if c.presence != nil {
		c.presence.Close()
	}
}

// write sends what waits, one frame after the other, and closes the connection when it is to end.
func (c *conn) write(ctx context.Context) {
	var buffer []byte
	for {
		i, end, ok := c.queue.next()
		switch {
		case !ok:
			select {
			case <-c.queue.wake:
				continue
			case <-ctx.Done():
				return
			}
		case end != nil:
			c.hangUp(*end)
			return
		}
		var frame []byte
		buffer, frame = i.frame(buffer)
		err := c.wire.send(frame)
		c.queue.wrote(i)
		if err != nil {
			return
		}
		if cap(buffer) > 64<<10 {
			buffer = nil // one large frame must not stay in memory
		}
	}
}

// ping finds out whether the client is still there.
func (c *conn) ping(ctx context.Context) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		limited, done := context.WithTimeout(ctx, pongPatience)
		err := c.ws.Ping(limited)
		done()
		if err != nil {
			if ctx.Err() == nil {
				c.server.log.Debug("a client does not answer any more", "connection", c.id, "err", err)
			}
			return
		}
	}
}

// read takes frames until the connection ends.
func (c *conn) read(ctx context.Context) {
	for {
		raw, end, err := c.readFrame(ctx, maxFrame)
		switch {
		case err != nil:
			if !errors.Is(err, context.Canceled) {
				c.server.log.Debug("a connection ended", "connection", c.id, "err", err)
			}
			return
		case end != nil:
			c.hangUp(*end)
			return
		case c.queue.ending():
			return
		}
		c.take(ctx, raw)
	}
}

// readFrame reads one frame of at most limit bytes. end is why the connection is closed instead. The library's own limit
// would close before the client has written the rest, and most clients would then never read why.
func (c *conn) readFrame(ctx context.Context, limit int64) (raw []byte, end *closing, err error) {
	kind, r, err := c.ws.Reader(ctx)
	if err != nil {
		return nil, nil, err
	}
	if kind != websocket.MessageText {
		return nil, &closing{closePolicy, "text frames only"}, nil
	}
	raw, err = io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(raw)) > limit {
		return nil, &closing{closeTooBig, "frame too large"}, nil
	}
	return raw, nil, err
}
