package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/toolward/toolward/hostdaemon"
)

// The ends of a pipe that its user can do something about. Their texts are meant for a terminal.
var (
	ErrNoDaemon   = errors.New("toolward is not running")
	ErrDaemonGone = errors.New("toolward has stopped: the calls in flight did not finish")
)

const (
	dialTimeout  = 5 * time.Second
	helloTimeout = 10 * time.Second
	drainTimeout = 5 * time.Second // for what the daemon still has to say after our input has ended
)

// Pipe joins stdin and stdout to the daemon, until stdin ends (nil), the daemon goes ([ErrDaemonGone]) or ctx ends. If no
// daemon is there it is [ErrNoDaemon]; if somebody else is there, nothing is sent. It understands nothing of what it carries:
// everything is decided by the daemon.
func Pipe(ctx context.Context, daemon hostdaemon.Daemon, hello Hello, stdin io.Reader, stdout io.Writer) error {
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "unix", daemon.Socket)
	if err != nil {
		return fmt.Errorf("%w (nothing answers on %s): %s", ErrNoDaemon, daemon.Socket, daemon.Start())
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	local := conn.(*net.UnixConn)
	if err := daemon.Check(local); err != nil {
		return err
	}
	files, offer := descriptorsOf(stdin, stdout)
	in, wanted, err := greet(conn, hello, offer)
	if err != nil {
		return err
	}
	if wanted {
		taken, err := files.handOver(local, in)
		switch {
		case err != nil:
			return ended(ctx, err)
		case taken:
			return attend(ctx, local, in)
		}
	}
	return join(ctx, local, in, stdin, stdout)
}

// greet asks the daemon for a stream, and offers descriptors for it, which the daemon may want. The reader it returns may hold
// the stream's first bytes.
func greet(conn net.Conn, hello Hello, offer bool) (in *bufio.Reader, wanted bool, err error) {
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	defer conn.SetDeadline(time.Time{})
	request, err := http.NewRequest(http.MethodPost, "http://toolward"+StdioPath+"?"+hello.query().Encode(), nil)
	if err != nil {
		return nil, false, fmt.Errorf("greet the daemon: %w", err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", stdioProtocol)
	if offer {
		request.Header.Set(descriptorsHeader, "offered")
	}
	if err := request.Write(conn); err != nil {
		return nil, false, fmt.Errorf("greet the daemon: %w", err)
	}
	in = bufio.NewReader(conn)
	response, err := http.ReadResponse(in, request)
	if err != nil {
		return nil, false, fmt.Errorf("greet the daemon: %w", err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10)) // what there is of it must do
		return nil, false, fmt.Errorf("toolward refused (%s): %s", response.Status, strings.TrimSpace(string(text)))
	}
	return in, offer && response.Header.Get(descriptorsHeader) != "", nil
}

// join copies both ways. It does not wait for a reader of stdin that will never return: its process ends next.
func join(ctx context.Context, conn *net.UnixConn, in io.Reader, stdin io.Reader, stdout io.Writer) error {
	up, down := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, stdin)
		up <- err
	}()
	go func() {
		_, err := io.Copy(stdout, in)
		down <- err
	}()
	select {
	case err := <-down:
		return ended(ctx, err)
	case err := <-up:
		if err != nil {
			return ended(ctx, err)
		}
	}
	// Our input has ended: say so, and pass on what the daemon still answers.
	_ = conn.CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(drainTimeout))
	select {
	case <-down:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// ended explains why a stream ended before its input did.
func ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil || errors.Is(err, net.ErrClosed) || isNetError(err):
		return ErrDaemonGone
	}
	return fmt.Errorf("pass messages on: %w", err)
}

func isNetError(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed)
}
