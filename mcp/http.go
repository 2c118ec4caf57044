package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	versionHeader    = "Mcp-Protocol-Version"
	connectionHeader = "Mcp-Session-Id"
	// markHeader joins a tool call to the HTTP request that carries it. It is set by carry, never taken from outside.
	markHeader = "Toolward-Request"
)

// maxConnections bounds the connections of clients: what MCP calls a session, in the protocols that have one. Streams count too.
const maxConnections = 1024

// connectionIdle is when the connection of a silent client is forgotten.
const connectionIdle = 30 * time.Minute

// Authenticate says whose a bearer token is, or that it is nobody's. The error is logged, never sent.
type Authenticate func(ctx context.Context, token string, r *http.Request) (Identity, error)

// Handler serves streamable HTTP, at the path it is mounted on. Every request must carry a bearer token. Host and
// origin checks that hold for the whole server are the server's; the SDK's own protection of loopback listeners
// against DNS rebinding stays on besides.
func (s *Server) Handler(authenticate Authenticate) http.Handler {
	server := func(*http.Request) *sdk.Server { return s.sdk }
	limit := int64(s.config.MaxMessage)
	adapter := &httpAdapter{
		server: s,
		connected: sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{
			SessionTimeout: connectionIdle, MaxRequestBodyBytes: limit, Logger: s.log,
		}),
		stateless: sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: limit, Logger: s.log,
		}),
	}
	verify := func(ctx context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
		id, err := authenticate(ctx, token, r)
		if err == nil {
			err = id.check()
		}
		if err != nil {
			s.log.Warn("mcp token refused", "err", err, "remote", r.RemoteAddr)
			return nil, auth.ErrInvalidToken // why is nobody's business who has no token
		}
		// The SDK compares UserID with that of the connection: a connection id that leaks is worth nothing to others.
		return &auth.TokenInfo{UserID: id.principal(), Extra: map[string]any{extraIdentity: id}}, nil
	}
	authenticated := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(adapter)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="toolward"`) // the adapter takes it back
		authenticated.ServeHTTP(w, r)
	})
}

// httpAdapter stands between authentication and the SDK. It answers what the SDK would not answer in JSON-RPC, and
// leads each request to the handler of its protocol.
type httpAdapter struct {
	server    *Server
	connected http.Handler // protocols up to 2025-11-25, whose clients connect
	stateless http.Handler // 2026-07-28 and later
}

func (f *httpAdapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Del("WWW-Authenticate")
	handler := f.connected
	if r.Header.Get(versionHeader) >= version20260728 {
		handler = f.stateless
	}
	if r.Method == http.MethodPost {
		body, ok := f.readBody(w, r)
		if !ok {
			return
		}
		if r.Header.Get(versionHeader) == "" && bytes.Contains(body, []byte(sdk.MetaKeyProtocolVersion)) {
			handler = f.stateless // where the missing header is told
		}
		if handler == f.connected && r.Header.Get(connectionHeader) == "" && f.full() {
			refuseHTTP(w, http.StatusServiceUnavailable, &malformed{code: codeBusy, message: "too many sessions are open; try again later"})
			return
		}
	}
	principal := principalOf(r)
	if r.Method == http.MethodDelete {
		f.server.carriers.endConnection(principal, r.Header.Get(connectionHeader))
	}
	out, r, done := f.server.carriers.carry(w, r, principal)
	defer done()
	out.patient()
	handler.ServeHTTP(out, r)
}

// principalOf is whose request it is; authentication has been passed.
func principalOf(r *http.Request) string {
	if token := auth.TokenInfoFromContext(r.Context()); token != nil {
		return token.UserID
	}
	return ""
}

// readBody reads and checks the one message of a POST, and puts it back for the SDK.
func (f *httpAdapter) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(f.server.config.MaxMessage)))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			refuseHTTP(w, http.StatusRequestEntityTooLarge, tooLong(f.server.config.MaxMessage))
		} else {
			refuseHTTP(w, http.StatusBadRequest, &malformed{code: jsonrpc.CodeParseError, message: "the request ended early"})
		}
		return nil, false
	}
	body = bytes.TrimSpace(body)
	if _, bad := decodeMessage(body); bad != nil {
		refuseHTTP(w, http.StatusBadRequest, bad)
		return nil, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	return body, true
}

// full reports whether no more clients may connect.
func (f *httpAdapter) full() bool {
	n := 0
	for range f.server.sdk.Sessions() {
		n++
	}
	return n >= f.server.maxConnections
}

func refuseHTTP(w http.ResponseWriter, status int, bad *malformed) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(bad.response()) // a client that has gone does not need the answer
}
