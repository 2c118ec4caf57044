package ticket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward/bridge/runclient"
	"github.com/toolward/toolward/sandbox"
)

const (
	// maxEnviron is the largest environment that is taken, in bytes; the kernel gives programs no more.
	maxEnviron = 4 << 20
	// answerTime bounds how long toolward-run may take for what it does at once.
	answerTime = 30 * time.Second
)

// ServeHTTP redeems one ticket and stays until its command has ended, or whoever showed it has gone.
func (o *Office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "toolward-run posts", http.StatusMethodNotAllowed)
		return
	}
	terms, err := readTerms(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	uid, ok := o.options.UserOf(r.Context())
	if !ok {
		http.Error(w, "nobody knows who asks", http.StatusForbidden)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "this connection cannot be used", http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	socket, ok := conn.(*net.UnixConn)
	if !ok || buffered.Reader.Buffered() > 0 {
		return // toolward-run says nothing before it is asked
	}
	if _, err := socket.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nConnection: close\r\n\r\n")); err != nil {
		return
	}
	o.serve(r.Context(), socket, r.Header.Get(runclient.HeaderTicket), uid, terms)
}

// serve is ServeHTTP on the connection itself. A panic in it ends the command, and toolward-run says so.
func (o *Office) serve(ctx context.Context, conn *net.UnixConn, text string, uid int, terms Terms) {
	defer func() {
		if v := recover(); v != nil {
			o.log.Error("a client's command panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	ticket, err := o.find(text, uid)
	if err == nil {
		err = o.start(ctx, conn, ticket, terms)
	}
	if err != nil {
		send(conn, runclient.SaysRefused, []byte(err.Error()))
	}
}

// start redeems the ticket, starts its command and follows it. An error says why nothing ran.
func (o *Office) start(ctx context.Context, conn *net.UnixConn, ticket *Ticket, terms Terms) error {
	send(conn, runclient.SaysStreams, nil)
	ends, err := receiveEnds(conn, &terms)
	if err != nil {
		return err
	}
	defer ends.close()
	if err := ticket.redeem(); err != nil {
		return err
	}
	running := make(chan struct{})
	ended := sync.OnceFunc(func() { close(running) })
	defer ended()
	ticket.pass.Leaves(running)
	terms.Reports = ticket.reports
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	watch := &watch{conn: conn, cancel: cancel, ends: ends}
	defer watch.over()
	go watch.listen()
	command, err := o.options.Start(ctx, ticket.pass, terms)
	if err != nil {
		if exit := watch.exit(runclient.Exit{}); exit.Signal != 0 {
			send(conn, runclient.SaysExit, exit.Append(nil))
			return nil
		}
		o.log.Warn("a client's command could not be started", "session", ticket.pass.Request().Call.Session, "err", err)
		return fmt.Errorf("the command did not run: %w", err)
	}
	watch.begin(command)
	var tail tail
	ends.carry(command, &tail)
	status, err := command.Wait(ctx)
	watch.end(status)
	ends.finish(err != nil)
	note, dir := command.Ended(status, err, tail.bytes())
	ended()                             // before the client can know
	if note != "" && ctx.Err() == nil { // a start that was given up is not worth a word
		send(conn, runclient.SaysNote, []byte(strings.TrimSuffix(note, "\n")+"\n"))
	}
	send(conn, runclient.SaysExit, watch.exit(exitOf(status, err, dir)).Append(nil))
	return nil
}

// exitOf is how toolward-run is to end.
func exitOf(status sandbox.ExitStatus, err error, dir string) runclient.Exit {
	switch {
	case err != nil: // the sandbox is gone, or the command was given up
		return runclient.Exit{Code: runclient.ExitRefused}
	case status.Signal != 0:
		return runclient.Exit{Signal: byte(status.Signal)}
	}
	return runclient.Exit{Code: byte(status.Code), Dir: dir}
}

func send(conn *net.UnixConn, says byte, payload []byte) {
	payload = payload[:min(len(payload), runclient.MaxFrame)]
	_ = conn.SetWriteDeadline(time.Now().Add(answerTime))
	_, _ = conn.Write(runclient.AppendFrame(nil, says, payload)) // one that has gone needs no answer
}

// readTerms reads what toolward-run says of where it stands.
func readTerms(w http.ResponseWriter, r *http.Request) (t Terms, err error) {
	if t.Dir, err = url.PathUnescape(r.Header.Get(runclient.HeaderDirectory)); err != nil || !filepath.IsAbs(t.Dir) || strings.ContainsRune(t.Dir, 0) {
		return t, errors.New("the directory is not an absolute path")
	}
	for _, letter := range r.Header.Get(runclient.HeaderStreams) {
		switch letter {
		case runclient.StreamInput:
			t.Stdin = true
		case runclient.StreamMerged:
			t.Merged = true
		default:
			return t, errors.New("an unknown kind of stream")
		}
	}
	if size := r.Header.Get(runclient.HeaderTerminal); size != "" {
		cols, rows, _ := strings.Cut(size, "x")
		c, err := strconv.ParseUint(cols, 10, 16)
		n, err2 := strconv.ParseUint(rows, 10, 16)
		if err != nil || err2 != nil || !t.Stdin || !t.Merged {
			return t, errors.New("a terminal of an odd size")
		}
		t.Terminal = &sandbox.Size{Cols: uint16(c), Rows: uint16(n)}
	}
	environ, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEnviron))
	if err != nil {
		return t, errors.New("the environment is too large")
	}
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if len(variable) > 0 {
			t.Environ = append(t.Environ, string(variable))
		}
	}
	return t, nil
}

// tail keeps the end of what a command writes.
type tail struct{ kept []byte }

// tailSize is enough for the last words of a program that failed.
const tailSize = 4 << 10

func (t *tail) add(p []byte) {
	p = p[max(0, len(p)-tailSize):]
	if over := len(t.kept) + len(p) - tailSize; over > 0 {
		t.kept = t.kept[:copy(t.kept, t.kept[over:])]
	}
	t.kept = append(t.kept, p...)
}

func (t *tail) bytes() []byte { return t.kept }

// isPipe reports whether a file is a pipe.
func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().Type() == os.ModeNamedPipe
}
