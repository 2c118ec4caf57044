package protocol

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/identity"
)

const consoles = 1000

// BenchmarkNews measures how long it takes from a question to when each of 1,000 consoles has it, over TCP: the commit,
// the event and its way to all of them. Then a tenth of them reads nothing any more, and the others are measured
// again. The floor is a program that only writes as many bytes to 1,000 connections, one writer and one reader each; its
// rounds take turns with ours. Clients and server share the processors; how much of them both used is told, too. Ours
// includes the question's commit, its end, and the clients' reading of both.
func BenchmarkNews(b *testing.B) {
	w := newWorld(b, byToken)
	crowd := w.crowd(b)
	crowd.measure(b, -1, consoles) // also tells how long a question is on the wire
	floor := newFloor(b, int(crowd.size.Load()))
	var all, bare []time.Duration
	var ours, theirs time.Duration // of the processors
	for i := range b.N {
		before := processors(b)
		all = append(all, crowd.measure(b, i, consoles)...)
		between := processors(b)
		bare = append(bare, floor.measure()...)
		ours, theirs = ours+between-before, theirs+processors(b)-between
	}
	crowd.stall(b, consoles/10)
	var others []time.Duration
	for i := range b.N {
		others = append(others, crowd.measure(b, i, consoles-consoles/10)...)
	}
	report := func(name string, d time.Duration) { b.ReportMetric(float64(d.Microseconds())/1000, name) }
	report("p50-ms", quantile(all, 50))
	report("p99-ms", quantile(all, 99))
	report("stalled-p50-ms", quantile(others, 50))
	report("stalled-p99-ms", quantile(others, 99))
	report("added-p99-ms", quantile(others, 99)-quantile(all, 99))
	report("floor-p50-ms", quantile(bare, 50))
	report("floor-p99-ms", quantile(bare, 99))
	report("cpu-ms", ours/time.Duration(b.N))
	report("floor-cpu-ms", theirs/time.Duration(b.N))
}

// processors is how much time of the processors this process has used.
func processors(b *testing.B) time.Duration {
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func quantile(all []time.Duration, percent int) time.Duration {
	slices.Sort(all)
	return all[(len(all)-1)*percent/100]
}

// crowd is many consoles of one person.
type crowd struct {
	w       *world
	conns   []*websocket.Conn
	theirs  []*conn // the server's ends of them
	stalled []atomic.Bool
	round   atomic.Pointer[arrivals]
	size    atomic.Int64 // bytes of the last question
}

// arrivals are when the consoles got the question of one round.
type arrivals struct {
	mark  []byte
	start time.Time
	mu    sync.Mutex
	took  []time.Duration
	left  sync.WaitGroup
}

func (a *arrivals) arrived() {
	took := time.Since(a.start)
	a.mu.Lock()
	a.took = append(a.took, took)
	a.mu.Unlock()
	a.left.Done()
}

func (w *world) crowd(b *testing.B) *crowd {
	server := &http.Server{Handler: w.Server}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { server.Close() })
	who := newIdentity()
	w.console(who, identity.ScopeApprovals).ws.CloseNow()
	for len(w.connected()) > 0 {
		time.Sleep(time.Millisecond)
	}
	c := &crowd{w: w, stalled: make([]atomic.Bool, consoles)}
	for i := range consoles {
		ws, _, err := websocket.Dial(b.Context(), "ws://"+l.Addr().String()+"/", &websocket.DialOptions{Host: "127.0.0.1:7411"})
		must(b, err)
		ws.SetReadLimit(maxFrame)
		b.Cleanup(func() { ws.CloseNow() })
		joining := &client{t: b, ws: ws}
		joining.nonce, _ = joining.read().Payload["nonce"].(string)
		params := hello(func(p map[string]any) {
			p["auth"], p["scopes"] = map[string]any{"token": secret}, []string{identity.ScopeApprovals}
		})
		who.sign(params, joining.nonce, time.Now())
		joining.begin("connect", "connect", params)
		if f := joining.response("connect"); !f.OK {
			b.Fatalf("console %d: %+v", i, f.Error)
		}
		c.conns = append(c.conns, ws)
		for _, end := range w.connected() {
			if !slices.Contains(c.theirs, end) {
				c.theirs = append(c.theirs, end)
			}
		}
		go c.follow(b.Context(), i)
	}
	return c
}

// follow reads all that comes to one console, until it stalls.
func (c *crowd) follow(ctx context.Context, i int) {
	for !c.stalled[i].Load() {
		_, raw, err := c.conns[i].Read(ctx)
		if err != nil {
			return
		}
		if at := c.round.Load(); at != nil && bytes.Contains(raw, at.mark) && bytes.Contains(raw, []byte(`"approval.requested"`)) && !c.stalled[i].Load() {
			c.size.Store(int64(len(raw)))
			at.arrived()
		}
	}
}

// measure asks one question and returns how long it took to each console that reads.
func (c *crowd) measure(b *testing.B, round, readers int) []time.Duration {
	id := fmt.Sprintf("question-%d-%d", readers, round)
	at := &arrivals{mark: []byte(`"id":"` + id + `"`)}
	at.left.Add(readers)
	at.start = time.Now()
	c.round.Store(at)
	_, err := c.w.approvals.Submit(b.Context(), approval.Submission{
		ID: id, Kind: approval.KindTool, Binding: id, Connection: "agent", Device: "agent", Timeout: time.Minute,
		Details: approval.Details{Tool: "write", Title: "write: src/a.go", Agent: "main", Session: "agent:main:main", Severity: toolward.Warning},
	})
	must(b, err)
	at.left.Wait()
	c.w.approvals.Expire(id, approval.ByCanceled)
	time.Sleep(20 * time.Millisecond) // until that is told, too
	return at.took
}

// stall lets the first consoles read nothing any more, and fills what lies between them and the server.
func (c *crowd) stall(b *testing.B, n int) {
	for i := range n {
		c.stalled[i].Store(true)
	}
	c.w.broadcast("approval.requested", map[string]any{"wake": true}, nil) // each ends its last read
	time.Sleep(100 * time.Millisecond)
	filling := map[string]any{"text": strings.Repeat("x", 1<<20)}
	for range 10 {
		c.w.broadcast("approval.requested", filling, func(to *conn) bool { return slices.Contains(c.theirs[:n], to) })
	}
	time.Sleep(100 * time.Millisecond)
	for i, to := range c.theirs[:n] {
		to.queue.mu.Lock()
		waits := to.queue.buffered
		to.queue.mu.Unlock()
		if waits == 0 {
			b.Fatalf("console %d has read all, although it should have stalled", i)
		}
	}
}

// floor is connections with nothing around them.
type floor struct {
	wake []chan struct{}
	at   atomic.Pointer[arrivals]
}

func newFloor(b *testing.B, size int) *floor {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	b.Cleanup(func() { l.Close() })
	f := &floor{}
	for range consoles {
		near, err := net.Dial("tcp", l.Addr().String())
		must(b, err)
		far, err := l.Accept()
		must(b, err)
		wake := make(chan struct{}, 1)
		b.Cleanup(func() { near.Close(); far.Close(); close(wake) })
		f.wake = append(f.wake, wake)
		go func() {
			text := bytes.Repeat([]byte("x"), size)
			for range wake {
				if _, err := far.Write(text); err != nil {
					return
				}
			}
		}()
		go func() {
			text := make([]byte, size)
			for {
				if _, err := io.ReadFull(near, text); err != nil {
					return
				}
				f.at.Load().arrived()
			}
		}()
	}
	return f
}

func (f *floor) measure() []time.Duration {
	at := &arrivals{start: time.Now()}
	at.left.Add(consoles)
	f.at.Store(at)
	for _, wake := range f.wake {
		wake <- struct{}{}
	}
	at.left.Wait()
	return at.took
}
