package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/console"
	"github.com/toolward/toolward/server/door"
)

// DefaultListen is where the console is served unless somebody says otherwise.
const DefaultListen = "127.0.0.1:7411"

// Options says what a server serves. All parts are required unless they say otherwise.
type Options struct {
	Home   string   // directory of the local socket, mode 0700
	Socket string   // path of the local socket, where programs of another user use it as well; "" for the one in Home
	Listen string   // TCP address; "" means DefaultListen
	Hosts  []string // further host names that the console answers to

	Public  door.PublicOrigin // where people reach the console through a reverse proxy; optional
	Proxies door.Proxies      // reverse proxies whose word about a browser's address counts

	People    *identity.Keeper
	Approvals *approval.Manager
	Gateway   api.Explainer
	Policy    func() api.Policy  // the one in force
	Desk      *desk.Desk         // what people may do
	Passkeys  *identity.Passkeys // optional
	Sandboxes api.Sandboxes      // optional
	// Ready adds what somebody who shows a credential may know to the answer of /readyz; optional.
	Ready func(*http.Request) (ready bool, details map[string]any)

	MCP       http.Handler // at /mcp of the TCP door; optional
	MCPStream http.Handler // at StreamPath of the socket door; optional
	Runs      http.Handler // toolward-run, of the socket door; optional
	Hooks     http.Handler // at /v1/hook/ of the socket door; optional
	WebSocket http.Handler // every WebSocket at either door, at any path; optional
	Invoke    http.Handler // at /tools/invoke of the TCP door; optional
	Metrics   http.Handler // at /metrics of the TCP door, for people and for tokens made for it; optional

	// Notices are what people must know of the gateway itself now, in words; every page and the status say so.
	Notices     func() []string
	ObserveOnly bool // the gateway runs what would ask (toolward.Config.ObserveOnly): every page and the status say so

	Version string
	Stop    func() // asked by a person to end the daemon
	Log     *slog.Logger
}

// StreamPath is where the socket door serves Options.MCPStream.
const StreamPath = "/mcp/stdio"

// Server is the two doors. Its methods may be called from any goroutine.
type Server struct {
	people  *identity.Keeper
	ready   func(*http.Request) (bool, map[string]any)
	log     *slog.Logger
	address door.Address
	streams *door.Streams
	api     *api.Server
	console *console.Server

	tcp, unix  *http.Server
	tcpDoor    tcpDoor
	socketDoor net.Listener
}

// URL is the console's address on this machine.
func (s *Server) URL() string { return s.address.URL() }

// ConsoleURL is where people reach the console: the public origin if there is one.
func (s *Server) ConsoleURL() string { return s.address.ConsoleURL() }

// SocketPath is the address of the local socket.
func (s *Server) SocketPath() string { return s.socketDoor.Addr().String() }

// Serve answers at both doors until Close. It returns nil then, else why a door failed.
func (s *Server) Serve() error {
	doors := map[net.Listener]*http.Server{s.tcpDoor.Listener: s.tcp, s.socketDoor: s.unix}
	if s.tcpDoor.twin != nil {
		doors[s.tcpDoor.twin] = s.tcp
	}
	failed := make(chan error, len(doors))
	for door, server := range doors {
		go func() { failed <- server.Serve(door) }()
	}
	err := <-failed
	closed := errors.Is(err, http.ErrServerClosed)
	if !closed {
		_ = s.tcp.Close()
		_ = s.unix.Close()
	}
	for range len(doors) - 1 {
		<-failed
	}
	if closed {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// Close stops listening, ends event streams and gives requests in flight until ctx ends. The caller makes waiting
// calls return first, by closing the approval manager.
func (s *Server) Close(ctx context.Context) error {
	s.streams.Stop()
	err := errors.Join(s.tcp.Shutdown(ctx), s.unix.Shutdown(ctx))
	if err != nil {
		err = errors.Join(err, s.tcp.Close(), s.unix.Close())
	}
	// Doors that were never served are not known to the HTTP servers; those that were are closed already.
	s.tcpDoor.close()
	_ = s.socketDoor.Close()
	return err
}
