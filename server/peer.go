package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"
)

// Peer is the process at the other end of a local socket connection, as the kernel names it.
type Peer struct {
	PID       int
	UID       int
	Connected time.Time // when the connection was accepted
}

type peerKey struct{}

// peerOf returns the peer of a request that came over the socket; false at the TCP door.
func peerOf(ctx context.Context) (Peer, bool) {
	peer, ok := ctx.Value(peerKey{}).(Peer)
	return peer, ok
}

// withPeer is the socket server's ConnContext. A connection whose peer cannot be named, or that belongs to another
// user, gets no peer and every request on it is refused.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	peer, err := readPeer(unixConn)
	if err != nil || peer.UID != os.Geteuid() {
		return ctx
	}
	peer.Connected = time.Now()
	return context.WithValue(ctx, peerKey{}, peer)
}

// readPeer asks the kernel who connected.
func readPeer(conn *net.UnixConn) (Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("peer of socket: %w", err)
	}
	var peer Peer
	var inner error
	if err := raw.Control(func(fd uintptr) { peer, inner = peerOfFD(int(fd)) }); err != nil {
		return Peer{}, fmt.Errorf("peer of socket: %w", err)
	}
	if inner != nil {
		return Peer{}, fmt.Errorf("peer of socket: %w", inner)
	}
	return peer, nil
}
