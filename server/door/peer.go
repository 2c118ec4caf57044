package door

import (
	"context"
	"log/slog"
	"net"

	"github.com/toolward/toolward/identity"
)

type peerKey struct{}

// PeerOf returns the process at the other end of a socket request, as the kernel named it when the connection was
// accepted; false at the TCP door. Injected handlers use it to note which processes are agents.
func PeerOf(ctx context.Context) (identity.Process, bool) {
	peer, ok := ctx.Value(peerKey{}).(identity.Process)
	return peer, ok
}

// WithPeer is the socket server's ConnContext. A connection whose peer cannot be named, or that belongs to a user who is not
// served, gets no peer, and every request on it is refused.
func WithPeer(people *identity.Keeper, log *slog.Logger) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, conn net.Conn) context.Context {
		peer, err := people.Peer(conn)
		if err != nil {
			log.Debug("peer of a socket connection is unknown", "err", err)
			return ctx
		}
		return context.WithValue(ctx, peerKey{}, peer)
	}
}
