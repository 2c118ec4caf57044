package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/toolward/toolward/server/door"
)

// Versions of the protocol that this server speaks.
const (
	oldestVersion = 3
	newestVersion = 4
)

// Request is a frame of a client: type "req".
type Request struct {
	ID     string
	Method string
	Params json.RawMessage // nil if there were none
}

// Error is what a response carries when it is not ok.
type Error struct {
	Code         string         `json:"code"`
	Message      string         `json:"message"`
	Details      map[string]any `json:"details,omitempty"`
	Retryable    bool           `json:"retryable,omitempty"`
	RetryAfterMs int64          `json:"retryAfterMs,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Codes of errors.
const (
	codeInvalid     = "INVALID_REQUEST"
	codeUnavailable = "UNAVAILABLE"
	codeNotPaired   = "NOT_PAIRED"
	codeForbidden   = "FORBIDDEN" // to clients of version 4
)

func invalid(format string, args ...any) *Error {
	return &Error{Code: codeInvalid, Message: fmt.Sprintf(format, args...)}
}

func unavailable(format string, args ...any) *Error {
	return &Error{Code: codeUnavailable, Message: fmt.Sprintf(format, args...), Retryable: true}
}

// frameError is a frame that is no request. ID is the id to answer with.
type frameError struct {
	ID   string
	Text string
}

func (e *frameError) Error() string { return "invalid request frame: " + e.Text }

// unknownID answers a frame whose id is not a text.
const unknownID = "invalid"

const longestTrace = 128 // characters of a traceparent

// readRequest reads a request frame. Every error is a *frameError: the frame has other fields than a request, or other
// values.
func readRequest(raw []byte) (Request, error) {
	fail := func(id, format string, args ...any) (Request, error) {
		return Request{}, &frameError{id, fmt.Sprintf(format, args...)}
	}
	if !utf8.Valid(raw) {
		return fail(unknownID, "not valid text (UTF-8)")
	}
	fields, err := splitObject(raw)
	if err != nil {
		return fail(unknownID, "%s", err)
	}
	id, isText := textOf(fields["id"])
	if !isText {
		return fail(unknownID, "id must be a text")
	}
	for name := range fields {
		switch name {
		case "type", "id", "method", "params", "traceparent":
		default:
			return fail(id, "%s is not a field of a request", door.QuoteShort(name))
		}
	}
	kind, _ := textOf(fields["type"])
	method, isMethod := textOf(fields["method"])
	trace, isTrace := textOf(fields["traceparent"])
	switch {
	case kind != "req":
		return fail(id, `type must be "req"`)
	case id == "":
		return fail(id, "id must not be empty")
	case !isMethod || method == "":
		return fail(id, "method must be a text that is not empty")
	case fields["traceparent"] != nil && (!isTrace || utf8.RuneCountInString(trace) > longestTrace):
		return fail(id, "traceparent must be a text of at most %d characters", longestTrace)
	}
	return Request{ID: id, Method: method, Params: fields["params"]}, nil
}

// splitObject takes the fields of an object apart without looking into them. A name that stands twice is refused: two
// readers could take different ones for the true one.
func splitObject(raw []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	fields := map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, errors.New("not valid JSON")
		}
		name := token.(string) // within an object the decoder gives nothing else here
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("%s stands there twice", door.QuoteShort(name))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errors.New("not valid JSON")
		}
		fields[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("not valid JSON")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return fields, nil
}

func textOf(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(raw, &text) == nil
}

// response is a frame of the server: type "res".
type response struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	OK      bool   `json:"ok"`
	Payload any    `json:"payload,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// encodeResponse writes an answer. An answer that cannot be written is an error to the client, never silence.
func encodeResponse(id string, payload any, failed *Error) []byte {
	raw, err := encode(response{Type: "res", ID: id, OK: failed == nil, Payload: payload, Error: failed})
	if err != nil {
		raw, _ = encode(response{Type: "res", ID: id, Error: unavailable("the answer cannot be written")})
	}
	return raw
}

// eventHead is the frame of an event without its end, so that many connections share it: each adds its own number.
func eventHead(name string, payload any, version *stateVersion) ([]byte, error) {
	raw, err := encode(struct {
		Type    string        `json:"type"`
		Event   string        `json:"event"`
		Payload any           `json:"payload,omitempty"`
		Version *stateVersion `json:"stateVersion,omitempty"`
	}{"event", name, payload, version})
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", name, err)
	}
	return raw[:len(raw)-1], nil
}

// encode writes JSON as it is: no browser reads it as HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// closing is why a connection ends, as its client is told.
type closing struct {
	code   int
	reason string
}

// Codes with which connections are closed.
const (
	closeNormal   = 1000
	closeProtocol = 1002
	closePolicy   = 1008
	closeTooBig   = 1009
	closeRestart  = 1012
)

const longestReason = 123 // bytes that fit into a close frame

// shortReason cuts a reason to what fits, between characters.
func shortReason(text string) string {
	if len(text) <= longestReason {
		return text
	}
	end := longestReason
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
