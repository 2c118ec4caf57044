package attacks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/toolward/toolward/netguard"
)

// dialing asks for an address where it would be dialed: the guard itself, and the proxy of sandboxes in every protocol
// that it speaks. What is public is stopped at the last moment, so that nothing is ever dialed.
type dialing struct {
	guard  *netguard.Guard
	public bool
}

var errNobodyDials = errors.New("not in this test")

// wrong says where an address is dialed that must not be, or is refused that may be reached; "" if neither.
func (d *dialing) wrong(address string) string {
	host, port := hostAndPort(address)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := d.guard.Dial(gone, host, port)
	if d.dialed(err) != d.public {
		return fmt.Sprintf("the guard, asked for %q: %v", host, err)
	}
	bare := strings.Trim(host, "[]")
	requests := map[string]func(net.Conn){
		"CONNECT": func(c net.Conn) { fmt.Fprintf(c, "CONNECT %s:%d HTTP/1.1\r\nHost: a.example\r\n\r\n", host, port) },
		"SOCKS5": func(c net.Conn) {
			socks(c, 3, append([]byte{byte(min(len(bare), 255))}, bare[:min(len(bare), 255)]...), port)
		},
	}
	if strings.HasPrefix(address, "http:") || !d.public {
		requests["GET"] = func(c net.Conn) { fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a.example\r\n\r\n", address) }
	}
	if ip, err := netip.ParseAddr(bare); err == nil && ip.Zone() == "" {
		kind := byte(1)
		if ip.Is6() {
			kind = 4
		}
		requests["SOCKS5 with an address"] = func(c net.Conn) { socks(c, kind, ip.AsSlice(), port) }
	}
	for protocol, request := range requests {
		if why := d.throughProxy(request); why != "" {
			return fmt.Sprintf("the proxy, asked by %s for %q: %s", protocol, host, why)
		}
	}
	return ""
}

// dialed reports whether an attempt came as far as to dial. Its context had ended by then.
func (d *dialing) dialed(err error) bool {
	refused, known := errors.AsType[*netguard.Error](err)
	return !known || refused.Code == netguard.CodeTimeout || refused.Code == netguard.CodeConnect
}

func (d *dialing) throughProxy(request func(net.Conn)) (why string) {
	permitted := false
	proxy := &netguard.Proxy{
		Guard: d.guard,
		Permit: func(context.Context, string, uint16) (netguard.Leave, error) {
			permitted = true
			if d.public {
				return nil, errNobodyDials
			}
			// Somebody who says yes to everything changes nothing.
			return leave(func(c netguard.Connection) {
				if d.dialed(c.Err) {
					why = fmt.Sprintf("it was dialled: %v", c.Err)
				}
			}), nil
		},
	}
	listener := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = proxy.Serve(ctx, listener) }()
	conn, err := listener.dial(ctx, "", "")
	if err == nil {
		go request(conn)
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
	cancel()
	<-served
	if why == "" && d.public && !permitted {
		why = "a public address is refused"
	}
	return why
}

// leave lets any number of bytes out, and tells of the end.
type leave func(netguard.Connection)

func (leave) Spend(int) error          { return nil }
func (l leave) Guard() *netguard.Guard { return nil }

func (l leave) End(c netguard.Connection) { l(c) }

// socks asks for a connection as programs do that speak SOCKS5. The answer to the greeting is left to who reads.
func socks(c net.Conn, kind byte, host []byte, port uint16) {
	request := append([]byte{5, 1, 0, 5, 1, 0, kind}, host...)
	_, _ = c.Write(append(request, byte(port>>8), byte(port)))
}

// hostAndPort is the host, as it is written, and the port of an address that may be no URL at all.
func hostAndPort(address string) (host string, port uint16) {
	scheme, rest, _ := strings.Cut(address, "://")
	if rest == "" {
		rest = address
	}
	host, port = rest, 80
	if strings.EqualFold(scheme, "https") {
		port = 443
	}
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if n, err := strconv.ParseUint(host[i+1:], 10, 16); err == nil {
			host, port = host[:i], uint16(n)
		}
	}
	return host, port
}
