package netguard

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever sends a request byte by byte, or takes no answer, holds a place for a moment only.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, first := range map[string]string{"HTTP": "CONNECT site.example:443 HTTP/1.1\r\nX: ", "SOCKS": "\x05\xff", "nothing": ""} {
			here, there := net.Pipe()
			over := make(chan struct{})
			began := time.Now()
			p := &Proxy{Guard: NewGuard(&Policy{}, answers{}), Permit: func(context.Context, string, uint16) (Leave, error) {
				t.Errorf("%s: asked", name)
				return nil, errors.New("no")
			}}
			go func() { defer close(over); p.serve(t.Context(), here) }()
			go func() {
				_, _ = io.WriteString(there, first)
				for first != "" {
					time.Sleep(time.Second)
					if _, err := there.Write([]byte("\x01")); err != nil {
						return
					}
				}
			}()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			<-over
			if took := time.Since(began); took > handshakeTime+time.Second {
				t.Errorf("%s: it held its place for %s", name, took)
			}
			_ = there.Close()
		}
		here, there := net.Pipe() // who never reads the refusal
		defer there.Close()
		over := make(chan struct{})
		began := time.Now()
		p := &Proxy{Guard: NewGuard(&Policy{}, answers{}), Permit: func(context.Context, string, uint16) (Leave, error) { return nil, errors.New("no") }}
		go func() { defer close(over); p.serve(t.Context(), here) }()
		_, _ = io.WriteString(there, "CONNECT site.example:443 HTTP/1.1\r\n\r\n")
		<-over
		if took := time.Since(began); took > handshakeTime+time.Second {
			t.Errorf("it held its place for %s", took)
		}
	})
}

// short is a listener of a system that runs out of descriptors now and then.
type short struct {
	errs  chan error
	conns chan net.Conn
}

func (s *short) Accept() (net.Conn, error) {
	select {
	case err := <-s.errs:
		return nil, err
	case conn := <-s.conns:
		return conn, nil
	}
}

func (s *short) Close() error {
	select {
	case s.errs <- net.ErrClosed:
	default:
	}
	return nil
}

func (*short) Addr() net.Addr { return &net.UnixAddr{} }

func TestShortOfDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &short{make(chan error, 2), make(chan net.Conn)}
		l.errs <- &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- (&Proxy{}).Serve(ctx, l) }()
		here, there := net.Pipe()
		l.conns <- here
		_, _ = io.WriteString(there, "CONNECT site.example:443 HTTP/1.1\r\n\r\n")
		if answer, _ := io.ReadAll(there); len(answer) == 0 {
			t.Error("nobody is served any more")
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
