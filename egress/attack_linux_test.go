package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
)

// turncoat is a name server that answers with a public address first and with this machine from then on.
type turncoat struct{ asked map[string]int }

func (r *turncoat) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	if r.asked[name]++; r.asked[name] > 1 {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("127.0.0.1")}, nil
}

// opened is a world with a real socket.
func opened(t *testing.T) (w *world, socket string) {
	t.Helper()
	w = newWorld(t, hosts("a.example"))
	delete(w.ways, box)
	policy, err := netguard.NewPolicy(netguard.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w.guard = netguard.NewGuard(policy, &turncoat{asked: map[string]int{}})
	dir, err := w.Open(box)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Shutdown)
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = at.Close() })
	return w, fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), SocketName) // the directory of a test has a long name
}

func dial(t *testing.T, socket string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// Whatever a program writes for a host: it is refused, or people are asked about its one form.
func TestHostsInDisguise(t *testing.T) {
	w, socket := opened(t)
	w.enter(t, "agent:coder:a")
	for written, want := range map[string]string{
		// one host
		"b.example:443": "b.example:443", "B.EXAMPLE.:443": "b.example:443", "ｂ.example:443": "b.example:443", "b。example:443": "b.example:443",
		"bücher.example:443": "xn--bcher-kva.example:443", "b.example:8443": "b.example:8443",
		// none
		"b.example:0": "", "b.example:70000": "", "b.example:-1": "", "b.example:443:443": "", "b.example:0443x": "", "b.example": "", ":443": "",
		"b.example%00.a.example:443": "", "b.example\x00a.example:443": "", "b..example:443": "", "b.example/a.example:443": "", "a.example@b.example:443": "",
		"[b.example]:443": "", "[::ffff:192.168.0.1]:443": "", "[::ffff:c0a8:1]:443": "", "[64:ff9b::a00:1]:443": "", "[fe80::1%25eth0]:443": "",
		"2130706433:443": "", "0x7f000001:443": "", "0177.0.0.1:443": "", "127.1:443": "", "127.0.0.1.:443": "", "①⑥⑨.254.169.254:80": "",
		"localhost:443": "", "metadata.google.internal:80": "", "printer:443": "", "b.example:25": "", "b.example:22": "", "b.example:6667": "",
	} {
		conn := dial(t, socket)
		_, _ = io.WriteString(conn, "CONNECT "+written+" HTTP/1.1\r\n\r\n")
		answer := make(chan string, 1)
		go func() { line, _ := bufio.NewReader(conn).ReadString('\n'); answer <- line }()
		select {
		case q := <-w.people.asked:
			if got := strings.TrimPrefix(q.Request.Facts.Hosts[0], "tcp://"); got != want {
				t.Errorf("%q: people are asked about %s, want %q", written, got, want)
			}
			q.answer <- toolward.Answer{Decision: toolward.DenyCall}
			<-answer
		case line := <-answer:
			if want != "" || !strings.HasPrefix(line, "HTTP/1.1 40") {
				t.Errorf("%q: %q, want a question about %q", written, line, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q: nothing happens", written)
		}
		_ = conn.Close()
	}
}

// A name that leads to this machine, among others or at the second look, is not dialed, and the record says so.
func TestRebindingName(t *testing.T) {
	w, socket := opened(t)
	w.enter(t, "agent:coder:a")
	for range 2 {
		conn := dial(t, socket)
		_, _ = io.WriteString(conn, "CONNECT a.example:443 HTTP/1.1\r\n\r\n")
		if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 403 toolward: a.example was not reached") {
			t.Errorf("%q", line)
		}
		_ = conn.Close()
	}
	w.Close(box) // every call has its outcome then
	for i := range w.audit.Decisions() {
		if outcome, ok := w.audit.Outcome(toolward.RecordID(i + 1)); !ok || outcome.Status != toolward.StatusError || !strings.Contains(outcome.Error, "dns_address_not_public") {
			t.Errorf("call %d: %+v", i+1, outcome)
		}
	}
}

// Ten thousand connections are one question, take no more than their places, and leave nothing.
func TestFlood(t *testing.T) {
	w, socket := opened(t)
	w.enter(t, "agent:coder:a")
	var open []net.Conn
	for i := range 10_000 {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			continue // the queue of the socket is full
		}
		_, _ = io.WriteString(conn, "CONNECT b.example:443 HTTP/1.1\r\n\r\n")
		if i < 500 {
			open = append(open, conn)
		} else {
			_ = conn.Close()
		}
	}
	q := <-w.people.asked
	if n := len(w.people.asked); n > 0 {
		t.Errorf("%d further questions", n)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	select {
	case <-q.ended:
	case <-time.After(time.Minute):
		t.Fatal("people are asked for nobody")
	}
	// And the next one is served.
	conn := dial(t, socket)
	defer conn.Close()
	_, _ = io.WriteString(conn, "CONNECT b.example:443 HTTP/1.1\r\n\r\n")
	select {
	case <-w.people.asked:
	case <-time.After(time.Minute):
		t.Fatal("the proxy serves nobody any more")
	}
}

func TestSocketsOfSandboxesAreTheirOwn(t *testing.T) {
	w, _ := opened(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc", ".hidden"} {
		if dir, err := w.Open(name); err == nil {
			t.Errorf("%q: %s", name, dir)
		}
	}
	one, err := w.Open("one")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.Open("one"); err != nil || again != one {
		t.Errorf("opened again: %q, %v", again, err)
	}
	for path, want := range map[string]os.FileMode{w.options.Dir: 0o700, one: 0o711, filepath.Join(one, SocketName): 0o666} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	w.Close("one")
	if _, err := os.Stat(one); err == nil {
		t.Error("the directory is still there")
	}
	w.Close("one")
	// What a run leaves that was killed is gone after the next start.
	left := filepath.Join(w.options.Dir, "left")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	next, err := New(w.options)
	if err != nil {
		t.Fatal(err)
	}
	next.Outlived(nil)
	if entries, err := os.ReadDir(w.options.Dir); err == nil && len(entries) > 0 {
		t.Errorf("left: %v", slices.Collect(func(yield func(string) bool) {
			for _, e := range entries {
				yield(e.Name())
			}
		}))
	}
	w.Shutdown()
	if _, err := w.Open("one"); err == nil {
		t.Error("opened while the gateway ends")
	}
}
