package socket

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/toolward/toolward"
)

// Handler is what a listening program does with frames that were authenticated. A nil function refuses.
type Handler struct {
	// Command answers a request frame with one of the three decision words; anything else is sent as a denial.
	Command func(ctx context.Context, id string, c *CommandRequest) (decision string)
	// Call answers an approval frame; reason goes with a denial.
	Call func(ctx context.Context, id string, c *CallRequest) (decision, reason string)
	// Exec runs a command. It must decide by its own policy whether it may: the frame only says that somebody who
	// knows the secret wants it. A refusal is returned as a *Refusal.
	Exec func(ctx context.Context, id string, e *ExecRequest) (*ExecResult, error)
}

// Server answers frames at a local socket. The zero value is not usable: see [NewServer].
type Server struct {
	guard   *guard
	handler Handler
	log     *slog.Logger
	places  chan struct{}

	patience time.Duration // for the line of a frame, and for the answer to be taken

	ctx  context.Context // ends with the server
	stop context.CancelFunc
	mu   sync.Mutex // held while a connection joins all, and while the server stops: none joins when nobody waits any more
	all  sync.WaitGroup
}

// NewServer makes a server for a secret. An empty secret lets nothing in.
func NewServer(token string, h Handler, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{guard: newGuard(token), handler: h, log: log, places: make(chan struct{}, backlog), patience: readPatience}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Serve answers until Close, then returns nil. It closes the listener.
func (s *Server) Serve(l *net.UnixListener) error {
	end := context.AfterFunc(s.ctx, func() { _ = l.Close() })
	defer end()
	defer l.Close()
	for {
		select { // who comes when all places are taken waits in the kernel's queue
		case s.places <- struct{}{}:
		case <-s.ctx.Done():
			return nil
		}
		conn, err := l.AcceptUnix()
		if err != nil {
			<-s.places
			if s.ctx.Err() != nil {
				return nil
			}
			return err
		}
		if !s.begin() {
			_ = conn.Close()
			<-s.places
			return nil
		}
		go func() {
			defer func() { <-s.places; s.all.Done() }()
			s.serve(conn)
		}()
	}
}

// begin counts a connection in; false if the server has stopped.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.all.Add(1)
	return true
}

// Close ends all connections and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.all.Wait()
}

// serve answers the one frame of a connection.
func (s *Server) serve(conn *net.UnixConn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ours := false
	if uid, err := peerUID(conn); err == nil {
		ours = uid == os.Geteuid()
	}
	if err := conn.SetReadDeadline(time.Now().Add(s.patience)); err != nil {
		return
	}
	reader := bufio.NewReaderSize(conn, 4096)
	line, err := readLine(reader)
	if err != nil {
		s.log.Debug("a connection at the approval socket sent no frame", "err", err)
		return
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	go func() { // nobody waits for the answer of a question whose asker has gone
		_, _ = reader.ReadByte()
		cancel()
	}()
	answer, ok := s.answer(ctx, line, ours, time.Now())
	if !ok || ctx.Err() != nil {
		return
	}
	raw, err := encodeLine(answer)
	if result, ran := answer.(execAnswer); err != nil && ran {
		raw, err = encodeLine(execAnswer{Type: typeResult, ID: result.ID, Error: &Refusal{"UNAVAILABLE", "the result is too long", "output"}})
	}
	if err == nil && conn.SetWriteDeadline(time.Now().Add(s.patience)) == nil {
		_, _ = conn.Write(raw)
	}
}

// answer is what a line gets; false for none.
func (s *Server) answer(ctx context.Context, line []byte, ours bool, now time.Time) (answer any, ok bool) {
	v := s.guard.examine(line, ours, now)
	switch {
	case v.closed:
		return nil, false
	case v.answer != nil:
		return v.answer, true
	}
	f := v.frame
	switch f.kind {
	case typeExec:
		return s.run(ctx, f.id, v.exec), true
	case typeApproval:
		decision, reason := "", ""
		if s.handler.Call != nil {
			decision, reason = s.handler.Call(ctx, f.id, v.call)
		}
		return decided(f.id, decision, reason), true
	default:
		decision := ""
		if s.handler.Command != nil {
			decision = s.handler.Command(ctx, f.id, &f.command)
		}
		return decided(f.id, decision, ""), true
	}
}

// run carries an exec frame out.
func (s *Server) run(ctx context.Context, id string, e *ExecRequest) execAnswer {
	if s.handler.Exec == nil {
		return execAnswer{Type: typeResult, ID: id, Error: &Refusal{"UNAVAILABLE", "this program runs no commands", "unavailable"}}
	}
	result, err := s.handler.Exec(ctx, id, e)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
	case err != nil || result == nil:
		s.log.Warn("a command of the approval socket failed", "id", id, "err", err)
		refusal = &Refusal{"UNAVAILABLE", "the command could not be run", "internal"}
	default:
		return execAnswer{Type: typeResult, ID: id, OK: true, Payload: result}
	}
	return execAnswer{Type: typeResult, ID: id, Error: refusal}
}

// decided is the answer with a decision. A word that is none denies.
func decided(id, word, reason string) decisionAnswer {
	d, err := toolward.ParseDecision(word)
	if err != nil {
		return decisionAnswer{Type: typeDecision, ID: id, Decision: toolward.DenyCall.String()}
	}
	if d != toolward.DenyCall {
		reason = ""
	}
	return decisionAnswer{Type: typeDecision, ID: id, Decision: d.String(), Reason: reason}
}

// view is what becomes of a line: nothing, an answer at once, or a question for the handler.
type view struct {
	closed bool
	answer any
	frame  *frame
	call   *CallRequest
	exec   *ExecRequest
}

// examine authenticates a line. A line of another user gets a denial whatever it says, with its id, so that its sender
// takes it for the answer.
func (g *guard) examine(line []byte, ours bool, now time.Time) view {
	if !ours {
		return view{answer: decisionAnswer{Type: typeDecision, ID: idOf(line), Decision: toolward.DenyCall.String()}}
	}
	f, err := readFrame(line)
	if err != nil {
		return view{closed: true}
	}
	if f.kind == typeRequest {
		if !g.knows(f.token) {
			return view{answer: decisionAnswer{Type: typeDecision, ID: f.id, Decision: toolward.DenyCall.String()}}
		}
		return view{frame: f}
	}
	v := view{frame: f}
	refusal := g.check(f, now)
	if refusal == nil {
		if f.kind == typeExec {
			v.exec, err = execOf(f.payload)
		} else {
			v.call, err = callOf(f.payload)
		}
		errors.As(err, &refusal)
	}
	switch {
	case refusal == nil:
		return v
	case f.kind == typeExec:
		return view{answer: execAnswer{Type: typeResult, ID: f.id, Error: refusal}}
	default:
		no := false
		return view{answer: decisionAnswer{typeDecision, f.id, toolward.DenyCall.String(), refusal.Reason, &no, refusal}}
	}
}

// readLine reads one line of at most maxLine bytes, without its end. A line without an end is none.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine+1 {
			return nil, errors.New("the line is too long")
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
