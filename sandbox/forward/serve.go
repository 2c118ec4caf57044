package forward

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// serve carries connections until the forward ends, and tells why it did.
func (s *Forwards) serve(r *running) {
	var parts sync.WaitGroup
	parts.Go(func() { s.accept(r, &parts) })
	parts.Go(func() {
		if r.idle.wait(r.ctx, idleTime) {
			r.end(errors.New("nothing has used it for " + idleTime.String()))
		}
	})
	select {
	case <-r.handle.Done():
		r.end(errors.New("its sandbox ended"))
	case <-r.ctx.Done():
	}
	s.drop(r)
	parts.Wait()
	s.ended(r.shown(), context.Cause(r.ctx).Error())
}

func (s *Forwards) accept(r *running, parts *sync.WaitGroup) {
	places := make(chan struct{}, maxConnections)
	for {
		select {
		case places <- struct{}{}:
		case <-r.ctx.Done():
			return
		}
		conn, err := r.listener.Accept()
		if err != nil {
			r.end(errors.New("the machine's port was closed: " + err.Error())) // what ended it before counts
			return
		}
		parts.Go(func() {
			defer func() { <-places }()
			s.carry(r, conn.(*net.TCPConn))
		})
	}
}

// carry carries one connection into the sandbox. Each way ends by itself, as it does on a wire.
func (s *Forwards) carry(r *running, outer *net.TCPConn) {
	r.conns.Add(1)
	defer r.conns.Add(-1)
	defer outer.Close()
	r.idle.used()
	ctx, cancel := context.WithTimeout(r.ctx, connectTime)
	inner, err := r.handle.Connect(ctx, r.Port)
	cancel()
	if err != nil {
		s.log.Debug("a connection was not forwarded", "sandbox", r.Sandbox, "port", r.Port, "err", err)
		_ = outer.SetLinger(0) // who connects is refused, and not given an answer without content
		return
	}
	defer inner.Close()
	stop := context.AfterFunc(r.ctx, func() {
		_ = outer.Close() // it is over
		_ = inner.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { pass(inner, outer, r.idle) })
	both.Go(func() { pass(outer, inner, r.idle) })
	both.Wait()
}

// pass carries what one side says to the other, and its end. Half a connection that broke is of no use to anybody.
func pass(to, from sandbox.Connection, idle *idleness) {
	_, err := io.Copy(to, &noticed{from, idle})
	if err == nil && to.CloseWrite() == nil {
		return
	}
	_ = to.Close() // it is over
	_ = from.Close()
}

// noticed is a connection whose use is noticed.
type noticed struct {
	io.Reader
	idle *idleness
}

func (n *noticed) Read(p []byte) (int, error) {
	got, err := n.Reader.Read(p)
	if got > 0 {
		n.idle.used()
	}
	return got, err
}

// idleness knows when something was used last.
type idleness struct{ last atomic.Pointer[time.Time] }

func newIdleness() *idleness {
	i := &idleness{}
	i.used()
	return i
}

func (i *idleness) used() {
	now := time.Now()
	i.last.Store(&now)
}

// wait returns true when nothing was used for so long, and false when the context has ended.
func (i *idleness) wait(ctx context.Context, bound time.Duration) bool {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		left := bound - time.Since(*i.last.Load())
		if left <= 0 {
			return true
		}
		timer.Reset(left)
	}
}
