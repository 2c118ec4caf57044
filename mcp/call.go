package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// maxName is the longest tool name that reaches the record as it is, in bytes. No tool's name is that long.
const maxName = 256

// exchange is one tools/call on its way: the request, and the call that the gateway is asked about.
type exchange struct {
	server   *Server
	request  *sdk.CallToolRequest
	identity Identity
	call     toolward.Call
}

// handleCall is the handler of every tools/call. Errors of the protocol's own are for calls that could not even be
// put to the gateway; everything else is a result that the model reads.
func (s *Server) handleCall(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	id, err := identityOf(ctx, req)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	ctx, cancel := withReason(ctx)
	defer cancel(nil)
	defer s.follow(req.Extra, cancel)()

	x, err := s.newExchange(ctx, req, id)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	key := string(x.call.Session)
	if !s.calls.enter(key) {
		// Without a limit one client could start calls without end, each with a goroutine and a question to people.
		return nil, &jsonrpc.Error{Code: codeBusy, Message: fmt.Sprintf("%d calls are in flight already: wait for one to end", s.config.MaxCalls)}
	}
	defer s.calls.leave(key)
	return x.run(ctx)
}

// withReason returns a context that ends with ctx, but tells a client's cancellation from its disappearance in the
// approval's words: both take the question back, and the record says which it was.
func withReason(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if errors.Is(cause, context.Canceled) {
			cause = approval.ErrCanceled
		}
		cancel(cause)
	})
	return out, func(cause error) {
		stop()
		cancel(cause)
	}
}

// codeBusy is the JSON-RPC error of a client with too many calls in flight; MCP leaves this number to servers.
const codeBusy = -32000

// newExchange makes the gateway's call out of the client's. Only tool name, arguments and the names of client and
// call come from the message.
func (s *Server) newExchange(ctx context.Context, req *sdk.CallToolRequest, id Identity) (*exchange, error) {
	now := time.Now()
	session, err := id.session(req.Session.ID(), now)
	if err != nil {
		return nil, err
	}
	name, _ := ctx.Value(namedKey{}).(string)
	name = truncate(name, maxName)
	return &exchange{
		server: s, request: req, identity: id,
		call: toolward.Call{
			ID:         callID(req.Params),
			Run:        s.runs.current(session, now),
			Tool:       name,
			NativeName: name,
			Arguments:  arguments(req.Params),
			Caller:     id.caller(clientInfo(req)),
			Session:    session,
			Surface:    toolward.SurfaceMCP,
			WorkDir:    id.Workspace,
			Host:       s.config.Host,
		},
	}, nil
}

// arguments returns the bytes that arrived. MCP lets a call without arguments leave them out; that, and only that,
// is the empty object.
func arguments(params *sdk.CallToolParamsRaw) json.RawMessage {
	if params.Arguments == nil {
		return json.RawMessage(`{}`)
	}
	return params.Arguments
}

// callID names the call in the record: the client's own name for it where the client gives one, so that records of
// its hooks and of its MCP calls can be told to be about the same.
func callID(params *sdk.CallToolParamsRaw) string {
	if id, ok := params.Meta["claudecode/toolUseId"].(string); ok && id != "" && len(id) <= 128 {
		return id
	}
	return rand.Text()
}

// run takes the call through the gateway, in the way that tells this client most about a wait.
func (x *exchange) run(ctx context.Context) (*sdk.CallToolResult, error) {
	switch {
	case x.request.Params.RequestState != "":
		return x.resume(ctx)
	case x.manyRounds() && x.showsLinks():
		return x.firstRound(ctx)
	case x.tellsClient():
		return x.wait(ctx)
	}
	return finish(x.server.config.Gateway.Call(ctx, x.call))
}

// firstRound answers at once: with what the call came to or, if people must decide, with the link for another round.
func (x *exchange) firstRound(ctx context.Context) (*sdk.CallToolResult, error) {
	detached := x.call
	detached.Detach = true
	pass, err := x.server.config.Gateway.Admit(ctx, detached)
	var pending *toolward.Pending
	switch {
	case err == nil:
		return finish(pass.Run(ctx))
	case errors.As(err, &pending):
		return x.inputRequired(ctx, pending)
	}
	return finish(toolward.Result{}, err)
}

// tellsClient reports whether a wait can be made known to the client.
func (x *exchange) tellsClient() bool {
	return x.request.Params.GetProgressToken() != nil || x.showsLinks()
}

// showsLinks reports whether the client can lead its user to the console.
func (x *exchange) showsLinks() bool {
	return x.server.config.ApprovalURL != nil && opensLinks(x.request)
}

// manyRounds reports whether the client speaks a protocol without server requests, by the SDK's own measure.
func (x *exchange) manyRounds() bool {
	init := x.request.Session.InitializeParams()
	return init == nil || init.ProtocolVersion >= version20260728
}
