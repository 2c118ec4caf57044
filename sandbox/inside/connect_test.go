//go:build linux

package inside_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// server listens on the machine's loopback address, where the program inside is in these tests, and treats each connection.
func server(t *testing.T, network, address string, treat func(*net.TCPConn)) uint16 {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skip(err) // no IPv6 here
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go treat(conn.(*net.TCPConn))
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func echo(conn *net.TCPConn) {
	io.Copy(conn, conn)
	conn.CloseWrite()
}

func TestConnecting(t *testing.T) {
	b := newBox(t)
	for network, address := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		t.Run(network, func(t *testing.T) {
			conn, err := b.Connect(b.context(), server(t, network, address, echo))
			must(t, err)
			defer conn.Close()
			sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // eight windows
			go func() {
				conn.Write(sent)
				conn.CloseWrite()
			}()
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d of %d bytes came back, %v", len(got), len(sent), err)
			}
		})
	}
}

// Half a connection goes on: a server that has said everything still hears, and one that has heard everything still answers.
func TestHalfClosed(t *testing.T) {
	b := newBox(t)
	heard := make(chan string, 1)
	port := server(t, "tcp", "127.0.0.1:0", func(conn *net.TCPConn) {
		io.WriteString(conn, "hello")
		conn.CloseWrite()
		all, _ := io.ReadAll(conn)
		heard <- string(all)
		conn.Close()
	})
	conn, err := b.Connect(b.context(), port)
	must(t, err)
	defer conn.Close()
	if said, err := io.ReadAll(conn); string(said) != "hello" || err != nil {
		t.Errorf("%q, %v", said, err)
	}
	_, err = io.WriteString(conn, "and still")
	must(t, err)
	must(t, conn.CloseWrite())
	if got := <-heard; got != "and still" {
		t.Errorf("heard %q", got)
	}
}

func TestConnectingToNothing(t *testing.T) {
	b := newBox(t)
	port := server(t, "tcp", "127.0.0.1:0", echo)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	none := uint16(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	_, err = b.Connect(b.context(), none)
	wantCode(t, "nobody listens", err, sandbox.CodeNotFound)
	_, err = b.Connect(b.context(), 0)
	wantCode(t, "port 0", err, sandbox.CodeNotFound)
	conn, err := b.Connect(b.context(), port) // the sandbox goes on
	must(t, err)
	conn.Close()
}

// Sixty-four connections can be open, and they take no place of commands; one that is closed makes room.
func TestManyConnections(t *testing.T) {
	b := newBox(t)
	port := server(t, "tcp", "127.0.0.1:0", echo)
	var open []sandbox.Connection
	for range 64 {
		conn, err := b.Connect(b.context(), port)
		must(t, err)
		open = append(open, conn)
	}
	_, err := b.Connect(b.context(), port)
	wantCode(t, "one more", err, sandbox.CodeFailed)
	if r := b.shell("echo works"); r.out != "works\n" {
		t.Errorf("%q", r.out)
	}
	var all sync.WaitGroup
	for i, conn := range open {
		all.Go(func() {
			fmt.Fprint(conn, i)
			conn.CloseWrite()
			if got, err := io.ReadAll(conn); string(got) != fmt.Sprint(i) || err != nil {
				t.Errorf("%d: %q, %v", i, got, err)
			}
		})
	}
	all.Wait()
	for _, conn := range open {
		conn.Close()
	}
	for end := time.Now().Add(patience); ; {
		conn, err := b.Connect(b.context(), port)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// Closing a connection ends it for a server that never does, and who still reads or writes is told.
func TestClosingAConnection(t *testing.T) {
	b := newBox(t)
	ended := make(chan error, 1)
	conn, err := b.Connect(b.context(), server(t, "tcp", "127.0.0.1:0", func(conn *net.TCPConn) {
		_, err := io.Copy(io.Discard, conn)
		ended <- err
	}))
	must(t, err)
	read := make(chan error, 1)
	go func() { _, err := conn.Read(make([]byte, 1)); read <- err }()
	conn.Close()
	if err := <-read; err == nil {
		t.Error("something was read")
	}
	if _, err := conn.Write([]byte("x")); err == nil {
		t.Error("something was written")
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the server still waits")
	}
}

func TestPorts(t *testing.T) {
	b := newBox(t)
	number := server(t, "tcp", "127.0.0.1:0", echo)
	ports, _, err := b.Ports(b.context())
	must(t, err)
	at := slices.IndexFunc(ports, func(p sandbox.Port) bool { return p.Number == number })
	if at < 0 {
		t.Fatalf("%d is not in %v", number, ports)
	}
	if p := ports[at]; !p.Local || p.PID != os.Getpid() || p.Program != "inside.test" {
		t.Errorf("%+v", p)
	}
}

// Every breach of the protocol ends the connection into the sandbox, and with it those to its programs.
func TestBreachesOfConnections(t *testing.T) {
	made := wire.AppendFrame(nil, wire.Response, 1)
	after := func(t wire.Type, payload []byte) []byte { return wire.AppendFrame(bytes.Clone(made), t, 1, payload) }
	silent := after(wire.EOF, nil)
	for name, said := range map[string][]byte{
		"bytes before it is made":  wire.AppendFrame(nil, wire.Stdout, 1, []byte("x")),
		"an end before that":       wire.AppendFrame(nil, wire.Exit, 1),
		"made twice":               append(bytes.Clone(made), made...),
		"an answer with something": wire.AppendFrame(nil, wire.Response, 1, []byte("x")),
		"errors of a command":      after(wire.Stderr, []byte("x")),
		"more than the window":     after(wire.Stdout, make([]byte, wire.Window+1)),
		"bytes after the end":      wire.AppendFrame(bytes.Clone(silent), wire.Stdout, 1, []byte("x")),
		"two ends":                 wire.AppendFrame(bytes.Clone(silent), wire.EOF, 1),
		"over before its end":      after(wire.Exit, nil),
		"over with a status":       wire.AppendFrame(bytes.Clone(silent), wire.Exit, 1, []byte{0}),
		"unasked credit":           after(wire.Credit, wire.EncodeCredit(wire.Stdin, 1)),
		"credit for output":        after(wire.Credit, wire.EncodeCredit(wire.Stdout, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			client, p := connect(t, hostileSetup)
			go io.Copy(io.Discard, p.Conn)
			go p.Write(said)
			if conn, err := client.Connect(t.Context(), 3000); err == nil {
				io.Copy(io.Discard, conn)
			}
			select {
			case <-client.Done():
			case <-time.After(patience):
				t.Fatal("it goes on")
			}
			if !errors.Is(client.Err(), wire.ErrProtocol) {
				t.Error(client.Err())
			}
		})
	}
}
