package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward/approval"
)

// aliveEvery is how often a waiting HTTP answer shows a sign of life. Proxies and clients close streams that are
// silent for a minute; a person may need longer.
const aliveEvery = 15 * time.Second

// The ends of a request that take its question back.
var (
	errClientGone = errors.New("the client closed its request")
	errClosing    = errors.New("the server is closing")
)

// carrier is one HTTP request and its answer. The SDK lets calls of the older protocols outlive the request that
// carries them, because their clients might resume the stream; here they cannot, so the answer would reach nobody,
// and a person would be asked for a call that is gone.
type carrier struct {
	ctx        context.Context // ends with the request
	end        context.CancelCauseFunc
	principal  string
	connection string // Mcp-Session-Id, if any
	out        *answerWriter
}

// carriers are the requests in flight, by their marks.
type carriers struct {
	mu     sync.Mutex
	closed bool
	byMark map[string]*carrier
}

// carry remembers a request until the returned function is called, and marks it, so that the calls in it are found.
func (c *carriers) carry(w http.ResponseWriter, r *http.Request, principal string) (*answerWriter, *http.Request, func()) {
	ctx, end := context.WithCancelCause(r.Context())
	out := &answerWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	mark := rand.Text()
	c.mu.Lock()
	if c.closed {
		end(errClosing)
	}
	if c.byMark == nil {
		c.byMark = make(map[string]*carrier)
	}
	c.byMark[mark] = &carrier{ctx: ctx, end: end, principal: principal, connection: r.Header.Get(connectionHeader), out: out}
	c.mu.Unlock()
	r = r.WithContext(ctx)
	r.Header.Set(markHeader, mark) // whatever came from outside under this name is gone
	return out, r, func() {
		out.close()
		end(errClientGone)
		c.mu.Lock()
		delete(c.byMark, mark)
		c.mu.Unlock()
	}
}

func (c *carriers) find(mark string) *carrier {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byMark[mark]
}

// endConnection ends the calls of a connection that its client deletes. The SDK would wait for them, and they for people.
func (c *carriers) endConnection(principal, connection string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, carrier := range c.byMark {
		if connection != "" && carrier.connection == connection && carrier.principal == principal {
			carrier.end(approval.ErrCanceled)
		}
	}
}

func (c *carriers) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, carrier := range c.byMark {
		carrier.end(errClosing)
	}
}

// follow ends a call with the request that carries it, and shows signs of life on that request's answer meanwhile.
// The returned function stops both. A call without extra came over a stream.
func (s *Server) follow(extra *sdk.RequestExtra, cancel context.CancelCauseFunc) func() {
	if extra == nil {
		return func() {}
	}
	carrier := s.carriers.find(extra.Header.Get(markHeader))
	if carrier == nil {
		cancel(errClientGone)
		return func() {}
	}
	stop := context.AfterFunc(carrier.ctx, func() {
		cause := context.Cause(carrier.ctx)
		if errors.Is(cause, context.Canceled) {
			cause = errClientGone
		}
		cancel(cause)
	})
	alive := make(chan struct{})
	timer := time.AfterFunc(s.aliveEvery, func() { carrier.out.keepAlive(s.aliveEvery, alive) })
	return func() {
		stop()
		timer.Stop()
		close(alive)
	}
}

// answerWriter is the answer of one request. It bounds every write, because a client that stops reading would hold
// the call's goroutine for ever, and lets signs of life be written between the SDK's events.
type answerWriter struct {
	http.ResponseWriter
	control *http.ResponseController

	mu     sync.Mutex
	closed bool
}

// Unwrap is for http.ResponseController.
func (a *answerWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write writes one event, or one whole answer.
func (a *answerWriter) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.write(p)
}

func (a *answerWriter) write(p []byte) (int, error) {
	if a.closed {
		return 0, errClientGone
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // an answer without deadlines just has none
	return a.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (a *answerWriter) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errClientGone
	}
	return a.control.Flush()
}

// patient lifts the server's time-outs, which are made for pages: a call may wait long for a person.
func (a *answerWriter) patient() {
	_ = a.control.SetReadDeadline(time.Time{})
	_ = a.control.SetWriteDeadline(time.Time{})
}

// close ends all writing, also that of calls which have not noticed yet that their client has gone.
func (a *answerWriter) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	_ = a.control.SetWriteDeadline(time.Time{}) // the connection may carry other requests
}

// keepAlive writes comments, which clients skip, into an event stream until the call is over. It runs after the
// call has reached its handler, so the answer's header is complete.
func (a *answerWriter) keepAlive(every time.Duration, over <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for a.sign() {
		select {
		case <-over:
			return
		case <-tick.C:
		}
	}
}

func (a *answerWriter) sign() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !strings.HasPrefix(a.Header().Get("Content-Type"), "text/event-stream") {
		return false
	}
	if _, err := a.write([]byte(": waiting\n\n")); err != nil {
		return false
	}
	return a.control.Flush() == nil
}
