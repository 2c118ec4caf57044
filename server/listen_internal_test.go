package server

import (
	"log/slog"
	"net"
	"net/http/httptest"
	"testing"
)

// TestTwinDoor listens on both loopback addresses, or says that localhost is not ours.
func TestTwinDoor(t *testing.T) {
	listen := func(address string) *Server {
		s := &Server{log: slog.New(slog.DiscardHandler)}
		if err := s.listenTCP(address); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			s.tcpDoor.Close()
			if s.twinDoor != nil {
				s.twinDoor.Close()
			}
		})
		return s
	}
	s := listen("127.0.0.1:0")
	probe, err := net.Listen("tcp", "[::1]:0")
	if err != nil { // without IPv6 nobody else can be localhost
		if !s.address.OwnsLocalhost {
			t.Error("localhost is not ours")
		}
		return
	}
	probe.Close()
	_, port, _ := net.SplitHostPort(s.tcpDoor.Addr().String())
	if s.twinDoor == nil || !s.address.OwnsLocalhost || s.twinDoor.Addr().String() != "[::1]:"+port {
		t.Fatalf("%+v", s.twinDoor)
	}

	// Somebody else is there first: the next gateway at that port must not use passkeys at localhost.
	s.tcpDoor.Close()
	next := listen("127.0.0.1:" + port)
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "localhost:" + port
	if site, why := next.address.SiteOf(r); next.address.OwnsLocalhost || next.twinDoor != nil || why == "" {
		t.Errorf("passkeys at %v while another program is behind localhost", site)
	}
	s = listen("127.0.0.2:0")
	if s.address.OwnsLocalhost || s.twinDoor != nil {
		t.Error("127.0.0.2 is not localhost")
	}
}
