package door

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the reverse proxies whose word about a client's address counts.
type Proxies struct {
	Trusted        []netip.Prefix
	RealIPFallback bool // X-Real-IP counts where there is no X-Forwarded-For
}

// ParseProxies reads addresses and ranges such as 10.0.0.0/8.
func ParseProxies(list []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		text = strings.TrimSpace(text)
		if prefix, err := netip.ParsePrefix(text); err == nil {
			out = append(out, prefix.Masked())
			continue
		}
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		ip = ip.Unmap()
		out = append(out, netip.PrefixFrom(ip, ip.BitLen()))
	}
	return out, nil
}

func (p Proxies) trusts(ip netip.Addr) bool {
	return slices.ContainsFunc(p.Trusted, func(prefix netip.Prefix) bool { return prefix.Contains(ip) })
}

// Source is where a request comes from.
type Source struct {
	peer      netip.Addr // of the socket
	Client    netip.Addr // of the client, as far as proxies that are trusted tell
	Forwarded bool       // it has headers of a proxy
	ByProxy   bool       // the peer is a trusted proxy
	Host      string
	Origin    string
	HasOrigin bool
}

// forwardingHeaders are set by proxies. A program of this machine that sends one is not taken for a local client: what
// stands behind it may be anywhere.
var forwardingHeaders = []string{
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Server", "X-Real-Ip", "Via",
	"Cf-Connecting-Ip", "True-Client-Ip", "Tailscale-User-Login",
}

// Locate says where a request comes from.
func (p Proxies) Locate(r *http.Request) Source {
	at := Source{Host: r.Host, Origin: r.Header.Get("Origin")}
	_, at.HasOrigin = r.Header["Origin"]
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	at.peer, _ = netip.ParseAddr(host)
	at.peer = at.peer.WithZone("").Unmap()
	if door, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); ok && door != nil {
		// The local socket has no addresses. Whoever reaches it is a program of our own user on this machine.
		at.peer, at.Host = netip.AddrFrom4([4]byte{127, 0, 0, 1}), "localhost"
	}
	at.Client = at.peer
	for _, name := range forwardingHeaders {
		if _, set := r.Header[http.CanonicalHeaderKey(name)]; set {
			at.Forwarded = true
		}
	}
	if at.ByProxy = p.trusts(at.peer); at.ByProxy {
		at.Client = p.behind(r, at.peer)
	}
	return at
}

// Client is the address of whoever sent a request, as far as proxies that are trusted tell; not valid if that cannot be
// told.
func (p Proxies) Client(r *http.Request) netip.Addr { return p.Locate(r).Client }

// behind is the client that trusted proxies name: the last address that is not a trusted proxy itself. What stands
// before it is what that client claims.
func (p Proxies) behind(r *http.Request, peer netip.Addr) netip.Addr {
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	if len(hops) == 1 && strings.TrimSpace(hops[0]) == "" {
		if ip, err := netip.ParseAddr(strings.TrimSpace(r.Header.Get("X-Real-Ip"))); err == nil && p.RealIPFallback {
			return ip.WithZone("").Unmap()
		}
		return peer
	}
	client := peer
	for _, hop := range slices.Backward(hops) {
		ip, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break // nothing before it can be believed
		}
		client = ip.WithZone("").Unmap() // a zone may be any text
		if !p.trusts(client) {
			break
		}
	}
	return client
}

// Local reports whether a program of this machine talks to us directly: nothing in between, nothing forwarded, and
// addressed as this machine. Without the last, a page of another site whose name was made to mean 127.0.0.1 would be.
func (at Source) Local() bool {
	return at.peer.IsLoopback() && at.Client.IsLoopback() && (!at.Forwarded || at.ByProxy) && isLoopbackName(hostName(at.Host))
}
