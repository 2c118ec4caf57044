package remote

import (
	"context"
	"net"
	"time"

	"github.com/toolward/toolward/sandbox"
)

var _ sandbox.Handle = (*handle)(nil)

// handle is a sandbox of the server's, in one session.
type handle struct {
	session *session
	box     uint64
	state   sandbox.State
	ended   chan struct{}
}

func newHandle(s *session, m made) *handle {
	h := &handle{session: s, box: m.Box, state: m.State, ended: make(chan struct{})}
	go h.watch()
	return h
}

// watch waits for the end of the sandbox; that of the server is one, too.
func (h *handle) watch() {
	defer close(h.ended)
	_, _ = ask[nothing](context.Background(), h.session, callDone, ofBox{h.box}) // an error: there is no server any more
}

func (h *handle) Done() <-chan struct{} { return h.ended }

func (h *handle) Runs() bool { return !isClosed(h.ended) && !isClosed(h.session.gone) }

func (h *handle) State() sandbox.State {
	state := h.state
	state.Running = h.Runs()
	return state
}

// closePatience bounds how long the end of a sandbox may take; more than that means that the server hangs.
const closePatience = 60 * time.Second

func (h *handle) Close() error {
	if !h.Runs() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	_, err := ask[nothing](ctx, h.session, callLetGo, ofBox{h.box})
	if err != nil && !h.Runs() {
		return nil // it ended meanwhile
	}
	return err
}

func (h *handle) Stat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return ask[sandbox.FileInfo](ctx, h.session, callStat, atPath{h.box, path})
}

func (h *handle) Lstat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return ask[sandbox.FileInfo](ctx, h.session, callLstat, atPath{h.box, path})
}

func (h *handle) ReadFile(ctx context.Context, path string, offset, limit int64) ([]byte, sandbox.FileInfo, error) {
	c, err := ask[content](ctx, h.session, callRead, reading{h.box, path, offset, limit})
	return c.Data, c.Info, err
}

func (h *handle) WriteFile(ctx context.Context, path string, data []byte, options sandbox.WriteOptions) (sandbox.FileInfo, error) {
	return ask[sandbox.FileInfo](ctx, h.session, callWrite, writing{h.box, path, data, options})
}

func (h *handle) Mkdir(ctx context.Context, path string) error {
	_, err := ask[nothing](ctx, h.session, callMkdir, atPath{h.box, path})
	return err
}

func (h *handle) Remove(ctx context.Context, path string, options sandbox.RemoveOptions) error {
	_, err := ask[nothing](ctx, h.session, callErase, erasing{h.box, path, options})
	return err
}

func (h *handle) Rename(ctx context.Context, from, to string) error {
	_, err := ask[nothing](ctx, h.session, callRename, renaming{h.box, from, to})
	return err
}

func (h *handle) List(ctx context.Context, path string, options sandbox.ListOptions) ([]sandbox.Entry, bool, error) {
	e, err := ask[entries](ctx, h.session, callEntries, listing{h.box, path, options})
	return e.Entries, e.More, err
}

func (h *handle) Ports(ctx context.Context) ([]sandbox.Port, bool, error) {
	p, err := ask[ports](ctx, h.session, callPorts, ofBox{h.box})
	return p.Ports, p.More, err
}

func (h *handle) Stats(ctx context.Context) (sandbox.Stats, error) {
	return ask[sandbox.Stats](ctx, h.session, callStats, ofBox{h.box})
}

// Connect returns the call's own connection: after its answer the bytes of the program inside follow.
func (h *handle) Connect(ctx context.Context, port uint16) (sandbox.Connection, error) {
	_, came, conn, err := open[nothing](ctx, h.session, callConnect, connecting{h.box, port})
	if err != nil {
		return nil, err
	}
	closeAll(came)
	return conn, nil
}

var _ sandbox.Connection = (*net.UnixConn)(nil)
