package protocol

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// wired is a connection over TCP whose client reads when the test wants, with a queue and a writer as the server has them.
func wired(t *testing.T) (c *conn, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	other, err := l.Accept()
	must(t, err)
	far = other.(*net.TCPConn)
	t.Cleanup(func() { near.Close(); far.Close() })
	must(t, near.(*net.TCPConn).SetWriteBuffer(64<<10))
	must(t, far.SetReadBuffer(64<<10))

	w := newWire()
	w.adopt(near)
	w.beginFrames()
	c = &conn{wire: w}
	c.queue = newQueue(w.try, func(closing) {})
	ctx, cancel := context.WithCancel(context.Background())
	written := make(chan struct{})
	go func() { defer close(written); c.write(ctx) }()
	t.Cleanup(func() {
		cancel()
		near.Close()
		<-written
	})
	return c, far
}

// readFrame reads one frame of a server.
func readFrame(t *testing.T, r *bufio.Reader) (op byte, payload []byte) {
	t.Helper()
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		t.Fatal(err)
	}
	if head[0]&0x70 != 0 || head[0]&0x80 == 0 || head[1]&0x80 != 0 {
		t.Fatalf("not the beginning of a frame: % x", head)
	}
	size := uint64(head[1])
	long := make([]byte, map[uint64]int{126: 2, 127: 8}[size])
	if _, err := io.ReadFull(r, long); err != nil {
		t.Fatal(err)
	}
	switch len(long) {
	case 2:
		size = uint64(binary.BigEndian.Uint16(long))
	case 8:
		size = binary.BigEndian.Uint64(long)
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		t.Fatal(err)
	}
	return head[0] & 0xf, payload
}

// Events that are written at once, events and answers that waited, frames that the kernel took in part, and control frames
// of the library: the client gets each whole, and events in their order.
func TestFramesNeverMix(t *testing.T) {
	c, far := wired(t)
	const rounds, answers = 600, 50
	partly := make(chan struct{})
	var first sync.Once
	under := c.queue.try
	c.queue.try = func(frame []byte) (bool, int) {
		taken, left := under(frame)
		if left > 0 {
			first.Do(func() { close(partly) })
		}
		return taken, left
	}
	always := func(int64) delivery { return send }
	large, err := eventHead("e", strings.Repeat("L", 16<<20), nil) // more than the kernel keeps
	must(t, err)
	c.queue.offer(always, newEvent(large))
	var senders sync.WaitGroup
	senders.Go(func() {
		for i := range rounds - 1 {
			size := []int{1, 90, 130, 3000, 70_000}[i%5]
			head, err := eventHead("e", strings.Repeat(string(rune('a'+i%26)), size), nil)
			if err != nil {
				t.Error(err)
			}
			c.queue.offer(always, newEvent(head))
			if i%100 == 0 {
				time.Sleep(time.Millisecond) // lets the writer and the client catch up now and then
			}
		}
	})
	senders.Go(func() {
		for i := range answers {
			c.queue.answer(encodeResponse(fmt.Sprint(i), strings.Repeat("z", i*10), nil))
		}
	})
	senders.Go(func() {
		for range 20 {
			if _, err := c.wire.Write([]byte{0x89, 3, 'p', 'n', 'g'}); err != nil {
				t.Error(err)
			}
		}
	})
	select { // nobody reads until the kernel has had enough
	case <-partly:
	case <-time.After(20 * time.Second):
		t.Fatal("no frame was taken in part")
	}
	var seq uint64
	texts, pings := 0, 0
	must(t, far.SetReadDeadline(time.Now().Add(30*time.Second)))
	r := bufio.NewReader(far)
	for texts < rounds+answers || pings < 20 {
		op, payload := readFrame(t, r)
		switch op {
		case 0x9:
			pings++
			if string(payload) != "png" {
				t.Fatalf("ping %q", payload)
			}
		case 0x1:
			texts++
			var f struct {
				Type, ID string
				Seq      uint64
			}
			if err := json.Unmarshal(payload, &f); err != nil {
				t.Fatalf("%v: %.80q…", err, payload)
			}
			if f.Type == "event" {
				if f.Seq != seq+1 {
					t.Fatalf("event %d follows %d", f.Seq, seq)
				}
				seq = f.Seq
			}
		default:
			t.Fatalf("opcode %x", op)
		}
	}
	senders.Wait()
	if seq != rounds {
		t.Errorf("%d events, want %d", seq, rounds)
	}
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if len(c.queue.items) != 0 {
		t.Errorf("%d frames wait after all were read", len(c.queue.items))
	}
}

// A client that reads nothing holds nobody up, and what waits for it is counted.
func TestStalledClientHoldsNobodyUp(t *testing.T) {
	c, _ := wired(t)
	head, err := eventHead("e", strings.Repeat("x", 10_000), nil)
	must(t, err)
	began := time.Now()
	for range 2000 {
		c.queue.offer(func(int64) delivery { return send }, newEvent(head))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if c.queue.buffered < 10<<20 {
		t.Errorf("%d bytes are counted of 20 MB", c.queue.buffered)
	}
}

// After a close frame there must be no other.
func TestNothingFollowsAClose(t *testing.T) {
	c, far := wired(t)
	_, err := c.wire.Write([]byte{0x88, 2, 3, 0xe8})
	must(t, err)
	head, err := eventHead("e", nil, nil)
	must(t, err)
	if taken, _ := c.wire.try(newEvent(head).frame(1)); taken || c.wire.send([]byte{finalText, 0}) == nil {
		t.Error("a data frame follows the close")
	}
	must(t, far.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if all, _ := io.ReadAll(far); len(all) != 4 {
		t.Errorf("% x", all)
	}
}

// An event is written at once only if nothing is before it: not what waits, not what the writer has in its hands, not the
// rest of a frame.
func TestEventsNeverOvertake(t *testing.T) {
	tried, takes := 0, true
	q := newQueue(func(frame []byte) (bool, int) { tried++; return takes, 0 }, nil)
	offer := func(want int) {
		t.Helper()
		q.offer(func(int64) delivery { return send }, newEvent([]byte(`{"type":"event"`)))
		if tried != want {
			t.Errorf("tried %d times, want %d", tried, want)
		}
	}
	offer(1)
	q.answer([]byte("{}"))
	offer(1) // behind the answer
	q.next()
	offer(1) // and behind the first one
	for q.items != nil {
		q.next()
	}
	offer(1) // nothing waits, but the last one is not written yet
	i, _, _ := q.next()
	q.wrote(i)
	offer(2)
	takes = false
	offer(3)
	offer(3) // behind the one that was not taken

	w := newWire()
	w.raw, w.framed, w.rest = rawConn{}, true, []byte("rest")
	w.attempt = func(uintptr) bool { t.Error("a frame was written into another"); return true }
	if taken, _ := w.try([]byte("frame")); taken {
		t.Error("taken")
	}
}

// rawConn lets everything be written.
type rawConn struct{ syscall.RawConn }

func (rawConn) Write(f func(uintptr) bool) error { f(0); return nil }
