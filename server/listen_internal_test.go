package server

import (
	"log/slog"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/toolward/toolward/server/door"
)

// TestTwinDoor listens on both loopback addresses, or says that localhost is not ours.
func TestTwinDoor(t *testing.T) {
	listen := func(address string) tcpDoor {
		d, err := listenTCP(address, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.close)
		return d
	}
	d := listen("127.0.0.1:0")
	probe, err := net.Listen("tcp", "[::1]:0")
	if err != nil { // without IPv6 nobody else can be localhost
		if !d.ownsLocalhost {
			t.Error("localhost is not ours")
		}
		return
	}
	probe.Close()
	_, port, _ := net.SplitHostPort(d.Addr().String())
	if d.twin == nil || !d.ownsLocalhost || d.twin.Addr().String() != "[::1]:"+port {
		t.Fatalf("%+v", d.twin)
	}

	// Somebody else is there first: the next gateway at that port must not use passkeys at localhost.
	d.Close()
	next := listen("127.0.0.1:" + port)
	at := &door.Address{Listen: next.Addr(), OwnsLocalhost: next.ownsLocalhost}
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "localhost:" + port
	if site, why := at.SiteOf(r); next.ownsLocalhost || next.twin != nil || why == "" {
		t.Errorf("passkeys at %v while another program is behind localhost", site)
	}
	d = listen("127.0.0.2:0")
	if d.ownsLocalhost || d.twin != nil {
		t.Error("127.0.0.2 is not localhost")
	}
}
