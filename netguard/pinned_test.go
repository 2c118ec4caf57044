package netguard

import (
	"net"
	"net/netip"
	"testing"
)

func TestLook(t *testing.T) {
	policy, err := NewPolicy(Config{})
	if err != nil {
		t.Fatal(err)
	}
	names := answers{
		"public.example": {"93.184.216.34"}, "npm.corp": {"10.1.2.3"}, "both.example": {"93.184.216.34", "192.168.0.9", "fd00::9"},
		"here.example": {"127.0.0.1"}, "mixed.example": {"10.1.2.3", "127.0.0.1"}, "cloud.example": {"169.254.169.254"},
		"cloud2.example": {"100.100.100.200"}, "mapped.example": {"::ffff:10.1.2.3"}, "six.example": {"64:ff9b::a01:203"}, "nowhere.example": {},
	}
	g := NewGuard(policy, names)
	for host, want := range map[string]string{
		"public.example": "public", "npm.corp": "inner", "both.example": "inner", "here.example": "refused", "mixed.example": "refused",
		"cloud.example": "refused", "cloud2.example": "refused", "mapped.example": "inner", "six.example": "refused", "nowhere.example": "refused",
		"10.1.2.3": "inner", "127.0.0.1": "refused", "::1": "refused", "fd00::1": "inner", "169.254.169.254": "refused", "fd00:ec2::254": "refused",
		"metadata.google.internal": "refused",
	} {
		at, inner, err := g.Look(t.Context(), host)
		got := "public"
		if inner {
			got = "inner"
		}
		if err != nil {
			got = "refused"
		}
		if got != want || (err == nil) != (len(at) > 0) {
			t.Errorf("%s: %s %v %v, want %s", host, got, at, err, want)
		}
	}
}

// What was decided about is what is dialed: not another host, not another port, and whatever a name server says by now.
func TestPinned(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	g := Pinned("npm.corp", port, netip.MustParseAddr("127.0.0.1"))
	conn, err := g.Dial(t.Context(), "npm.corp", port)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for _, other := range []struct {
		host string
		port uint16
	}{{"other.corp", port}, {"npm.corp", port + 1}, {"127.0.0.1", port}, {"", port}} {
		if conn, err := g.Dial(t.Context(), other.host, other.port); err == nil {
			_ = conn.Close()
			t.Errorf("%v is reached", other)
		}
	}
	if _, err := Pinned("npm.corp", port).Dial(t.Context(), "npm.corp", port); err == nil {
		t.Error("no address is one")
	}
}

func TestParseInternal(t *testing.T) {
	for text, want := range map[string]string{
		"NPM.Corp.:4873": "npm.corp", "npm:80": "npm", "10.0.0.1:443": "10.0.0.1", "[fd00::1]:443": "fd00::1", "a.example:443": "a.example",
		"a.example": "", "a.example:": "", "a.example:0": "", "*.corp:80": "", "a.corp:22": "", "localhost:80": "", "127.0.0.1:80": "",
		"x.localhost:80": "", "169.254.169.254:80": "", "metadata:80": "", "http://a.corp:80": "", "10.0.0.0/8:80": "", "0x7f000001:80": "", "[::1]:80": "",
	} {
		if got, _, err := ParseInternal(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
