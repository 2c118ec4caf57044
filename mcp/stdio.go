package mcp

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// StdioPath is where the local socket serves [Server.StdioHandler].
const StdioPath = "/mcp/stdio"

// stdioProtocol is the word in the Upgrade header; its number changes when the stream does.
const stdioProtocol = "toolward-mcp/1"

// Hello is what "toolward mcp" says about itself. It is a wish, not a proof: who may use the socket as which agent
// is decided by the daemon.
type Hello struct {
	Agent     string
	Workspace string // absolute directory, may be empty
}

func (h Hello) query() url.Values {
	return url.Values{"agent": {h.Agent}, "workspace": {h.Workspace}}
}

// Welcome turns a hello on the local socket into an identity, or refuses it with an error that its user is shown.
type Welcome func(r *http.Request, hello Hello) (Identity, error)

// StdioHandler serves "toolward mcp" on the local socket: it takes the connection over and speaks MCP on it, one
// message a line. ctx ends all of its streams. It must never be mounted on a network listener: the socket's file
// mode is its only authentication. Identities it makes are never the owner's, and without a connection name each
// stream gets one of its own.
func (s *Server) StdioHandler(ctx context.Context, welcome Welcome) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != stdioProtocol {
			w.Header().Set("Upgrade", stdioProtocol)
			http.Error(w, "this is the local stream of toolward mcp; the versions of the two programs differ", http.StatusUpgradeRequired)
			return
		}
		query := r.URL.Query()
		id, err := welcome(r, Hello{Agent: query.Get("agent"), Workspace: query.Get("workspace")})
		// Every process of the user can open the socket, so its word proves no owner.
		id.Owner = false
		id.TokenID = cmp.Or(id.TokenID, "local")
		if err == nil {
			err = id.check()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		stream, err := takeOver(w, r.Header.Get(descriptorsHeader) != "")
		if err != nil {
			s.log.Error("mcp stream could not be taken over", "err", err)
			http.Error(w, "this connection cannot be taken over", http.StatusInternalServerError)
			return
		}
		if err := s.ServeConn(ctx, stream, id); err != nil && ctx.Err() == nil {
			s.log.Info("mcp stream ended", "agent", id.Agent, "err", err)
		}
	})
}

// hijacked is a connection taken over from HTTP, with what HTTP had read of it already.
type hijacked struct {
	net.Conn
	in *bufio.Reader
}

func (h hijacked) Read(p []byte) (int, error) { return h.in.Read(p) }

// takeOver makes a stream of the request's connection, or of the descriptors that its program offers.
func takeOver(w http.ResponseWriter, offered bool) (io.ReadWriteCloser, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{}) // the server's deadlines are for requests
	local, isLocal := conn.(*net.UnixConn)
	want := offered && isLocal && buffered.Reader.Buffered() == 0
	answer := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + stdioProtocol + "\r\n"
	if want {
		answer += descriptorsHeader + ": wanted\r\n"
	}
	if _, err := io.Copy(conn, strings.NewReader(answer+"\r\n")); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if !want {
		return hijacked{conn, buffered.Reader}, nil
	}
	stream, err := takeDescriptors(local)
	if err != nil {
		_ = conn.Close()
	}
	return stream, err
}
