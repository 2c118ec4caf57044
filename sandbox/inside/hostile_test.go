//go:build linux

package inside_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// peer is the other side of a client, in the hand of a test.
type peer struct {
	net.Conn
	*wire.Reader
}

// connect makes a client whose peer has greeted it as it should.
func connect(t testing.TB, setup inside.Setup) (*inside.Client, *peer) {
	t.Helper()
	ours, theirs := net.Pipe()
	p := &peer{theirs, wire.NewReader(theirs)}
	greeted := make(chan error, 1)
	go func() {
		hello, err := p.hello()
		if err == nil {
			welcome := wire.Welcome{Version: wire.Version, Nonce: hello.Nonce}
			_, err = p.Write(wire.AppendFrame(nil, wire.Response, 0, welcome.Encode()))
		}
		greeted <- err
	}()
	client, err := inside.Connect(t.Context(), ours, setup)
	if err = errors.Join(err, <-greeted); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); theirs.Close() })
	return client, p
}

func (p *peer) hello() (*wire.Hello, error) {
	if _, err := p.Next(); err != nil {
		return nil, err
	}
	payload, err := p.Payload()
	if err != nil {
		return nil, err
	}
	return wire.DecodeHello(payload)
}

var hostileSetup = inside.Setup{Mounts: []sandbox.Mount{{Target: "/w", Writable: true}}, Workdir: "/w"}

func TestGreetings(t *testing.T) {
	for name, answer := range map[string]func(h *wire.Hello) []byte{
		"nothing":         func(*wire.Hello) []byte { return nil },
		"garbage":         func(*wire.Hello) []byte { return []byte("bash: no such command\r\n") },
		"another nonce":   func(*wire.Hello) []byte { return greeting(&wire.Welcome{Version: wire.Version}) },
		"another version": func(h *wire.Hello) []byte { return greeting(&wire.Welcome{Version: 99, Nonce: h.Nonce}) },
		"a refusal": func(*wire.Hello) []byte {
			return wire.AppendFrame(nil, wire.Error, 0, wire.EncodeError(errors.New("no")))
		},
		"another stream": func(h *wire.Hello) []byte {
			w := wire.Welcome{Version: wire.Version, Nonce: h.Nonce}
			return wire.AppendFrame(nil, wire.Response, 1, w.Encode())
		},
		"half a frame": func(h *wire.Hello) []byte {
			return greeting(&wire.Welcome{Version: wire.Version, Nonce: h.Nonce})[:20]
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go func() {
				p := &peer{theirs, wire.NewReader(theirs)}
				if hello, err := p.hello(); err == nil {
					theirs.Write(answer(hello))
				}
				theirs.Close()
			}()
			_, err := inside.Connect(t.Context(), ours, hostileSetup)
			wantCode(t, "connect", err, sandbox.CodeUnavailable)
			if _, err := ours.Write([]byte("x")); err == nil {
				t.Error("the stream is still open")
			}
		})
	}
}

func greeting(w *wire.Welcome) []byte { return wire.AppendFrame(nil, wire.Response, 0, w.Encode()) }

// A peer that says nothing holds nobody up for longer than the context lasts.
func TestASilentPeer(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go io.Copy(io.Discard, theirs)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := inside.Connect(ctx, ours, hostileSetup)
	wantCode(t, "connect", err, sandbox.CodeUnavailable)

	client, p := connect(t, hostileSetup)
	go io.Copy(io.Discard, p.Conn)
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = client.Start(ctx, sandbox.Command{Argv: []string{"true"}})
	wantCode(t, "start", err, sandbox.CodeTimeout)
	_, _, err = client.ReadFile(ctx, "/w/file", 0, 10)
	wantCode(t, "read", err, sandbox.CodeTimeout)
}

// Every breach of the protocol ends the connection, and with it what waits.
func TestBreaches(t *testing.T) {
	started := wire.AppendFrame(nil, wire.Response, 1, (&wire.Started{PID: 1}).Encode())
	exit := wire.AppendFrame(nil, wire.Exit, 1, wire.EncodeExit(sandbox.ExitStatus{}))
	frame := func(t wire.Type, stream uint32, payload []byte) []byte {
		return wire.AppendFrame(bytes.Clone(started), t, stream, payload)
	}
	for name, said := range map[string][]byte{
		"output before the start":  wire.AppendFrame(nil, wire.Stdout, 1, []byte("x")),
		"exit before the start":    exit,
		"a second start":           append(bytes.Clone(started), started...),
		"another stream":           frame(wire.Stdout, 2, []byte("x")),
		"stream 0":                 frame(wire.Stdout, 0, []byte("x")),
		"empty output":             frame(wire.Stdout, 1, nil),
		"more than the window":     frame(wire.Stderr, 1, make([]byte, wire.Window+1)),
		"credit without input":     frame(wire.Credit, 1, wire.EncodeCredit(wire.Stdin, 1)),
		"a request":                frame(wire.Request, 1, []byte{1}),
		"input":                    frame(wire.Stdin, 1, []byte("x")),
		"an unknown type":          frame(99, 1, nil),
		"a broken exit":            frame(wire.Exit, 1, []byte{1}),
		"something after the exit": append(append(bytes.Clone(started), exit...), exit...),
		"an endless frame":         append(bytes.Clone(started), 0xff, 0xff, 0xff, 0xff, byte(wire.Stdout), 0, 0, 0, 1),
	} {
		t.Run(name, func(t *testing.T) {
			client, p := connect(t, hostileSetup)
			go io.Copy(io.Discard, p.Conn)
			go p.Write(said)
			process, err := client.Start(t.Context(), sandbox.Command{Argv: []string{"true"}})
			if err == nil && name != "something after the exit" {
				_, err = process.Wait(t.Context())
			}
			if name != "something after the exit" {
				wantCode(t, "the command", err, sandbox.CodeUnavailable)
			}
			select {
			case <-client.Done():
			case <-time.After(patience):
				t.Fatal("the connection goes on")
			}
			if !errors.Is(client.Err(), wire.ErrProtocol) {
				t.Error(client.Err())
			}
		})
	}
}

// What a peer says of files is bounded by what was asked, and must lie in a mount.
func TestLiesAboutFiles(t *testing.T) {
	info := func(path string) []byte {
		return wire.EncodeInfo(&sandbox.FileInfo{Path: path, Type: sandbox.TypeRegular})
	}
	for name, said := range map[string][]byte{
		"outside":        wire.AppendFrame(nil, wire.Response, 1, info("/etc/passwd")),
		"beside":         wire.AppendFrame(nil, wire.Response, 1, info("/workspace")),
		"too much":       wire.AppendFrame(nil, wire.Response, 1, info("/w/f"), make([]byte, 11)),
		"too much data":  wire.AppendFrame(nil, wire.Stdout, 1, make([]byte, 11)),
		"a start":        wire.AppendFrame(nil, wire.Response, 1, (&wire.Started{}).Encode()),
		"the end":        wire.AppendFrame(nil, wire.Exit, 1, wire.EncodeExit(sandbox.ExitStatus{})),
		"unasked credit": wire.AppendFrame(nil, wire.Credit, 1, wire.EncodeCredit(wire.Stdin, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			client, p := connect(t, hostileSetup)
			go io.Copy(io.Discard, p.Conn)
			go p.Write(said)
			data, _, err := client.ReadFile(t.Context(), "/w/f", 0, 10)
			wantCode(t, "read", err, sandbox.CodeUnavailable)
			if len(data) > 0 || !errors.Is(client.Err(), wire.ErrProtocol) {
				t.Errorf("%q, %v", data, client.Err())
			}
		})
	}
}

// FuzzPeer lets a client work with a peer that says anything. Nothing may panic or hang.
func FuzzPeer(f *testing.F) {
	started := (&wire.Started{PID: 1}).Encode()
	f.Add(true, wire.AppendFrame(wire.AppendFrame(nil, wire.Response, 1, started), wire.Exit, 1, wire.EncodeExit(sandbox.ExitStatus{})))
	f.Add(true, wire.AppendFrame(wire.AppendFrame(nil, wire.Response, 1, started), wire.Stdout, 1, []byte("text")))
	f.Add(true, wire.AppendFrame(nil, wire.Stdout, 2, []byte("text")))
	f.Add(false, []byte{2, 1, 8, 0, 0, 0, 5, 0, 0, 0, 0, 4, 1, 3, 'a', 'b', 'c', 7, 1, 5, 0, 0, 0, 0, 0})
	f.Add(false, []byte{2, 2, 0, 11, 3, 6, 1, 0, 0, 0, 1, 'x', 10, 4, 5, 3, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, raw bool, script []byte) {
		said := script
		if !raw { // frames of any type, for a few streams, so that more than the first is reached
			said = nil
			for len(script) >= 3 {
				size := min(int(script[2]), len(script)-3)
				said = wire.AppendFrame(said, wire.Type(script[0]%13), uint32(script[1]%6), script[3:3+size])
				script = script[3+size:]
			}
		}
		client, p := connect(t, hostileSetup)
		go io.Copy(io.Discard, p.Conn)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		done := make(chan struct{})
		tasks := []func(){
			func() {
				if process, err := client.Start(ctx, sandbox.Command{Argv: []string{"x"}, Stdin: true}); err == nil {
					go process.Stdin().Write(make([]byte, 1<<20))
					go io.Copy(io.Discard, process.Stderr())
					io.Copy(io.Discard, process.Stdout())
					process.Wait(ctx)
				}
			},
			func() { client.ReadFile(ctx, "/w/f", 0, 1000) },
			func() { client.WriteFile(ctx, "/w/f", make([]byte, 1<<20), sandbox.WriteOptions{}) },
			func() { client.List(ctx, "/w", sandbox.ListOptions{Limit: 100}) },
			func() { client.Stats(ctx) },
			func() { client.Ports(ctx) },
			func() {
				if conn, err := client.Connect(ctx, 3000); err == nil {
					go conn.Write(make([]byte, 1<<20))
					io.Copy(io.Discard, conn)
					conn.Close()
				}
			},
		}
		for _, task := range tasks {
			go func() { task(); done <- struct{}{} }()
		}
		p.Write(said)
		p.Close()
		for range tasks {
			<-done
		}
		if ctx.Err() != nil {
			t.Error("something hung")
		}
		if client.Err() == nil {
			t.Error("the client did not notice the end")
		}
	})
}

// An answer and the end of the connection at the same time are one end of a request, not two.
func TestAnsweredAndClosedAtOnce(t *testing.T) {
	for range 300 {
		client, p := connect(t, hostileSetup)
		go io.Copy(io.Discard, p.Conn)
		go p.Write(wire.AppendFrame(nil, wire.Response, 1))
		client.Mkdir(t.Context(), "/w/x")
		closed := make(chan struct{})
		go func() { client.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(patience):
			t.Fatal("closing hangs")
		}
	}
}
