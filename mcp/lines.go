package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// writeTimeout is how long one message may take to leave. A client that stops reading would otherwise hold the
// connection's write lock, and with it every other call of the connection, for ever.
const writeTimeout = 30 * time.Second

// errLineTooLong reports a message above the limit; the rest of its line has been thrown away.
var errLineTooLong = errors.New("message too long")

// lines is the stdio transport of MCP over any stream: one JSON-RPC message a line. Unlike the SDK's own it answers
// what it cannot read with a JSON-RPC error and carries on, so that one broken message does not end the connection of
// a client, and with it the calls that wait for people.
type lines struct {
	stream io.ReadWriteCloser
	limit  int // bytes of one message
}

// Connect implements [sdk.Transport].
func (t lines) Connect(context.Context) (sdk.Connection, error) {
	return &lineConn{stream: t.stream, limit: t.limit, in: bufio.NewReaderSize(t.stream, 32<<10)}, nil
}

type lineConn struct {
	stream io.ReadWriteCloser
	limit  int
	in     *bufio.Reader

	write sync.Mutex

	closing sync.Once
	closed  error
}

// SessionID implements [sdk.Connection]; a stream is its own session.
func (c *lineConn) SessionID() string { return "" }

// Read returns the next message. It answers and skips everything that is none.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		line, err := c.line()
		if errors.Is(err, errLineTooLong) {
			if err := c.refuse(ctx, tooLong(c.limit)); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			continue
		}
		message, bad := decodeMessage(line)
		if bad == nil {
			return message, nil
		}
		if isComplaint(line) {
			continue
		}
		if err := c.refuse(ctx, bad); err != nil {
			return nil, err
		}
	}
}

// line reads one line without its end and without surrounding white space, into memory of its own: the arguments
// of a call alias it while the next line is already being read.
func (c *lineConn) line() ([]byte, error) {
	var line []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if len(line)+len(part) > c.limit {
			return nil, c.skipLine(err)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSpace(line), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) > 0:
			return bytes.TrimSpace(line), nil // last line without an end; the next read says io.EOF again
		default:
			return nil, err
		}
	}
}

// skipLine throws away the rest of a line of which the last read ended with err.
func (c *lineConn) skipLine(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = c.in.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return errLineTooLong
}

// Write implements [sdk.Connection].
func (c *lineConn) Write(ctx context.Context, message jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	return c.send(data)
}

func (c *lineConn) refuse(ctx context.Context, bad *malformed) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.send(bad.response())
}

func (c *lineConn) send(data []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	if limited, ok := c.stream.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = limited.SetWriteDeadline(time.Now().Add(writeTimeout)) // a stream without deadlines just has none
	}
	if _, err := c.stream.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

// Close implements [sdk.Connection].
func (c *lineConn) Close() error {
	c.closing.Do(func() { c.closed = c.stream.Close() })
	return c.closed
}

// malformed is what a client is told about bytes that are no request, notification or response.
type malformed struct {
	code    int64
	message string
	id      json.RawMessage // of the message, if it has a readable one
}

func tooLong(limit int) *malformed {
	return &malformed{code: jsonrpc.CodeInvalidRequest, message: fmt.Sprintf("message is longer than %d bytes", limit)}
}

func (m *malformed) response() []byte {
	type wireError struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
	id := m.id
	if id == nil {
		id = json.RawMessage("null")
	}
	data, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   wireError       `json:"error"`
	}{"2.0", id, wireError{m.code, m.message}})
	if err != nil { // cannot happen: the id was read out of valid JSON
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}`)
	}
	return data
}

// decodeMessage reads one JSON-RPC message. The bytes of its parameters stay as they are.
func decodeMessage(data []byte) (jsonrpc.Message, *malformed) {
	if !json.Valid(data) {
		return nil, &malformed{code: jsonrpc.CodeParseError, message: "parse error: the message is not one JSON value"}
	}
	if data[0] != '{' {
		return nil, &malformed{code: jsonrpc.CodeInvalidRequest, message: "a message must be one JSON object; batches are not supported"}
	}
	if fault := envelopeFault(data); fault != "" {
		return nil, &malformed{code: jsonrpc.CodeInvalidRequest, message: fault, id: messageID(data)}
	}
	if request := plainRequest(data); request != nil {
		return request, nil
	}
	message, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil, &malformed{code: jsonrpc.CodeInvalidRequest, message: "invalid request: not a JSON-RPC 2.0 message within the limits", id: messageID(data)}
	}
	return message, nil
}

// isComplaint reports whether a message says that its sender could not read one of ours. It is never answered: two ends that
// answered each other's complaints, or one whose own words come back to it, would do so for ever.
func isComplaint(data []byte) bool {
	var envelope struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
		Error  json.RawMessage `json:"error"`
	}
	return json.Unmarshal(data, &envelope) == nil && envelope.Method == nil && envelope.Error != nil && (envelope.ID == nil || string(envelope.ID) == "null")
}

// messageID returns the id of a message that is otherwise unreadable, so that the client's call ends instead of
// hanging; nil if there is none that JSON-RPC allows.
func messageID(data []byte) json.RawMessage {
	var envelope struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(data, &envelope) != nil || len(envelope.ID) == 0 || len(envelope.ID) > 256 {
		return nil
	}
	switch first := envelope.ID[0]; {
	case first == '"', first == '-', first >= '0' && first <= '9':
		return envelope.ID
	}
	return nil
}
