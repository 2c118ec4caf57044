package inside

import (
	"context"
	"strings"
	"sync"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// dataStep is how much of a file is received before credit is given for more.
const dataStep = wire.Window / 4

// firstData is how much of a file goes with the request to write it.
const firstData = 512 << 10

// call is a file operation.
type call struct {
	client *Client
	id     uint32
	limit  int64  // bytes of a file that were asked for
	given  int    // of them, since the last credit
	credit int    // that the other side has
	data   []byte // of a file, as far as it came
	stdin  *input // nil if the request was complete

	once   sync.Once
	answer []byte
	err    error
	ended  chan struct{} // closed with answer or err
}

func (c *call) receive(h wire.Header, r *wire.Reader) (final bool, err error) {
	if h.Type == wire.Stdout {
		return false, c.receiveData(h, r)
	}
	payload, err := r.Payload()
	if err != nil {
		return false, err
	}
	switch h.Type {
	case wire.Credit:
		of, n, err := wire.DecodeCredit(payload)
		if err == nil && (of != wire.Stdin || c.stdin == nil || !c.stdin.allowed.Allow(n)) {
			err = wire.Violation("credit that was not due")
		}
		return false, err
	case wire.Response:
		c.finish(append([]byte(nil), payload...), nil)
		return true, nil
	case wire.Error:
		failure, broken := wire.DecodeError(payload)
		if broken != nil {
			return false, broken
		}
		c.finish(nil, failure)
		return true, nil
	}
	return false, wire.Violation("a frame that does not belong to a file operation")
}

// receiveData takes a part of a file. Never more than was asked for is kept.
func (c *call) receiveData(h wire.Header, r *wire.Reader) error {
	if h.Size == 0 || h.Size > c.credit || int64(h.Size) > c.limit-int64(len(c.data)) {
		return wire.Violation("more was sent than was asked for")
	}
	at := len(c.data)
	if need := at + h.Size; need > cap(c.data) {
		larger := make([]byte, at, int(min(c.limit, int64(max(need, 2*cap(c.data))))))
		copy(larger, c.data)
		c.data = larger
	}
	c.data = c.data[:at+h.Size]
	if err := r.ReadFull(c.data[at:]); err != nil {
		return err
	}
	c.credit -= h.Size
	if c.given += h.Size; c.given >= dataStep {
		n := c.given
		c.given, c.credit = 0, c.credit+n
		// Not here: the receiver must never wait for the other side to read.
		go c.client.sender.send(context.Background(), wire.Credit, c.id, wire.EncodeCredit(wire.Stdout, n)) // it ends the connection
	}
	return nil
}

func (c *call) lost(err error) {
	c.finish(nil, err)
	c.answered()
}

func (c *call) finish(answer []byte, err error) {
	c.once.Do(func() {
		c.answer, c.err = answer, err
		if c.stdin != nil {
			_ = c.stdin.allowed.Close(errAnswered) // whoever was first
		}
		close(c.ended)
	})
}

func (c *call) numbered(id uint32) { c.id = id }

func (c *call) answered() { <-c.client.calls }

var errAnswered = sandbox.Errorf(sandbox.CodeFailed, "it was answered already")

// do carries out a file operation. more is what follows the request.
func (c *Client) do(ctx context.Context, request *wire.Call, more []byte) (*call, error) {
	for _, path := range []string{request.Path, request.Target} {
		if len(path) > wire.MaxPath || strings.IndexByte(path, 0) >= 0 {
			return nil, sandbox.Errorf(sandbox.CodeNotFound, "no file has such a name")
		}
	}
	select {
	case c.calls <- struct{}{}:
	case <-c.done:
		return nil, c.Err()
	case <-ctx.Done():
		return nil, canceled(ctx)
	}
	running := &call{client: c, credit: wire.Window, ended: make(chan struct{})}
	if request.Op == wire.OpRead {
		running.limit = request.Limit
	}
	if len(more) > 0 {
		running.stdin = newInput(c, &running.id)
	}
	if sent, err := c.request(ctx, running, request.Encode()); err != nil {
		if !sent { // otherwise it was told of the end, and has left
			<-c.calls
		}
		return nil, err
	}
	if len(more) > 0 {
		go running.pour(more)
	}
	select {
	case <-running.ended:
		return running, running.err
	case <-ctx.Done():
		go c.giveUp(running.ended, stallTime)
		if running.stdin != nil {
			_ = running.stdin.allowed.Close(errAnswered) // the caller may change the data from now on
			running.stdin.writing.Lock()
			defer running.stdin.writing.Unlock()
		}
		_ = c.sender.send(context.WithoutCancel(ctx), wire.Signal, running.id, []byte{0}) // it ends the connection
		return nil, canceled(ctx)
	}
}

// pour sends the rest of a file.
func (c *call) pour(data []byte) {
	if _, err := c.stdin.Write(data); err == nil {
		_ = c.stdin.Close() // it ends the connection
	}
}

// Stat says what a path leads to.
func (c *Client) Stat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return c.info(ctx, &wire.Call{Op: wire.OpStat, Path: path, Follow: true}, nil)
}

// Lstat says what a path is.
func (c *Client) Lstat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return c.info(ctx, &wire.Call{Op: wire.OpStat, Path: path}, nil)
}

// ReadFile reads a part of a regular file.
func (c *Client) ReadFile(ctx context.Context, path string, offset, limit int64) ([]byte, sandbox.FileInfo, error) {
	if offset < 0 || limit < 0 {
		return nil, sandbox.FileInfo{}, sandbox.Errorf(sandbox.CodeFailed, "a part of a file begins and ends in it")
	}
	done, err := c.do(ctx, &wire.Call{Op: wire.OpRead, Path: path, Offset: offset, Limit: limit}, nil)
	if err != nil {
		return nil, sandbox.FileInfo{}, err
	}
	info, rest, err := c.described(done.answer)
	if err == nil && int64(len(rest)) > limit-int64(len(done.data)) {
		err = wire.Violation("more was sent than was asked for")
	}
	if err != nil {
		return nil, sandbox.FileInfo{}, c.broken(err)
	}
	if len(done.data) == 0 {
		return rest, info, nil
	}
	return append(done.data, rest...), info, nil
}

// WriteFile makes data the content of a file.
func (c *Client) WriteFile(ctx context.Context, path string, data []byte, options sandbox.WriteOptions) (sandbox.FileInfo, error) {
	first := data[:min(len(data), firstData)]
	more := data[len(first):]
	request := &wire.Call{Op: wire.OpWrite, Path: path, Options: options, Data: first, More: len(more) > 0}
	return c.info(ctx, request, more)
}

// Mkdir creates a directory and its missing parents.
func (c *Client) Mkdir(ctx context.Context, path string) error {
	return c.nothing(ctx, &wire.Call{Op: wire.OpMkdir, Path: path})
}

// Remove removes what stands at a path.
func (c *Client) Remove(ctx context.Context, path string, options sandbox.RemoveOptions) error {
	return c.nothing(ctx, &wire.Call{Op: wire.OpRemove, Path: path, Remove: options})
}

// Rename moves a file to a name that does not exist.
func (c *Client) Rename(ctx context.Context, from, to string) error {
	return c.nothing(ctx, &wire.Call{Op: wire.OpRename, Path: from, Target: to})
}

// List returns entries of a directory in order of names, and never more than 10,000.
func (c *Client) List(ctx context.Context, path string, options sandbox.ListOptions) ([]sandbox.Entry, bool, error) {
	limit := max(0, min(options.Limit, wire.MaxEntries))
	done, err := c.do(ctx, &wire.Call{Op: wire.OpList, Path: path, Limit: int64(limit), Exact: options.Exact}, nil)
	if err != nil {
		return nil, false, err
	}
	entries, more, err := wire.DecodeEntries(done.answer, limit)
	if err != nil {
		return nil, false, c.broken(err)
	}
	return entries, more, nil
}

// Stats is what the program inside can tell of the sandbox: what it cannot is 0.
func (c *Client) Stats(ctx context.Context) (sandbox.Stats, error) {
	done, err := c.do(ctx, &wire.Call{Op: wire.OpStats}, nil)
	if err != nil {
		return sandbox.Stats{}, err
	}
	stats, err := wire.DecodeStats(done.answer)
	if err != nil {
		return sandbox.Stats{}, c.broken(err)
	}
	return stats, nil
}

func (c *Client) info(ctx context.Context, request *wire.Call, more []byte) (sandbox.FileInfo, error) {
	done, err := c.do(ctx, request, more)
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	info, rest, err := c.described(done.answer)
	if err == nil && len(rest) > 0 {
		err = wire.Violation("an answer that is too long")
	}
	if err != nil {
		return sandbox.FileInfo{}, c.broken(err)
	}
	return info, nil
}

// described decodes what was said of a file, which must lie where files can be.
func (c *Client) described(answer []byte) (sandbox.FileInfo, []byte, error) {
	info, rest, err := wire.DecodeInfo(answer)
	if err == nil && !c.setup.reaches(info.Path) {
		err = wire.Violation("a file outside all mounts")
	}
	return info, rest, err
}

func (c *Client) nothing(ctx context.Context, request *wire.Call) error {
	done, err := c.do(ctx, request, nil)
	if err == nil && len(done.answer) > 0 {
		err = c.broken(wire.Violation("an answer that is too long"))
	}
	return err
}

// broken ends the connection to a peer that breaks the protocol.
func (c *Client) broken(err error) error {
	c.fail(err)
	return c.Err()
}
