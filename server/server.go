package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
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
	Listen string   // TCP address; "" means DefaultListen
	Hosts  []string // further host names that the console answers to

	Public  door.PublicOrigin // where people reach the console through a reverse proxy; optional
	Proxies door.Proxies      // reverse proxies whose word about a browser's address counts

	People    *identity.Keeper
	Approvals *approval.Manager
	Audit     *audit.Log
	Records   audit.Source // what the log is kept in, for exports
	Levels    api.Levels
	Gateway   api.Explainer
	Policy    func() api.Policy  // the one in force
	Desk      *desk.Desk         // what people may do
	Passkeys  *identity.Passkeys // optional
	Sandboxes api.Sandboxes      // optional
	// Ready adds what somebody who shows a credential may know to the answer of /readyz; optional.
	Ready func(*http.Request) (ready bool, details map[string]any)

	MCP       http.Handler // at /mcp of the TCP door; optional
	MCPStream http.Handler // at StreamPath of the socket door; optional
	Hooks     http.Handler // at /v1/hook/ of the socket door; optional
	WebSocket http.Handler // every WebSocket at either door, at any path; optional
	Invoke    http.Handler // at /tools/invoke of the TCP door; optional
	Metrics   http.Handler // at /metrics of the TCP door, for people and for tokens made for it; optional

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

	tcp, unix           *http.Server
	tcpDoor, socketDoor net.Listener
	twinDoor            net.Listener // the other loopback address; nil if there is none
}

// Limits of both HTTP servers. There is no write time-out: calls wait for people. Event streams set their own.
const (
	headerPatience = 10 * time.Second
	idlePatience   = 2 * time.Minute
	maxHeaders     = 32 << 10
)

// Open binds both doors. Nothing is answered before Serve, so that a caller can print the address first and knows
// at once when the port is taken.
func Open(o Options) (*Server, error) {
	if o.Home == "" || o.People == nil || o.Approvals == nil || o.Audit == nil || o.Records == nil ||
		o.Levels == nil || o.Gateway == nil || o.Policy == nil || o.Desk == nil || o.Stop == nil {
		return nil, errors.New("open server: a part is missing")
	}
	hosts := o.Hosts
	if o.Public.Set() {
		hosts = append(slices.Clone(hosts), o.Public.Name())
	}
	names, err := newHostNames(hosts)
	if err != nil {
		return nil, fmt.Errorf("open server: %w", err)
	}
	s := &Server{
		people: o.People, ready: o.Ready, log: o.Log, address: door.Address{Public: o.Public, Proxies: o.Proxies}, streams: door.NewStreams(),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	if s.socketDoor, err = listenSocket(o.Home); err != nil {
		return nil, fmt.Errorf("open server: %w", err)
	}
	if err := s.listenTCP(o.Listen); err != nil {
		_ = s.socketDoor.Close()
		return nil, fmt.Errorf("open server: %w (choose another address with --listen)", err)
	}
	s.openRooms(&o)
	s.tcp = s.httpServer(s.encrypted(guardTCP(names, o.WebSocket, s.tcpRoutes(&o))))
	s.unix = s.httpServer(s.socketRoutes(&o))
	s.unix.ConnContext = door.WithPeer(s.people, s.log)
	return s, nil
}

// openRooms makes what stands behind the doors.
func (s *Server) openRooms(o *Options) {
	s.api = api.New(&api.Options{
		Home: o.Home, Address: &s.address, Streams: s.streams,
		People: o.People, Approvals: o.Approvals, Audit: o.Audit, Records: o.Records, Levels: o.Levels, Gateway: o.Gateway,
		Policy: o.Policy, Desk: o.Desk, Sandboxes: o.Sandboxes,
		ObserveOnly: o.ObserveOnly, Version: o.Version, Stop: o.Stop, Log: s.log,
	})
	s.console = console.New(&console.Options{
		API: s.api, Address: &s.address, Streams: s.streams,
		People: o.People, Approvals: o.Approvals, Audit: o.Audit, Levels: o.Levels, Policy: o.Policy, Desk: o.Desk,
		Passkeys: o.Passkeys, Sandboxes: o.Sandboxes, Metrics: o.Metrics, ObserveOnly: o.ObserveOnly, Log: s.log,
	})
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// URL is the console's address on this machine.
func (s *Server) URL() string { return s.address.URL() }

// ConsoleURL is where people reach the console: the public origin if there is one.
func (s *Server) ConsoleURL() string { return s.address.ConsoleURL() }

// SocketPath is the address of the local socket.
func (s *Server) SocketPath() string { return s.socketDoor.Addr().String() }

// Serve answers at both doors until Close. It returns nil then, else why a door failed.
func (s *Server) Serve() error {
	doors := map[net.Listener]*http.Server{s.tcpDoor: s.tcp, s.socketDoor: s.unix}
	if s.twinDoor != nil {
		doors[s.twinDoor] = s.tcp
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
	_ = s.tcpDoor.Close()
	_ = s.socketDoor.Close()
	if s.twinDoor != nil {
		_ = s.twinDoor.Close()
	}
	return err
}
