package netguard

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Pinned makes a guard that connects to one host and port, at exactly these addresses, whatever they are, and looks nothing up.
// It is for who has decided about them: an internal registry that a person has allowed must not become, by another answer of a
// name server, any other machine of the same network.
func Pinned(host string, port uint16, at ...netip.Addr) *Guard {
	return &Guard{pinned: &pinned{host, port, slices.Clone(at)}}
}

type pinned struct {
	host string
	port uint16
	at   []netip.Addr
}

func (p *pinned) check(host string, port uint16) *Error {
	if host != p.host || port != p.port || len(p.at) == 0 {
		return &Error{Code: CodeDial, Host: host}
	}
	return nil
}

// Look looks a host up once, and says whether it lives inside a network: one of its addresses is private, and each of them is
// private or public. What is neither is refused: loopback, link-local, and where clouds give out credentials.
func (g *Guard) Look(ctx context.Context, host string) (at []netip.Addr, inner bool, err error) {
	h, refused := normalize(bracketed(host))
	switch {
	case refused != nil:
		return nil, false, refused
	case slices.Contains(metadataNames, h.text):
		return nil, false, &Error{Code: CodeHostnameDenied, Host: h.text}
	case h.address.IsValid():
		at = []netip.Addr{h.address}
	default:
		if at, err = g.resolver.LookupNetIP(ctx, "ip", h.text+"."); err != nil {
			return nil, false, lookupError(ctx, h.text, err)
		}
	}
	if len(at) == 0 || len(at) > maxAnswers {
		return nil, false, &Error{Code: CodeNoRecords, Host: h.text}
	}
	for i, a := range at {
		at[i] = a.WithZone("").Unmap()
		private := Private(at[i])
		if refused := g.policy.Address(at[i]); refused != nil && !private {
			return nil, false, &Error{Code: CodeDNSAddress, Host: h.text}
		}
		inner = inner || private
	}
	slices.SortStableFunc(at, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) })
	return slices.Compact(at), inner, nil
}

// Private reports whether an address is one of a network's own machines. Loopback is none: it is this machine.
func Private(a netip.Addr) bool {
	if a.IsLoopback() || slices.Contains(metadataAddresses, a) {
		return false
	}
	inner := func(r addressRange) bool { return r.inner && r.prefix.Contains(a) }
	return slices.ContainsFunc(ranges4, inner) || slices.ContainsFunc(ranges6, inner)
}

// ParseInternal reads "host:port" of a machine that may be one of the own network, and brings the host to its one form. It takes
// nothing that stands for several hosts, and nothing that is never reached.
func ParseInternal(text string) (host string, port uint16, err error) {
	name, port, ok := splitPort(strings.TrimSpace(text), "")
	if !ok || port == 0 {
		return "", 0, fmt.Errorf("%q: write host:port, the port from 1 to 65535", shown(text))
	}
	h, refused := normalize(name)
	var strict Policy
	switch {
	case refused != nil:
		return "", 0, fmt.Errorf("%q: it is no host name", shown(text))
	case slices.Contains(metadataNames, h.text), slices.Contains(deniedNames, h.text), strings.HasSuffix(h.text, ".localhost"),
		h.address.IsValid() && !Private(h.address) && strict.address(h.address, h.text) != nil:
		return "", 0, fmt.Errorf("%q: it is never reached, whoever lists it", shown(text))
	case slices.Contains(badPorts, port):
		return "", 0, fmt.Errorf("%q: port %d is never reached, whoever lists it", shown(text), port)
	}
	return h.text, port, nil
}
