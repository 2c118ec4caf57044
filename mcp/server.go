package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/schema"
)

// The protocol versions, oldest first. Dates compare as texts.
const (
	version20250618 = "2025-06-18"
	version20251125 = "2025-11-25"
	version20260728 = "2026-07-28"
)

const (
	methodListTools = "tools/list"
	methodCallTool  = "tools/call"
)

// gateTool is the one tool that the SDK's server knows. Every call is led to it, whatever tool it names; the list of
// tools never shows it, and the gateway does not know it.
const gateTool = "toolward"

// Config says what a server stands in front of. Gateway, Policy and StateKey are required.
type Config struct {
	Gateway *toolward.Gateway
	Policy  toolward.Policy // the gateway's own; gives revision and decoder that a requestState is bound to

	// StateKey signs requestState: at least 32 random bytes, kept as long as approvals are kept.
	StateKey []byte

	// ApprovalURL is the page of the console where a person answers an approval. Nil: clients get no link.
	ApprovalURL func(approval string) string

	// Withdraw takes back the question of a call whose client has gone or given up, unless another call waits for
	// the same answer. The cause is approval.ErrCanceled if the client said so. It may be called for an approval
	// that is settled already. Nil: only the end of the waiting call's context does it, which does not end a
	// question that was left pending (Call.Detach).
	Withdraw func(ctx context.Context, approval string, cause error) error

	Version    string        // of Toolward, shown to clients
	Log        *slog.Logger  // optional
	Host       toolward.Host // where tools run; default: this machine
	MaxMessage int           // bytes of one message; default 4 MiB
	MaxCalls   int           // calls in flight of one conversation; default 64
	RunIdle    time.Duration // a run ends after so long without a call; default 30 min
}

const (
	defaultMaxMessage = 4 << 20
	defaultMaxCalls   = 64
	defaultRunIdle    = 30 * time.Minute
)

const instructions = "Every call of these tools is checked by Toolward before it runs. " +
	"A call that needs a person's approval waits for it. " +
	`A result whose text says "status":"denied" means that the call did not run; its message says what to do.`

// Server serves MCP clients. It is safe for concurrent use.
type Server struct {
	config Config
	sealer sealer
	log    *slog.Logger
	sdk    *sdk.Server
	runs   runs
	calls  calls

	prepared schema.Cache // schemas of foreign tools, as clients are shown them

	carriers       carriers
	aliveEvery     time.Duration
	maxConnections int
}

// NewServer makes a server, or says which part is missing.
func NewServer(c Config) (*Server, error) {
	switch {
	case c.Gateway == nil:
		return nil, errors.New("mcp server needs a gateway")
	case c.Policy == nil:
		return nil, errors.New("mcp server needs the gateway's policy")
	case len(c.StateKey) < minStateKey:
		// A short key could be guessed, and a guessed key answers for the state of any call.
		return nil, fmt.Errorf("mcp server needs a state key of at least %d bytes, got %d", minStateKey, len(c.StateKey))
	}
	c.Version = cmp.Or(c.Version, "dev")
	c.Host = cmp.Or(c.Host, toolward.HostGateway)
	c.MaxMessage = atLeastOne(c.MaxMessage, defaultMaxMessage)
	c.MaxCalls = atLeastOne(c.MaxCalls, defaultMaxCalls)
	if c.RunIdle <= 0 {
		c.RunIdle = defaultRunIdle
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		config: c,
		sealer: sealer{key: slices.Clone(c.StateKey)},
		log:    c.Log,
		runs:   runs{idle: c.RunIdle},
		calls:  calls{limit: c.MaxCalls},

		aliveEvery: aliveEvery, maxConnections: maxConnections,
	}
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: "toolward", Title: "Toolward", Version: c.Version}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
		// What one caller sees is nothing for a cache that others share.
		SetCacheable:              func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
		SupportedProtocolVersions: []string{version20250618, version20251125, version20260728},
	})
	s.sdk.AddReceivingMiddleware(s.receive)
	s.addGate()
	return s, nil
}

func atLeastOne(value, otherwise int) int {
	if value < 1 {
		return otherwise
	}
	return value
}

func (s *Server) addGate() {
	s.sdk.AddTool(&sdk.Tool{Name: gateTool, InputSchema: json.RawMessage(`{"type":"object"}`)}, s.handleCall)
}

// ToolsChanged tells connected clients to list the tools again, after the policy or the tools have changed.
func (s *Server) ToolsChanged() { s.addGate() } // adding a tool again is what makes the SDK notify

// Close ends the calls that HTTP clients wait for, now and from now on, and so takes their questions back. Streams
// end with the context that they were served with.
func (s *Server) Close() { s.carriers.close() }

// ServeConn serves one client over a stream, such as a connection of the local socket, until the client or ctx
// ends. The identity holds for the whole stream. The stream is closed on return.
func (s *Server) ServeConn(ctx context.Context, stream io.ReadWriteCloser, id Identity) error {
	defer stream.Close()
	if err := id.check(); err != nil {
		return fmt.Errorf("serve mcp: %w", err)
	}
	id.stream = rand.Text()
	session, err := s.sdk.Connect(context.WithValue(ctx, identityKey{}, id), lines{stream: stream, limit: s.config.MaxMessage}, nil)
	if err != nil {
		return fmt.Errorf("serve mcp: %w", err)
	}
	// Closing the stream, unlike closing the session, does not wait for calls that wait for people: it ends them.
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	defer stop()
	if err := session.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve mcp: %w", err)
	}
	return ctx.Err()
}

// receive stands before every request of every client. A panic while one is handled is that request's failure and
// nobody else's: the SDK would let it end the daemon, and with it every other client's protection.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				s.log.Error("mcp request panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		switch method {
		case methodListTools:
			return s.listTools(ctx, req)
		case methodCallTool:
			return s.leadToGate(ctx, method, req, next)
		}
		return next(ctx, method, req)
	}
}

// listTools answers with what the caller sees now, all on one page.
func (s *Server) listTools(ctx context.Context, req sdk.Request) (sdk.Result, error) {
	id, err := identityOf(ctx, req)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	list, ok := req.(*sdk.ListToolsRequest)
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "tools/list: unexpected parameters"}
	}
	if list.Params != nil && list.Params.Cursor != "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "tools/list: there is only one page; leave the cursor out"}
	}
	// The same facts as those of a call: else the list would show tools that calls do not reach, or hide others.
	caller := id.caller(list.ClientInfo())
	caller.Surface = toolward.SurfaceMCP
	if caller.Session, err = id.session(list.Session.ID(), time.Now()); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	visible := s.config.Gateway.Tools(caller)
	result := &sdk.ListToolsResult{Tools: make([]*sdk.Tool, 0, len(visible))}
	for _, tool := range visible {
		shown, err := s.inputSchema(tool)
		if err != nil {
			s.log.Warn("a tool is not listed: its schema cannot be shown", "tool", tool.Name, "err", err)
			continue
		}
		result.Tools = append(result.Tools, &sdk.Tool{Name: tool.Name, Description: tool.Description, InputSchema: shown})
	}
	result.CacheScope = "private"
	return result, nil
}

// inputSchema is the schema that clients are shown. That of a foreign tool gets a plain object at its root: one odd
// schema makes some clients refuse the whole list.
func (s *Server) inputSchema(tool *toolward.Tool) (json.RawMessage, error) {
	switch {
	case len(tool.Schema) == 0:
		return json.RawMessage(`{"type":"object"}`), nil
	case tool.Plugin == "":
		return tool.Schema, nil
	}
	return s.prepared.Prepare("", tool.Schema)
}

// namedKey is the context key of the tool name that the client gave.
type namedKey struct{}

// leadToGate hands a call of any name to the one handler. The SDK would answer an unknown name by itself, in words
// that differ from those of a refusal, and without a record.
func (s *Server) leadToGate(ctx context.Context, method string, req sdk.Request, next sdk.MethodHandler) (sdk.Result, error) {
	call, ok := req.(*sdk.CallToolRequest)
	if !ok || call.Params == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "tools/call: missing parameters"}
	}
	params := *call.Params
	params.Name = gateTool
	led := &sdk.CallToolRequest{Session: call.Session, Params: &params, Extra: call.Extra}
	return next(context.WithValue(ctx, namedKey{}, call.Params.Name), method, led)
}
