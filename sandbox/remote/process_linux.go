package remote

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/toolward/toolward/sandbox"
)

var _ sandbox.Process = (*process)(nil)

// process is a command that the server has started.
type process struct {
	session *session
	number  uint64
	pid     int
	stdin   *os.File // nil: it has none
	stdout  *output
	stderr  *output

	ended  chan struct{}
	status sandbox.ExitStatus
	err    error
}

func (h *handle) Start(ctx context.Context, command sandbox.Command) (sandbox.Process, error) {
	s, files, conn, err := open[started](ctx, h.session, callStart, starting{h.box, command})
	if err != nil {
		return nil, err
	}
	want := 2
	if s.Stdin {
		want = 3
	}
	if len(files) != want {
		closeAll(files)
		_ = conn.Close() // the server ends it
		return nil, sandbox.Errorf(sandbox.CodeFailed, "a command was started with %d descriptors instead of %d", len(files), want)
	}
	p := &process{session: h.session, number: s.Process, pid: s.PID, stdout: &output{files[0]}, stderr: &output{files[1]}, ended: make(chan struct{})}
	if s.Stdin {
		p.stdin = files[2]
	}
	go p.watch(ctx, conn)
	return p, nil
}

// watch waits for the end of the command. When the context ends it says nothing more, and the server ends the command and says how it
// has ended.
func (p *process) watch(ctx context.Context, conn *net.UnixConn) {
	defer close(p.ended)
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = conn.CloseWrite() // a connection that is gone has ended the command already
		_ = conn.SetReadDeadline(time.Now().Add(closePatience))
	})
	defer stop()
	var files []*os.File
	p.status, files, p.err = answer[sandbox.ExitStatus](conn)
	closeAll(files)
	if p.err != nil {
		p.err = unreachable(ctx, p.err)
	}
	if p.stdin != nil {
		_ = p.stdin.Close() // nobody reads it
	}
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
	_, err := ask[nothing](context.Background(), p.session, callResize, resizing{p.number, size})
	return err
}

func (p *process) Signal(signal syscall.Signal) error {
	_, err := ask[nothing](context.Background(), p.session, callSignal, signaling{p.number, signal})
	return err
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

// output closes its file at its end: commands are many, and descriptors are few.
type output struct{ file *os.File }

func (o *output) Read(b []byte) (int, error) {
	n, err := o.file.Read(b)
	if err != nil && n == 0 {
		_ = o.file.Close() // nothing was written to it
		err = io.EOF       // what was not read has been lost with the command; how it ended, Wait says
	}
	return n, err
}
