package protocol

import (
	"context"
	"encoding/json"
	"runtime/debug"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
)

// call is one request that is being answered.
type call struct {
	*conn
	id     string
	method *method
	params json.RawMessage
}

// first sends an answer that is not the last one with this id.
func (c *call) first(payload any) { c.queue.answer(encodeResponse(c.id, payload, nil)) }

// scopes are those of the connection.
func (c *call) scopes() []string { return c.admitted.scopes }

// take answers one frame, in a goroutine of its own where that may take time.
func (c *conn) take(ctx context.Context, raw []byte) {
	request, err := readRequest(raw)
	if err != nil {
		wrong := err.(*frameError) // readRequest returns no other
		c.queue.answer(encodeResponse(wrong.ID, nil, invalid("%s", wrong)))
		return
	}
	refuse := func(e *Error) { c.queue.answer(encodeResponse(request.ID, nil, e)) }
	if refused := c.authorize(request.Method); refused != nil {
		refuse(refused)
		if c.wrongRole > maxWrongRole {
			c.queue.close(closing{closePolicy, "repeated unauthorized calls"})
		}
		return
	}
	m := c.server.methods[request.Method]
	if m == nil {
		refuse(invalid("unknown method: %s", shortReason(request.Method)))
		return
	}
	size := int64(len(request.Params))
	if c.inFlight.Load() >= maxInFlight || c.paramSize.Load() > maxParamsQueued {
		refuse(unavailable("too many requests of this connection are being answered"))
		return
	}
	c.inFlight.Add(1)
	c.paramSize.Add(size)
	c.server.busy.Go(func() {
		defer c.inFlight.Add(-1)
		defer c.paramSize.Add(-size)
		payload, failed := c.run(ctx, &call{c, request.ID, m, request.Params})
		c.queue.answer(encodeResponse(request.ID, payload, failed))
	})
}

// authorize checks role, scope and, for what only people may do, the person. nil lets the call go on.
func (c *conn) authorize(name string) *Error {
	if name == "connect" {
		return invalid("connect is only valid as the first request")
	}
	scope, wrongRole := missingScope(name, c.admitted.role, c.admitted.scopes)
	if wrongRole {
		c.wrongRole++
		return invalid("unauthorized role: %s", c.admitted.role)
	}
	c.wrongRole = 0
	if scope != "" {
		return c.forbidden("missing scope: "+scope, map[string]any{
			"code": "MISSING_SCOPE", "missingScope": scope, "requiredScopes": []string{methodScope(name)},
		})
	}
	if m := c.server.methods[name]; m != nil && m.does != "" {
		if err := c.visitor().May(m.does); err != nil {
			return c.personNeeded(m.does.Right())
		}
	}
	return nil
}

// visitor is the connection at the desk.
func (c *conn) visitor() desk.Visitor {
	return desk.Visitor{By: c.by, Client: c.admitted.client.ID, Connection: c.id, Device: c.admitted.deviceID, Scopes: c.admitted.scopes}
}

// personNeeded refuses what only people may do. The gateway's shared secret may be known to an agent: it is no person.
func (c *conn) personNeeded(right identity.Right) *Error {
	return c.forbidden("only a person may "+string(right)+": pair this device from a signed-in terminal or the console (toolward devices approve)",
		map[string]any{"code": "PERSON_REQUIRED"})
}

// forbidden is an authorization failure as the client's version knows it.
func (c *conn) forbidden(text string, details map[string]any) *Error {
	if c.admitted.version < newestVersion {
		return &Error{Code: codeInvalid, Message: text}
	}
	return &Error{Code: codeForbidden, Message: text, Details: details}
}

// run answers one request. A method that panics refuses.
func (c *conn) run(ctx context.Context, r *call) (payload any, failed *Error) {
	defer func() {
		if v := recover(); v != nil {
			c.server.log.Error("a request panicked", "method", r.method.name, "panic", v, "stack", string(debug.Stack()))
			payload, failed = nil, &Error{Code: codeUnavailable, Message: "internal error"}
		}
	}()
	return r.method.handle(ctx, r)
}
