package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
)

// A command that opens a thousand connections asks one question, has one record with what all of them sent, and leaves nothing.
func TestAThousandConnectionsOfOneCommand(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
		}
	}()
	policy, err := netguard.NewPolicy(netguard.Config{AllowedCIDRs: []string{"127.0.0.1/32"}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, hosts())
	delete(w.ways, box)
	w.guard = netguard.NewGuard(policy, names{"a.example": "127.0.0.1"})
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
	socket := fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), SocketName)
	command := w.run(t, "agent:coder:a", "npm install")

	const all, atOnce = 1000, 100 // no more than the proxy has places for
	address := fmt.Sprintf("a.example:%d", server.Addr().(*net.TCPAddr).Port)
	places := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i := range all {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			conn := dial(t, socket)
			defer conn.Close()
			answers := bufio.NewReader(conn)
			_, _ = io.WriteString(conn, "CONNECT "+address+" HTTP/1.1\r\n\r\n")
			if line, err := answers.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 200") {
				t.Errorf("connection %d: %q, %v", i, line, err)
				return
			}
			_, _ = answers.ReadString('\n')
			fmt.Fprintf(conn, "%04d", i)
			echo := make([]byte, 4)
			if _, err := io.ReadFull(answers, echo); err != nil || string(echo) != fmt.Sprintf("%04d", i) {
				t.Errorf("connection %d: %q, %v", i, echo, err)
			}
		})
		if i == 0 {
			q := <-w.people.asked
			q.allow()
		}
	}
	running.Wait()
	if n := len(w.people.asked); n > 0 || len(w.audit.Decisions()) != 1 {
		t.Errorf("%d further questions, %d records", n, len(w.audit.Decisions()))
	}
	command.Leave()
	for end := time.Now().Add(time.Minute); ; {
		if outcome, over := w.audit.Outcome(1); over {
			if outcome.SentBytes != 4*all || outcome.ResultBytes != 4*all || outcome.Status != toolward.StatusOK {
				t.Errorf("%+v", outcome)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("the call goes on after its command")
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asking) != 0 || len(w.ways[box].flights) != 0 || len(w.ways[box].answers) != 0 {
		t.Errorf("left: %d calls, %d flights, %d answers", len(w.asking), len(w.ways[box].flights), len(w.ways[box].answers))
	}
}
