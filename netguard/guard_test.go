package netguard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func allowing(t testing.TB, c Config) *Policy {
	t.Helper()
	p, err := NewPolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func listen(t *testing.T, address string) (net.Listener, uint16) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, netip.MustParseAddrPort(l.Addr().String()).Port()
}

// rebinding answers differently each time it is asked.
type rebinding struct{ answers []string }

func (r *rebinding) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if len(r.answers) == 0 {
		return nil, errors.New("asked too often")
	}
	next := r.answers[0]
	r.answers = r.answers[1:]
	return []netip.Addr{netip.MustParseAddr(next)}, nil
}

func TestOneLookupDecidesWhereToDial(t *testing.T) {
	l, port := listen(t, "127.0.0.1:0")
	names := &rebinding{answers: []string{"127.0.0.1", "127.0.0.9"}}
	g := NewGuard(allowing(t, Config{AllowedCIDRs: []string{"127.0.0.1/32"}}), names)
	conn, err := g.Dial(t.Context(), "site.example", port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.RemoteAddr().String(); got != l.Addr().String() || len(names.answers) != 1 {
		t.Errorf("connected to %s with %d answers left", got, len(names.answers))
	}
	if _, err := g.Dial(t.Context(), "site.example", port); verdictOf(err).Code != CodeDNSAddress {
		t.Errorf("the second answer was followed: %v", err)
	}
}

func TestTheDialedAddressIsLookedAtAgain(t *testing.T) {
	g := NewGuard(allowing(t, Config{}), nil)
	checked := []netip.Addr{netip.MustParseAddr("93.184.216.34")}
	for address, ok := range map[string]bool{
		"93.184.216.34:443": true, "[::ffff:93.184.216.34]:443": true,
		"127.0.0.1:443": false, "93.184.216.35:443": false, "[::1]:443": false, "nonsense": false,
	} {
		if err := g.dialed(address, checked); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAnswers(t *testing.T) {
	many := make([]string, maxAnswers+1)
	for i := range many {
		many[i] = "93.184.216.34"
	}
	names := answers{
		"both.example":  {"2606:4700::1", "93.184.216.34", "93.184.216.34", "::ffff:93.184.216.34"},
		"none.example":  {},
		"many.example":  many,
		"mixed.example": {"93.184.216.34", "10.0.0.1"},
		"zoned.example": {"fe80::1%eth0"},
	}
	g := NewGuard(allowing(t, Config{}), names)
	list, err := g.Resolve(t.Context(), "BOTH.example.")
	if err != nil || len(list) != 2 || !list[0].Is4() || !list[1].Is6() {
		t.Errorf("%v, %v", list, err)
	}
	for name, code := range map[string]Code{"none.example": CodeNoRecords, "many.example": CodeDNS, "mixed.example": CodeDNSAddress, "zoned.example": CodeDNSAddress} {
		if _, err := g.Resolve(t.Context(), name); verdictOf(err).Code != code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := g.Resolve(t.Context(), "mixed.example"); strings.Contains(err.Error(), "10.0.0.1") {
		t.Errorf("the text tells what the name server answered: %v", err)
	}
}

func TestZeroValuesRefuse(t *testing.T) {
	var p *Policy
	if _, err := p.URL("https://example.com/"); err == nil {
		t.Error("no policy lets a URL through")
	}
	if p.Address(netip.MustParseAddr("93.184.216.34")) == nil || p.Port(443) == nil || p.Refuses("https://example.com/") == "" {
		t.Error("no policy lets something through")
	}
	if _, err := (&Guard{}).Dial(t.Context(), "example.com", 443); err == nil {
		t.Error("a guard without a policy dials")
	}
	if (Config{}).Relaxed() || !(Config{AllowPrivateNetwork: true}).Relaxed() {
		t.Error("Relaxed")
	}
}

func TestConfigurationErrors(t *testing.T) {
	for key, c := range map[string]Config{
		"allowedCidrs":      {AllowedCIDRs: []string{"10.0.0.0"}},
		"allowedHostnames":  {AllowedHostnames: []string{"a..b"}},
		"hostnameAllowlist": {HostnameAllowlist: []string{"*.b c"}},
		"nat64Prefixes":     {NAT64Prefixes: []string{"2a01::/64"}},
	} {
		if _, err := NewPolicy(c); err == nil || !strings.HasPrefix(err.Error(), key+": ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, seed := range []string{"http://127.0.0.1/", "http://[::ffff:127.0.0.1]:80/", "https://ⓛocalhost/", "http://a@b/", "http://0x7f.1/", "HTTP://EXAMPLE.com:443#@x"} {
		f.Add(seed)
	}
	p := allowing(f, Config{})
	f.Fuzz(func(t *testing.T, text string) {
		u, err := p.URL(text)
		if err != nil {
			return
		}
		again, err := p.Host(bracketed(u.Host))
		if err != nil || again != u.Host {
			t.Errorf("%q: the host %q is %q when it is read again, %v", text, u.Host, again, err)
		}
		if a, err := netip.ParseAddr(u.Host); err == nil && (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast()) {
			t.Errorf("%q leads to %s", text, a)
		}
	})
}
