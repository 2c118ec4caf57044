package server

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// tcpDoor is the listener that browsers and agents reach, and its twin.
type tcpDoor struct {
	net.Listener
	twin          net.Listener // the other loopback address; nil if there is none
	ownsLocalhost bool         // whoever asks for localhost at our port reaches us
}

// listenTCP opens the TCP door and its twin. If the system chooses the port, it is one that both can have.
func listenTCP(address string, log *slog.Logger) (tcpDoor, error) {
	for range 8 {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return tcpDoor{}, err
		}
		d := tcpDoor{Listener: listener}
		taken := d.openTwin()
		if taken == nil {
			return d, nil
		}
		if !strings.HasSuffix(address, ":0") {
			log.Warn("another program may be behind localhost: passkeys cannot be used there", "err", taken)
			return d, nil
		}
		_ = listener.Close()
	}
	return tcpDoor{}, errors.New("no port is free on both loopback addresses")
}

// close closes what was never served; what was is closed already.
func (d *tcpDoor) close() {
	_ = d.Close()
	if d.twin != nil {
		_ = d.twin.Close()
	}
}

// openTwin listens on the other loopback address, too, or says who has it. Browsers take "localhost" for either: a
// program of this machine that listens there would stand between a person and the console, and could pass their
// passkey's answers on.
func (d *tcpDoor) openTwin() (taken error) {
	addr, ok := d.Addr().(*net.TCPAddr)
	if !ok {
		return nil
	}
	ip := addr.AddrPort().Addr().Unmap()
	twin := "::1"
	switch ip {
	case netip.AddrFrom4([4]byte{127, 0, 0, 1}):
	case netip.IPv6Loopback():
		twin = "127.0.0.1"
	default:
		// Localhost is not us, or, with all addresses of a container, that of another machine than the browser's.
		return nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(twin, strconv.Itoa(addr.Port)))
	switch {
	case err == nil:
		d.twin, d.ownsLocalhost = listener, true
	case errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT):
		d.ownsLocalhost = true // there is no such address here: nobody can listen on it
	default:
		return err
	}
	return nil
}
