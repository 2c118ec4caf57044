package server

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// listenTCP opens the TCP door and its twin. If the system chooses the port, it is one that both can have.
func (s *Server) listenTCP(address string) (err error) {
	for range 8 {
		if s.tcpDoor, err = net.Listen("tcp", address); err != nil {
			return err
		}
		s.address.Listen = s.tcpDoor.Addr()
		taken := s.openTwin()
		if taken == nil {
			return nil
		}
		if !strings.HasSuffix(address, ":0") {
			s.log.Warn("another program may be behind localhost: passkeys cannot be used there", "err", taken)
			return nil
		}
		_ = s.tcpDoor.Close()
	}
	return errors.New("no port is free on both loopback addresses")
}

// openTwin listens on the other loopback address, too, or says who has it. Browsers take "localhost" for either: a
// program of this machine that listens there would stand between a person and the console, and could pass their
// passkey's answers on.
func (s *Server) openTwin() (taken error) {
	addr, ok := s.tcpDoor.Addr().(*net.TCPAddr)
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
	door, err := net.Listen("tcp", net.JoinHostPort(twin, strconv.Itoa(addr.Port)))
	switch {
	case err == nil:
		s.twinDoor, s.address.OwnsLocalhost = door, true
	case errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT):
		s.address.OwnsLocalhost = true // there is no such address here: nobody can listen on it
	default:
		return err
	}
	return nil
}
