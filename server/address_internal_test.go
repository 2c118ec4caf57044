package server

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/protocol"
)

// TestTwinDoor listens on both loopback addresses, or says that localhost is not ours.
func TestTwinDoor(t *testing.T) {
	listen := func(address string) *Server {
		s := &Server{log: slog.New(slog.DiscardHandler), passkeys: &identity.Passkeys{}}
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
		if !s.ownsLocalhost {
			t.Error("localhost is not ours")
		}
		return
	}
	probe.Close()
	_, port, _ := net.SplitHostPort(s.tcpDoor.Addr().String())
	if s.twinDoor == nil || !s.ownsLocalhost || s.twinDoor.Addr().String() != "[::1]:"+port {
		t.Fatalf("%+v", s.twinDoor)
	}

	// Somebody else is there first: the next gateway at that port must not use passkeys at localhost.
	s.tcpDoor.Close()
	next := listen("127.0.0.1:" + port)
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "localhost:" + port
	if site, why := next.siteOf(r); next.ownsLocalhost || next.twinDoor != nil || why == "" {
		t.Errorf("passkeys at %v while another program is behind localhost", site)
	}
	s = listen("127.0.0.2:0")
	if s.ownsLocalhost || s.twinDoor != nil {
		t.Error("127.0.0.2 is not localhost")
	}
}

// TestSites is where passkeys can be used.
func TestSites(t *testing.T) {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	port := ":" + strconv.Itoa(door.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct{ public, host, want string }{
		{"", "localhost" + port, "http://localhost" + port},
		{"", "LOCALHOST" + port, "http://localhost" + port},
		{"", "localhost:1", ""},
		{"", "localhost", ""},
		{"", "127.0.0.1" + port, ""},
		{"", "[::1]" + port, ""},
		{"", "gate.example.org", ""},
		{"https://gate.example.org", "gate.example.org", "https://gate.example.org"},
		{"https://gate.example.org", "Gate.Example.org:443", "https://gate.example.org"},
		{"https://gate.example.org", "gate.example.org:8443", ""},
		{"https://gate.example.org", "other.example.org", ""},
		{"https://gate.example.org", "localhost" + port, "http://localhost" + port},
		{"https://gate.example.org:8443", "gate.example.org:8443", "https://gate.example.org:8443"},
		{"http://gate.example.org", "gate.example.org", ""},
		{"http://localhost:9000", "localhost:9000", "http://localhost:9000"}, // forwarded by ssh
		{"https://10.0.0.5", "10.0.0.5", ""},
		{"https://[fd00::1]", "[fd00::1]", ""},
	} {
		public, err := protocol.ParsePublicOrigin(c.public)
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{tcpDoor: door, passkeys: &identity.Passkeys{}, public: public, ownsLocalhost: true}
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		site, why := s.siteOf(r)
		if site.Origin != c.want || (why == "") != (c.want != "") {
			t.Errorf("%q at %q: %+v, %q", c.host, c.public, site, why)
		}
	}
	for _, wrong := range []string{"gate.example.org", "https://gate.example.org/console", "ftp://x", "https://*.example.org", "https://u:p@x", "https://", "https://x?y", "https://gate.example.org."} {
		if _, err := protocol.ParsePublicOrigin(wrong); err == nil {
			t.Errorf("%q is a public origin", wrong)
		}
	}
}

// TestTransportSecurity promises TLS for the public name only: a promise for localhost would count for every port of
// the machine, for the console's own address and for whatever people develop there.
func TestTransportSecurity(t *testing.T) {
	for _, c := range []struct {
		public, host        string
		promised, encrypted bool
	}{
		{"https://gate.example.org", "gate.example.org", true, true},
		{"https://gate.example.org", "gate.example.org.", true, true}, // the same name to DNS, and to a browser
		{"https://gate.example.org", "localhost:7411", false, false},
		{"http://gate.example.org", "gate.example.org", false, false},
		{"https://localhost:8443", "localhost:8443", false, true},
		{"https://127.0.0.1:8443", "127.0.0.1:8443", false, true},
		{"https://gate.localhost", "gate.localhost", false, true},
	} {
		public, err := protocol.ParsePublicOrigin(c.public)
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{public: public}
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		s.encrypted(http.NotFoundHandler()).ServeHTTP(w, r)
		if got := w.Header().Get("Strict-Transport-Security") != ""; got != c.promised || s.isEncrypted(r) != c.encrypted {
			t.Errorf("%q at %q: promised %v, encrypted %v", c.host, c.public, got, s.isEncrypted(r))
		}
	}
}
