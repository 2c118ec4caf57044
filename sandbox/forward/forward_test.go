package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/sandbox"
)

// box is a sandbox whose programs are this test's own, reached without one.
type box struct {
	sandbox.Handle
	ports []sandbox.Port
	inner func() (net.Conn, error)
	done  chan struct{}
}

func (b *box) Ports(context.Context) ([]sandbox.Port, bool, error) { return b.ports, false, nil }
func (b *box) State() sandbox.State                                { return sandbox.State{ScopeKey: "agent:coder"} }
func (b *box) Done() <-chan struct{}                               { return b.done }

func (b *box) Connect(context.Context, uint16) (sandbox.Connection, error) {
	conn, err := b.inner()
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// world has forwards of one sandbox, "a", in which something listens at 3000, 80 and, not at its loopback address, 4000.
type world struct {
	*Forwards
	*box
	t     *testing.T
	ended chan string
	saw   chan *net.TCPConn // what the program inside is connected with
}

func newWorld(t *testing.T) *world {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	w := &world{t: t, ended: make(chan string, maxForwards), saw: make(chan *net.TCPConn, 2*maxConnections)}
	w.box = &box{
		ports: []sandbox.Port{{Number: 80, Local: true}, {Number: 3000, Local: true}, {Number: 4000, Program: "node"}}, done: make(chan struct{}),
		inner: func() (net.Conn, error) { return net.Dial("tcp4", l.Addr().String()) },
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.saw <- conn.(*net.TCPConn)
		}
	}()
	w.Forwards = New(w, func(f Forward, why string) { w.ended <- why }, slog.New(slog.DiscardHandler))
	t.Cleanup(w.Forwards.Close)
	return w
}

func (w *world) Running(name string) (sandbox.Handle, error) {
	if name != "a" {
		return nil, sandbox.Errorf(sandbox.CodeNotFound, "no %s", name)
	}
	return w.box, nil
}

func unrecorded(Forward) error { return nil }

// start forwards port 3000 to a free one.
func (w *world) start() Forward {
	w.t.Helper()
	f, err := w.Start(w.t.Context(), "a", 3000, free(w.t), unrecorded)
	must(w.t, err)
	return f
}

func free(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func dial(f Forward) (*net.TCPConn, error) {
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", f.Local))
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	w := newWorld(t)
	full := errors.New("the disk is full")
	for name, test := range map[string]struct {
		sandbox  string
		port, to uint16
		record   func(Forward) error
		code     sandbox.Code
		says     string
	}{
		"another sandbox":         {"b", 3000, 0, unrecorded, sandbox.CodeNotFound, "no b"},
		"nothing listens":         {"a", 3001, 0, unrecorded, sandbox.CodeNotFound, "nothing listens at port 3001 in sandbox a"},
		"not at localhost":        {"a", 4000, 0, unrecorded, sandbox.CodeNotFound, "node listens at port 4000 in sandbox a, but not at its loopback"},
		"port 0":                  {"a", 0, 0, unrecorded, sandbox.CodeConfig, "1 to 65535"},
		"a privileged port":       {"a", 3000, 1023, unrecorded, sandbox.CodeConfig, "from 1024"},
		"what cannot be recorded": {"a", 3000, 0, func(Forward) error { return full }, sandbox.CodeFailed, "full"},
	} {
		_, err := w.Start(t.Context(), test.sandbox, test.port, test.to, test.record)
		if sandbox.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list := w.List(); len(list) > 0 {
		t.Errorf("%+v", list)
	}
}

// What is forwarded listens on the loopback address and nowhere else, where it was wanted, or says why not.
func TestWhereItListens(t *testing.T) {
	w := newWorld(t)
	wanted := free(t)
	f, err := w.Start(t.Context(), "a", 3000, wanted, func(f Forward) error {
		if _, err := net.DialTimeout("tcp4", fmt.Sprintf("127.0.0.1:%d", f.Local), time.Second); err != nil || f.Local != wanted {
			t.Errorf("recorded %+v, %v", f, err)
		}
		return nil
	})
	must(t, err)
	if f.Local != wanted || f.Why != "" || f.URL() != fmt.Sprintf("http://127.0.0.1:%d/", wanted) || f.Scope != "agent:coder" {
		t.Errorf("%+v", f)
	}
	if at := w.Forwards.open[0].listener.Addr().String(); at != fmt.Sprintf("127.0.0.1:%d", wanted) {
		t.Error("it listens at", at)
	}
	if again, err := w.Start(t.Context(), "a", 3000, 0, unrecorded); err != nil || again.Local != wanted {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	w.box.ports = append(w.box.ports, sandbox.Port{Number: 3001, Local: true})
	if other, err := w.Start(t.Context(), "a", 3001, wanted, unrecorded); err != nil || other.Local == wanted || other.Why != fmt.Sprintf("port %d of the machine is taken", wanted) {
		t.Errorf("a taken one: %+v, %v", other, err)
	}
	if low, err := w.Start(t.Context(), "a", 80, 0, unrecorded); err != nil || low.Local < firstPort || low.Why == "" {
		t.Errorf("port 80: %+v, %v", low, err)
	}
}

func TestBounded(t *testing.T) {
	w := newWorld(t)
	for i := range uint16(maxForwards + 1) {
		w.box.ports = append(w.box.ports, sandbox.Port{Number: 5000 + i, Local: true})
		_, err := w.Start(t.Context(), "a", 5000+i, free(t), unrecorded)
		if (err == nil) != (i < maxForwards) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestCarrying(t *testing.T) {
	w := newWorld(t)
	f := w.start()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			conn, err := dial(f)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "%d from outside", i)
			conn.CloseWrite()
			if got, err := io.ReadAll(conn); string(got) != fmt.Sprintf("%d from outside, and back", i) || err != nil {
				t.Errorf("%d: %q, %v", i, got, err)
			}
		})
	}
	var open []*net.TCPConn
	for range 50 { // all at once, before any is answered
		open = append(open, <-w.saw)
	}
	for _, conn := range open {
		heard, _ := io.ReadAll(conn) // the end of it is half the connection's
		fmt.Fprintf(conn, "%s, and back", heard)
		conn.Close()
	}
	all.Wait()
}

// Who connects where nothing listens any more is refused, and the forward goes on.
func TestAProgramThatEnded(t *testing.T) {
	w := newWorld(t)
	works, gone := w.box.inner, atomic.Bool{}
	gone.Store(true)
	w.box.inner = func() (net.Conn, error) {
		if gone.Load() {
			return nil, sandbox.Errorf(sandbox.CodeNotFound, "nothing listens")
		}
		return works()
	}
	f := w.start()
	if conn, err := dial(f); err == nil { // else it was refused at once
		if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%d, %v: that looks like an answer", n, err)
		}
	}
	gone.Store(false)
	conn, err := dial(f)
	must(t, err)
	defer conn.Close()
	(<-w.saw).Close()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// A forward that ends closes what is open, frees its port and says why, whatever ended it.
func TestEnds(t *testing.T) {
	for why, end := range map[string]func(*world){
		"by ada":            func(w *world) { must(w.t, w.Stop("a", 3000, "by ada")) },
		"its sandbox ended": func(w *world) { close(w.box.done) },
		"the gateway ended": func(w *world) { w.Forwards.Close() },
	} {
		w := newWorld(t)
		f := w.start()
		conn, err := dial(f)
		must(t, err)
		inner := <-w.saw
		end(w)
		if got := <-w.ended; got != why {
			t.Errorf("%s: %s", why, got)
		}
		for side, c := range map[string]net.Conn{"outside": conn, "inside": inner} {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Errorf("%s: something was read %s", why, side)
			}
		}
		if _, err := dial(f); err == nil || len(w.List()) > 0 {
			t.Errorf("%s: %v, %v", why, err, w.List())
		}
	}
	if err := newWorld(t).Stop("a", 3000, ""); sandbox.CodeOf(err) != sandbox.CodeNotFound {
		t.Error(err)
	}
}

func TestIdleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, i := time.Now(), newIdleness()
		go func() {
			time.Sleep(20 * time.Minute)
			i.used()
		}()
		if !i.wait(t.Context(), idleTime) || time.Since(began) != 50*time.Minute {
			t.Errorf("it waited %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		i.used()
		if i.wait(ctx, idleTime) {
			t.Error("what has ended is no longer idle")
		}
	})
}
