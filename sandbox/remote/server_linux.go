package remote

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// Server makes sandboxes for one gateway at a time.
type Server struct {
	// Gateway is the user whose processes may call. Nobody else may, not the server's own user either: an agent has it.
	Gateway uint32
	// Engines opens the engines for a gateway. They are closed when it ends.
	Engines func(Terms) []sandbox.Engine
	// Log gets what the administrator should know; nil is none.
	Log *slog.Logger

	mu      sync.Mutex
	current *served
}

// Serve answers calls until the context ends, or the listener fails.
func (s *Server) Serve(ctx context.Context, listener *net.UnixListener) error {
	if s.Engines == nil {
		return errors.New("serve sandboxes: there are no engines")
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // Accept says so
	defer stop()
	for {
		conn, err := listener.AcceptUnix()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close() // it is not answered
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve sandboxes: %w", err)
		}
		calls.Go(func() { s.answer(ctx, conn) })
	}
}

// askTime bounds how long a request may take to arrive.
const askTime = 30 * time.Second

// call is one request that is being answered.
type call struct {
	*served
	conn  *net.UnixConn
	files []*os.File // that came with it
	args  func(into any) error
}

func (s *Server) answer(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	peer, err := peerOf(conn)
	if err != nil || peer.Uid != s.Gateway {
		s.Log.Warn("somebody who is not the gateway wants a sandbox", "peer", peer, "err", err)
		return // without a word
	}
	_ = conn.SetReadDeadline(time.Now().Add(askTime)) // a closed connection says so below
	var r request
	files, err := receive(conn, &r)
	defer closeAll(files)
	if err != nil {
		s.Log.Warn("a call that is not understood", "err", err)
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	if r.Protocol != Protocol {
		_ = fail(conn, sandbox.Errorf(sandbox.CodeUnavailable, "the process that makes sandboxes is of another version than the gateway: start both anew"))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.Method != callConnect { // nothing comes after another request but its end
		go func() {
			_, _ = conn.Read(make([]byte, 1))
			cancel()
		}()
	}
	args := func(into any) error { return decoding.Unmarshal(r.Args, into) }
	if r.Method == callBegin {
		s.begin(ctx, conn, args)
		return
	}
	in, err := s.session(r.Session)
	if err != nil {
		_ = fail(conn, err) // it has hung up
		return
	}
	c := &call{served: in, conn: conn, files: files, args: args}
	do := methods[r.Method]
	if do == nil {
		_ = fail(conn, sandbox.Errorf(sandbox.CodeFailed, "there is no call %q", r.Method))
		return
	}
	if !in.enter() {
		_ = fail(conn, sandbox.Errorf(sandbox.CodeUnavailable, "the gateway ends"))
		return
	}
	defer in.calls.Done()
	stop := context.AfterFunc(in.ctx, cancel)
	defer stop()
	do(ctx, c)
}

// fail ends a call with an error.
func fail(conn *net.UnixConn, err error) error { return send(conn, &reply{Fault: faultOf(err)}, nil) }

// succeed answers a call.
func succeed(conn *net.UnixConn, value any, files ...*os.File) error {
	raw, err := encoding.Marshal(value)
	if err != nil {
		return fail(conn, err)
	}
	err = send(conn, &reply{Value: raw}, files)
	if e, ok := errors.AsType[*sandbox.Error](err); ok { // nothing of it was sent
		return fail(conn, e)
	}
	return err
}

// served is a gateway that is served, with what is its own.
type served struct {
	key     []byte
	ctx     context.Context
	engines map[string]sandbox.Engine
	ended   chan struct{}

	calls sync.WaitGroup

	mu        sync.Mutex
	closing   bool
	last      uint64
	boxes     map[uint64]sandbox.Handle
	processes map[uint64]sandbox.Process
}

// enter counts a call, so that no engine is closed under it.
func (in *served) enter() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closing {
		return false
	}
	in.calls.Add(1)
	return true
}

// begin serves a gateway until it hangs up, once the one before has ended.
func (s *Server) begin(ctx context.Context, conn *net.UnixConn, args func(any) error) {
	var terms Terms
	if err := args(&terms); err != nil {
		_ = fail(conn, err) // it has hung up
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := &served{
		key: make([]byte, 16), ctx: ctx, engines: map[string]sandbox.Engine{}, ended: make(chan struct{}),
		boxes: map[uint64]sandbox.Handle{}, processes: map[uint64]sandbox.Process{},
	}
	rand.Read(in.key) // it never fails
	if !s.takePlace(ctx, in) {
		_ = fail(conn, sandbox.Errorf(sandbox.CodeUnavailable, "another gateway uses these sandboxes"))
		return
	}
	defer s.leave(in)
	for _, e := range s.Engines(terms) {
		in.engines[e.Name()] = e
	}
	if succeed(conn, begun{Session: in.key}) == nil {
		<-ctx.Done()
	}
	cancel()
	in.close(s.Log)
}

// placePatience bounds how long a gateway waits for the end of the one before.
const placePatience = 20 * time.Second

func (s *Server) takePlace(ctx context.Context, in *served) bool {
	ctx, cancel := context.WithTimeout(ctx, placePatience)
	defer cancel()
	for {
		s.mu.Lock()
		before := s.current
		if before == nil {
			s.current = in
		}
		s.mu.Unlock()
		if before == nil {
			return true
		}
		select {
		case <-before.ended:
		case <-ctx.Done():
			return false
		}
	}
}

func (s *Server) leave(in *served) {
	s.mu.Lock()
	s.current = nil
	s.mu.Unlock()
	close(in.ended)
}

// session is the one with a key. A call of a gateway that has ended must not reach the sandboxes of the next.
func (s *Server) session(key []byte) (*served, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || subtle.ConstantTimeCompare(s.current.key, key) != 1 {
		return nil, sandbox.Errorf(sandbox.CodeUnavailable, "this gateway is not served any more")
	}
	return s.current, nil
}

// close ends what a gateway has left: its calls are over, the engines end its sandboxes.
func (in *served) close(log *slog.Logger) {
	in.mu.Lock()
	in.closing = true
	in.mu.Unlock()
	in.calls.Wait()
	for name, e := range in.engines {
		if err := e.Close(); err != nil {
			log.Warn("sandboxes of a gateway that has ended could not all be removed", "engine", name, "err", err)
		}
	}
}
