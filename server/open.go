package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/console"
	"github.com/toolward/toolward/server/door"
)

// Open binds both doors. Nothing is answered before Serve, so that a caller can print the address first and knows
// at once when the port is taken.
func Open(o Options) (*Server, error) {
	if o.Home == "" || o.People == nil || o.Approvals == nil ||
		o.Gateway == nil || o.Policy == nil || o.Desk == nil || o.Stop == nil {
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
	if s.socketDoor, err = listenSocket(o.Home, o.Socket); err != nil {
		return nil, fmt.Errorf("open server: %w", err)
	}
	if s.tcpDoor, err = listenTCP(o.Listen, s.log); err != nil {
		_ = s.socketDoor.Close()
		return nil, fmt.Errorf("open server: %w (choose another address with --listen)", err)
	}
	s.address.Listen, s.address.OwnsLocalhost = s.tcpDoor.Addr(), s.tcpDoor.ownsLocalhost
	s.openRooms(&o)
	s.tcp = s.httpServer(encrypted(&s.address, guardTCP(names, o.WebSocket, s.tcpRoutes(&o))))
	s.unix = s.httpServer(s.socketRoutes(&o))
	s.unix.ConnContext = door.WithPeer(s.people, s.log)
	return s, nil
}

// openRooms makes what stands behind the doors.
func (s *Server) openRooms(o *Options) {
	s.api = api.New(&api.Options{
		Home: o.Home, Address: &s.address, Streams: s.streams,
		People: o.People, Approvals: o.Approvals, Gateway: o.Gateway,
		Policy: o.Policy, Desk: o.Desk, Sandboxes: o.Sandboxes,
		ObserveOnly: o.ObserveOnly, Notices: o.Notices, Version: o.Version, Stop: o.Stop, Log: s.log,
	})
	s.console = console.New(&console.Options{
		API: s.api, Address: &s.address, Streams: s.streams,
		People: o.People, Approvals: o.Approvals, Policy: o.Policy, Desk: o.Desk,
		Passkeys: o.Passkeys, Sandboxes: o.Sandboxes, Metrics: o.Metrics, ObserveOnly: o.ObserveOnly, Notices: o.Notices, Log: s.log,
	})
}

// Limits of both HTTP servers. There is no write time-out: calls wait for people. Event streams set their own.
const (
	headerPatience = 10 * time.Second
	idlePatience   = 2 * time.Minute
	maxHeaders     = 32 << 10
)

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
