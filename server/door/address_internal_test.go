package door

import (
	"net"
	"net/http/httptest"
	"strconv"
	"testing"
)

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
		public, err := ParsePublicOrigin(c.public)
		if err != nil {
			t.Fatal(err)
		}
		s := &Address{Listen: door.Addr(), Public: public, OwnsLocalhost: true}
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		site, why := s.SiteOf(r)
		if site.Origin != c.want || (why == "") != (c.want != "") {
			t.Errorf("%q at %q: %+v, %q", c.host, c.public, site, why)
		}
	}
	for _, wrong := range []string{"gate.example.org", "https://gate.example.org/console", "ftp://x", "https://*.example.org", "https://u:p@x", "https://", "https://x?y", "https://gate.example.org."} {
		if _, err := ParsePublicOrigin(wrong); err == nil {
			t.Errorf("%q is a public origin", wrong)
		}
	}
}
