//go:build linux

// Package serve is the program inside a sandbox: it runs commands and does file operations for the gateway.
//
// It has the rights of what it confines, no more, and guards nothing against the sandbox's own shell. What it promises
// is to be exact: a file operation reaches what its path leads to inside the mounts and nothing else, a command that is
// told to end does so with its processes, and whoever reads slowly is waited for without holding up anybody else.
package serve

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
	"github.com/toolward/toolward/sandbox/task"
)

// server is one connection of the gateway.
type server struct {
	in    *wire.Reader
	peer  *os.File // the same, to ask who it is
	out   output
	hello *wire.Hello
	env   environment
	files *files
	null  int // nothing to read, and everything can be written
	kids  *children
	oom   *oomCounter
	door  *door // nil: the sandbox ends with this gateway

	mu      sync.Mutex
	streams map[uint32]*stream
	last    uint32
}

// stream is one request that is not answered yet.
type stream struct {
	server *server
	id     uint32
	input  *wire.Inbox // what the gateway sends; nil if it must not
	ended  bool        // no more of it; only the receiver looks
	stdout *wire.Allowance
	stderr *wire.Allowance

	mu      sync.Mutex
	command running // nil until it runs
	stopped bool    // the gateway does not want it any more
}

// running is a command that can be told something.
type running interface {
	signal(number int)
	resize(cols, rows uint16)
	stop()
}

// run serves the gateway until it hangs up or breaks the protocol.
func (s *server) run() error {
	if err := s.greet(); err != nil {
		return err
	}
	for {
		h, err := s.in.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := s.receive(h); err != nil {
			return err
		}
	}
}

func (s *server) greet() error {
	h, err := s.in.Next()
	if err != nil {
		return err
	}
	payload, err := s.in.Payload()
	if err != nil {
		return err
	}
	if h.Type != wire.Request || h.Stream != 0 {
		return wire.Violation("the first frame is no greeting")
	}
	if s.hello, err = wire.DecodeHello(payload); err != nil {
		return err
	}
	welcome := wire.Welcome{Version: wire.Version, Nonce: s.hello.Nonce}
	if s.hello.Version == wire.Version {
		if err := s.setUp(); err != nil {
			return s.out.send(wire.Error, 0, wire.EncodeError(err))
		}
		if err := s.lasting(); err != nil {
			return err
		}
	}
	return s.out.send(wire.Response, 0, welcome.Encode())
}

// lasting prepares for the end of the gateway, if it wants the sandbox to go on.
func (s *server) lasting() error {
	if s.door == nil {
		if s.hello.Detach.Alone != 0 {
			return wire.Violation("there is no door for another gateway")
		}
		return nil
	}
	raw, err := s.peer.SyscallConn()
	if err != nil {
		return err
	}
	var gateway *unix.Ucred
	if broken := raw.Control(func(fd uintptr) { gateway, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); broken != nil {
		return broken
	}
	if err != nil {
		return err
	}
	return s.door.greeted(s.hello, gateway.Uid)
}

// receive takes one frame. It never waits for anything but the rest of the frame.
func (s *server) receive(h wire.Header) error {
	if h.Type == wire.Request {
		return s.request(h)
	}
	if h.Stream == 0 || h.Stream > s.last {
		return wire.Violation("a frame for no request")
	}
	s.mu.Lock()
	stream := s.streams[h.Stream]
	s.mu.Unlock()
	if stream == nil { // it was answered while this was on its way
		return nil
	}
	if h.Type == wire.Stdin {
		if stream.input == nil || stream.ended {
			return wire.Violation("input that nobody wants")
		}
		return stream.input.Receive(s.in, h.Size)
	}
	payload, err := s.in.Payload()
	if err != nil {
		return err
	}
	return stream.told(h.Type, payload)
}

func (s *server) request(h wire.Header) error {
	if h.Stream <= s.last {
		return wire.Violation("the number of a request was used before")
	}
	s.last = h.Stream
	payload, err := s.in.Payload()
	if err != nil {
		return err
	}
	command, call, err := wire.DecodeRequest(payload)
	if err != nil {
		return err
	}
	if call != nil && len(call.Data) > 0 {
		call.Data = append([]byte(nil), call.Data...)
	}
	st := &stream{server: s, id: h.Stream, stdout: wire.NewAllowance()}
	if command != nil {
		st.stderr = wire.NewAllowance()
	}
	if command != nil && (command.Stdin || command.Terminal != nil) || call != nil && (call.More || call.Op == wire.OpConnect) {
		st.input = wire.NewInbox(func(n int) { _ = s.out.send(wire.Credit, st.id, wire.EncodeCredit(wire.Stdin, n)) }) // the receiver notices
	}
	s.mu.Lock()
	full := len(s.streams) >= wire.MaxStreams
	if !full {
		s.streams[st.id] = st
	}
	s.mu.Unlock()
	if full {
		return wire.Violation("too many requests at the same time")
	}
	go st.serve(command, call)
	return nil
}

// serve carries out a request and answers it.
func (st *stream) serve(command *task.Command, call *wire.Call) {
	var t wire.Type
	var answer []byte
	switch {
	case command != nil:
		t, answer = st.run(command)
	case call.Op == wire.OpConnect:
		t, answer = st.connect(call.Port)
	default:
		t, answer = st.operate(call)
	}
	s := st.server
	s.mu.Lock()
	delete(s.streams, st.id)
	s.mu.Unlock()
	if st.input != nil {
		st.input.Close(io.EOF)
	}
	_ = s.out.send(t, st.id, answer) // the receiver notices
}

// told takes a frame about a request that is being carried out.
func (st *stream) told(t wire.Type, payload []byte) error {
	d := wire.NewDecoder(payload)
	switch t {
	case wire.EOF:
		if st.input == nil || st.ended {
			return wire.Violation("the end of no input")
		}
		st.ended = true
		st.input.Close(io.EOF)
		return d.End()
	case wire.Credit:
		of, n, err := wire.DecodeCredit(payload)
		allowance := st.stdout
		if of == wire.Stderr {
			allowance = st.stderr
		}
		if err == nil && (of == wire.Stdin || allowance == nil || !allowance.Allow(n)) {
			err = wire.Violation("credit that was not due")
		}
		return err
	case wire.Signal:
		number := int(d.Byte())
		if number > 64 {
			d.Refuse()
		}
		if err := d.End(); err != nil {
			return err
		}
		if number == 0 {
			st.stop()
		} else if command := st.commandNow(); command != nil {
			go command.signal(number)
		}
		return nil
	case wire.Resize:
		cols, rows := d.Uint16(), d.Uint16()
		if command := st.commandNow(); command != nil {
			command.resize(cols, rows)
		}
		return d.End()
	}
	return wire.Violation("a frame that the gateway does not send")
}

// stop ends what the gateway does not want any more.
func (st *stream) stop() {
	st.mu.Lock()
	st.stopped = true
	command := st.command
	st.mu.Unlock()
	if command != nil {
		go command.stop()
		return
	}
	_ = st.stdout.Close(errStopped) // whoever was first
	if st.input != nil {
		st.input.Close(errStopped)
	}
}

var errStopped = task.Errorf(task.CodeTimeout, "the gateway gave it up")

func (st *stream) commandNow() running {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.command
}

// runs makes a started command known. One that was stopped meanwhile is stopped now.
func (st *stream) runs(command running) {
	st.mu.Lock()
	st.command = command
	stopped := st.stopped
	st.mu.Unlock()
	if stopped {
		go command.stop()
	}
}

// gone reports whether the gateway has given the request up.
func (st *stream) gone() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.stopped
}

// stopAll ends all commands, politely at first. false: some have not ended in time.
func (s *server) stopAll(bound time.Duration) bool {
	const step = 20 * time.Millisecond
	for waited := time.Duration(0); waited < bound; waited += step {
		s.mu.Lock()
		left := len(s.streams)
		for _, st := range s.streams {
			if !st.gone() {
				st.stop()
			}
		}
		s.mu.Unlock()
		if left == 0 {
			return true
		}
		time.Sleep(step)
	}
	return false
}
