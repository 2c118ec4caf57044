package inside

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// Start starts a command. Programs of an understood command are looked up inside; one that is not there or cannot be
// executed is no error but status 127 or 126, as in a shell.
func (c *Client) Start(ctx context.Context, command sandbox.Command) (sandbox.Process, error) {
	if err := check(&command); err != nil {
		return nil, err
	}
	request := wire.EncodeCommand(&command)
	if len(request) > wire.MaxPayload {
		return nil, sandbox.Errorf(sandbox.CodeTooLarge, "the command is larger than %d bytes", wire.MaxPayload)
	}
	if ctx.Err() != nil {
		return nil, canceled(ctx)
	}
	if !c.enter() {
		if err := c.Err(); err != nil {
			return nil, err
		}
		return nil, &sandbox.Error{
			Code: sandbox.CodeFailed, Text: fmt.Sprintf("%d commands are running in this sandbox already", maxCommands), Fix: "end one",
		}
	}
	p := newProcess(c, &command)
	if sent, err := c.request(ctx, p, request); err != nil {
		if !sent { // otherwise it was told of the end, and has left
			c.leave()
		}
		return nil, err
	}
	p.watch(ctx)
	select {
	case <-p.started:
		return p.answer()
	case <-ctx.Done():
		drop(p.stdout)
		drop(p.stderr)
		return nil, canceled(ctx)
	}
}

// drop forgets what comes from now on, so that the other side can go on.
func drop(output *wire.Inbox) {
	go output.WriteTo(io.Discard) // it ends with the stream
}

// enter takes a place for a command.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.commands >= maxCommands {
		return false
	}
	c.commands++
	return true
}

func (c *Client) leave() {
	c.mu.Lock()
	c.commands--
	c.mu.Unlock()
}

// check refuses what the program inside would.
func check(c *sandbox.Command) error {
	kinds := 0
	for _, given := range []bool{len(c.Argv) > 0, len(c.Segments) > 0, c.Shell != ""} {
		if given {
			kinds++
		}
	}
	if kinds != 1 {
		return sandbox.Errorf(sandbox.CodeFailed, "a command is exactly one of a program, understood programs and a shell text")
	}
	texts := append(append([]string{c.Shell, c.Dir}, c.Argv...), c.Env...)
	for i := range c.Segments {
		texts = append(append(texts, c.Segments[i].Argv...), c.Segments[i].Env...)
		for _, r := range c.Segments[i].Redirects {
			if r.FD < 0 || r.FD > 2 || r.From < 0 || r.From > 2 {
				return sandbox.Errorf(sandbox.CodeFailed, "only the three standard streams can be redirected")
			}
			texts = append(texts, r.Path)
		}
	}
	for _, text := range texts {
		if strings.IndexByte(text, 0) >= 0 {
			return sandbox.Errorf(sandbox.CodeFailed, "the command contains a NUL character")
		}
	}
	return nil
}

// process is a started command.
type process struct {
	client   *Client
	id       uint32
	terminal bool
	stdout   *wire.Inbox
	stderr   *wire.Inbox
	stdin    *input // nil without
	kills    int64  // for lack of memory, before it started

	mu      sync.Mutex
	unwatch func() bool // lets go of the context

	started chan struct{} // closed with pid and warning, or refusal
	running bool          // started; only the receiver looks
	pid     int
	warning string
	refusal error

	ended  chan struct{} // closed with status and err
	once   sync.Once     // for ended
	status sandbox.ExitStatus
	err    error
}

func newProcess(c *Client, command *sandbox.Command) *process {
	p := &process{
		client: c, terminal: command.Terminal != nil,
		started: make(chan struct{}), ended: make(chan struct{}),
	}
	p.stdout = wire.NewInbox(func(n int) { p.grant(wire.Stdout, n) })
	p.stderr = wire.NewInbox(func(n int) { p.grant(wire.Stderr, n) })
	if command.Stdin || p.terminal {
		p.stdin = newInput(c, &p.id)
	}
	if c.setup.OOMKills != nil {
		p.kills = c.setup.OOMKills()
	}
	return p
}

func (p *process) grant(of wire.Type, n int) {
	_ = p.client.sender.send(context.Background(), wire.Credit, p.id, wire.EncodeCredit(of, n)) // it ends the connection
}

func (p *process) receive(h wire.Header, r *wire.Reader) (final bool, err error) {
	if !p.running && h.Type != wire.Response && h.Type != wire.Error {
		return false, wire.Violation("a command that has not started says something")
	}
	switch h.Type {
	case wire.Stdout:
		return false, p.stdout.Receive(r, h.Size)
	case wire.Stderr:
		return false, p.stderr.Receive(r, h.Size)
	}
	payload, err := r.Payload()
	if err != nil {
		return false, err
	}
	switch h.Type {
	case wire.Response:
		return false, p.begin(payload)
	case wire.Credit:
		of, n, err := wire.DecodeCredit(payload)
		if err == nil && (of != wire.Stdin || p.stdin == nil || !p.stdin.allowed.Allow(n)) {
			err = wire.Violation("credit that was not due")
		}
		return false, err
	case wire.Exit:
		status, err := wire.DecodeExit(payload)
		if err != nil {
			return false, err
		}
		p.finish(p.complete(status), nil)
		return true, nil
	case wire.Error:
		failure, broken := wire.DecodeError(payload)
		if broken != nil {
			return false, broken
		}
		p.finish(sandbox.ExitStatus{}, failure)
		return true, nil
	}
	return false, wire.Violation("a frame that does not belong to a command")
}

func (p *process) begin(payload []byte) error {
	if p.running {
		return wire.Violation("a command started twice")
	}
	started, err := wire.DecodeStarted(payload)
	if err != nil {
		return err
	}
	p.running, p.pid, p.warning = true, int(started.PID), started.Warning
	close(p.started)
	return nil
}

// complete adds what is known on this side.
func (p *process) complete(status sandbox.ExitStatus) sandbox.ExitStatus {
	status.Warning = p.warning
	if count := p.client.setup.OOMKills; count != nil {
		failed := status.Signal == syscall.SIGKILL || status.Code == 128+int(syscall.SIGKILL)
		status.OOM = failed && count() > p.kills
	}
	return status
}

func (p *process) lost(err error) {
	p.finish(sandbox.ExitStatus{}, err)
	p.answered()
}

func (p *process) finish(status sandbox.ExitStatus, err error) {
	p.once.Do(func() {
		p.status, p.err = status, err
		end := io.EOF
		if err != nil {
			end = err
		}
		p.stdout.Close(end)
		p.stderr.Close(end)
		if p.stdin != nil {
			_ = p.stdin.allowed.Close(os.ErrClosed) // whoever was first
		}
		close(p.ended)
		if !isClosed(p.started) { // only the receiver closes it, and it is the receiver or gone
			p.refusal = err
			close(p.started)
		}
	})
}

func (p *process) answered() {
	p.client.leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unwatch != nil {
		p.unwatch()
	}
}

func (p *process) numbered(id uint32) { p.id = id }

// watch makes the end of the context that of the command, whatever the caller is doing.
func (p *process) watch(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isClosed(p.ended) {
		p.unwatch = context.AfterFunc(ctx, p.stop)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// answer is what Start returns.
func (p *process) answer() (sandbox.Process, error) {
	if p.refusal != nil {
		return nil, p.refusal
	}
	return p, nil
}

// stop ends the command; if the program inside does not do it, the connection.
func (p *process) stop() {
	select {
	case <-p.ended:
		return
	default:
	}
	go p.client.giveUp(p.ended, stopTime+stallTime)
	_ = p.client.sender.send(context.Background(), wire.Signal, p.id, []byte{0}) // it ends the connection
}

func (p *process) PID() int          { return p.pid }
func (p *process) Stdout() io.Reader { return p.stdout }
func (p *process) Stderr() io.Reader { return p.stderr }

func (p *process) Stdin() io.WriteCloser {
	if p.stdin == nil {
		return nil
	}
	return p.stdin
}

func (p *process) Resize(size sandbox.Size) error {
	if !p.terminal {
		return sandbox.Errorf(sandbox.CodeFailed, "the command has no terminal")
	}
	var e wire.Encoder
	e.Uint16(size.Cols)
	e.Uint16(size.Rows)
	return p.tell(wire.Resize, e)
}

func (p *process) Signal(signal syscall.Signal) error {
	if signal < 1 || signal > 64 {
		return sandbox.Errorf(sandbox.CodeFailed, "there is no signal %d", int(signal))
	}
	return p.tell(wire.Signal, []byte{byte(signal)})
}

// tell sends something to a running command. One that has ended needs nothing any more.
func (p *process) tell(t wire.Type, payload []byte) error {
	if isClosed(p.ended) {
		return os.ErrProcessDone
	}
	return p.client.sender.send(context.Background(), t, p.id, payload)
}

func (p *process) Wait(ctx context.Context) (sandbox.ExitStatus, error) {
	select {
	case <-p.ended:
		return p.status, p.err
	default:
	}
	select {
	case <-p.ended:
		return p.status, p.err
	case <-ctx.Done():
		return sandbox.ExitStatus{}, canceled(ctx)
	}
}

// input sends bytes as far as the other side has given credit.
type input struct {
	client  *Client
	id      *uint32
	allowed *wire.Allowance
	writing sync.Mutex
}

func newInput(c *Client, id *uint32) *input {
	return &input{client: c, id: id, allowed: wire.NewAllowance()}
}

// inputStep is how much is sent at once.
const inputStep = 64 << 10

// Write writes all of p, which may wait for the command to read.
func (in *input) Write(p []byte) (written int, err error) {
	in.writing.Lock()
	defer in.writing.Unlock()
	for written < len(p) {
		n, err := in.allowed.Take(min(len(p)-written, inputStep))
		if err != nil {
			return written, err
		}
		if err := in.client.sender.send(context.Background(), wire.Stdin, *in.id, p[written:written+n]); err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// Close tells the command that there is no more input.
func (in *input) Close() error {
	if in.allowed.Close(os.ErrClosed) != nil {
		return nil
	}
	in.writing.Lock() // what is being written comes before
	defer in.writing.Unlock()
	return in.client.sender.send(context.Background(), wire.EOF, *in.id)
}
