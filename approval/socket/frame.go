package socket

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Types of frames.
const (
	typeRequest  = "request"
	typeApproval = "approval"
	typeExec     = "exec"
	typeDecision = "decision"
	typeResult   = "exec-res"
)

// CommandRequest is what a request frame says of a command. Empty fields were absent or null.
type CommandRequest struct {
	Command      string `json:"command"`
	WorkDir      string `json:"cwd,omitempty"`
	Host         string `json:"host,omitempty"`
	Security     string `json:"security,omitempty"`
	Ask          string `json:"ask,omitempty"`
	Agent        string `json:"agentId,omitempty"`
	ResolvedPath string `json:"resolvedPath,omitempty"`
	Session      string `json:"sessionKey,omitempty"`
}

// CallRequest is what an approval frame says of a call.
type CallRequest struct {
	Kind        string          `json:"kind"` // exec or tool
	Tool        string          `json:"tool,omitempty"`
	CallID      string          `json:"toolCallId,omitempty"`
	Title       string          `json:"title"`
	Description string          `json:"description,omitempty"`
	Severity    string          `json:"severity,omitempty"`
	Class       string          `json:"riskClass,omitempty"`
	Level       string          `json:"runtimeLevel,omitempty"`
	Reasons     []string        `json:"reasons,omitempty"`
	Preview     json.RawMessage `json:"preview,omitempty"`
	Digest      string          `json:"paramsDigest,omitempty"`
	Binding     string          `json:"bindingDigest,omitempty"`
	Diff        string          `json:"diff,omitempty"`
	Targets     []string        `json:"targets,omitempty"`
	Allowed     []string        `json:"allowedDecisions,omitempty"`
	Command     string          `json:"command,omitempty"`
	WorkDir     string          `json:"cwd,omitempty"`
	Host        string          `json:"host,omitempty"`
	Agent       string          `json:"agentId,omitempty"`
	Session     string          `json:"sessionKey,omitempty"`
	TimeoutMs   int64           `json:"timeoutMs,omitempty"`
}

// ExecRequest is the command of an exec frame.
type ExecRequest struct {
	Command              []string          `json:"command"`
	RawCommand           string            `json:"rawCommand,omitempty"`
	WorkDir              string            `json:"cwd,omitempty"`
	Env                  map[string]string `json:"env,omitempty"`
	TimeoutMs            int64             `json:"timeoutMs,omitempty"`
	NeedsScreenRecording bool              `json:"needsScreenRecording,omitempty"`
	Agent                string            `json:"agentId,omitempty"`
	Session              string            `json:"sessionKey,omitempty"`
	Decision             string            `json:"approvalDecision,omitempty"`
}

// ExecResult is how a command ended.
type ExecResult struct {
	ExitCode *int   `json:"exitCode"`
	TimedOut bool   `json:"timedOut"`
	Success  bool   `json:"success"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	Error    string `json:"error,omitempty"`
}

// Refusal is why a frame was not carried out. It travels as the error of an answer.
type Refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

func (r *Refusal) Error() string { return r.Message + " (" + r.Code + ", " + r.Reason + ")" }

// The refusals of authentication, in the order of the checks.
var (
	errExpired  = &Refusal{"INVALID_REQUEST", "expired request", "ttl"}
	errAuth     = &Refusal{"INVALID_REQUEST", "invalid auth", "hmac"}
	errReplayed = &Refusal{"INVALID_REQUEST", "replayed request", "replay"}
	errPayload  = &Refusal{"INVALID_REQUEST", "invalid payload", "json"}
)

// decisionAnswer is the answer to request and approval frames. The fields below Reason are there when an approval
// frame was not even looked at.
type decisionAnswer struct {
	Type     string   `json:"type"`
	ID       string   `json:"id"`
	Decision string   `json:"decision"`
	Reason   string   `json:"reason,omitempty"`
	OK       *bool    `json:"ok,omitempty"`
	Error    *Refusal `json:"error,omitempty"`
}

// execAnswer is the answer to exec frames.
type execAnswer struct {
	Type    string      `json:"type"`
	ID      string      `json:"id"`
	OK      bool        `json:"ok"`
	Payload *ExecResult `json:"payload,omitempty"`
	Error   *Refusal    `json:"error,omitempty"`
}

// frame is one line that was understood.
type frame struct {
	kind string
	id   string

	token   string // request
	command CommandRequest

	nonce, digest, payload string // approval and exec
	ts                     int64
}

var errMalformed = errors.New("not a frame of the approval socket")

// readFrame understands a line, or says that it is no frame. Names of fields are compared exactly: a decoder that
// also takes "Token" for "token" lets two programs read two different questions in one line.
func readFrame(line []byte) (*frame, error) {
	o, err := object(line)
	if err != nil {
		return nil, err
	}
	f := &frame{}
	if !o.text("type", &f.kind) || !o.text("id", &f.id) || f.id == "" || len(f.id) > 256 {
		return nil, errMalformed
	}
	switch f.kind {
	case typeRequest:
		raw, ok := o["request"]
		if !ok || !o.text("token", &f.token) {
			return nil, errMalformed
		}
		about, err := object(raw)
		if err != nil || !about.exactly(&f.command, commandFields) || f.command.Command == "" {
			return nil, errMalformed
		}
	case typeApproval, typeExec:
		if !o.text("nonce", &f.nonce) || !o.text("hmac", &f.digest) || !o.text("requestJson", &f.payload) || !o.integer("ts", &f.ts) || !isNonce(f.nonce) {
			return nil, errMalformed
		}
	default:
		return nil, errMalformed
	}
	return f, nil
}

// idOf is the id of a line that may be no frame at all; "" if it has none.
func idOf(line []byte) (id string) {
	if o, err := object(line); err == nil && o.text("id", &id) && len(id) <= 256 {
		return id
	}
	return ""
}

// fields is a JSON object whose members are still undecoded.
type fields map[string]json.RawMessage

// object reads exactly one object with each name once: of two values of one name, this end could show one and another
// end run the other.
func object(raw []byte) (fields, error) {
	if !utf8.Valid(raw) {
		return nil, errMalformed
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errMalformed
	}
	out := fields{}
	for d.More() {
		name, err := d.Token()
		text, ok := name.(string)
		var value json.RawMessage
		if err != nil || !ok || out[text] != nil || d.Decode(&value) != nil {
			return nil, errMalformed
		}
		out[text] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errMalformed
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errMalformed
	}
	return out, nil
}

func (o fields) text(name string, into *string) bool {
	raw, ok := o[name]
	return ok && len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, into) == nil
}

func (o fields) integer(name string, into *int64) bool {
	raw, ok := o[name]
	return ok && raw[0] != 'n' && json.Unmarshal(raw, into) == nil
}

// exactly decodes the named members into v; others are left out, as programs of other versions send more.
func (o fields) exactly(v any, names []string) bool {
	known := make(fields, len(names))
	for _, name := range names {
		if raw, ok := o[name]; ok {
			known[name] = raw
		}
	}
	raw, err := json.Marshal(known)
	return err == nil && json.Unmarshal(raw, v) == nil
}

var (
	commandFields = []string{"command", "cwd", "host", "security", "ask", "agentId", "resolvedPath", "sessionKey"}
	callFields    = []string{
		"kind", "tool", "toolCallId", "title", "description", "severity", "riskClass", "runtimeLevel", "reasons", "preview", "paramsDigest",
		"bindingDigest", "diff", "targets", "allowedDecisions", "command", "cwd", "host", "agentId", "sessionKey", "timeoutMs",
	}
	execFields = []string{
		"command", "rawCommand", "cwd", "env", "timeoutMs", "needsScreenRecording", "agentId", "sessionKey", "approvalDecision",
	}
)

// callOf reads the body of an approval frame.
func callOf(payload string) (*CallRequest, error) {
	c := &CallRequest{}
	o, err := object([]byte(payload))
	if err != nil || !o.exactly(c, callFields) || c.Kind != "exec" && c.Kind != "tool" || c.Title == "" || c.TimeoutMs < 0 ||
		utf8.RuneCountInString(c.Title) > maxTitle || utf8.RuneCountInString(c.Description) > maxDescription || len(c.Reasons) > maxReasons {
		return nil, errPayload
	}
	return c, nil
}

// What a question may hold.
const (
	maxTitle       = 80   // characters
	maxDescription = 4000 // characters
	maxReasons     = 16
)

// execOf reads the body of an exec frame.
func execOf(payload string) (*ExecRequest, error) {
	e := &ExecRequest{}
	o, err := object([]byte(payload))
	if err != nil || !o.exactly(e, execFields) || len(e.Command) == 0 || e.Command[0] == "" || e.TimeoutMs < 0 {
		return nil, errPayload
	}
	return e, nil
}

// encodeLine writes an answer or a frame as one line.
func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a line of the approval socket: %w", err)
	}
	if b.Len()-1 > maxLine {
		return nil, fmt.Errorf("a line of the approval socket has %d bytes, at most %d fit", b.Len()-1, maxLine)
	}
	return b.Bytes(), nil
}

// isNonce accepts 16 bytes in hexadecimal. A nonce with a colon could shift what belongs to the time into it.
func isNonce(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == nonceBytes
}
