package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/schema"
)

// Bounds of what is said to and by plug-ins outside.
const (
	maxAnswer     = schema.MaxBytes // bytes of one answer
	maxResultText = 64 << 10        // bytes of a result's text in an event
)

// outside turns events into JSON without secrets, and answers of a plug-in outside the gateway into results.
type outside struct {
	line   asker
	redact *redact.Redactor
}

// The events and answers as plug-ins outside see them.
type (
	wireRequest struct {
		ID    string          `json:"id"`
		Hook  Name            `json:"hook"`
		Event json.RawMessage `json:"event"`
		Ctx   json.RawMessage `json:"ctx"`
	}
	wireContext struct {
		AgentID    string              `json:"agentId"`
		SessionKey toolward.SessionKey `json:"sessionKey"`
		ToolName   string              `json:"toolName"`
		RunID      string              `json:"runId,omitempty"`
		ToolCallID string              `json:"toolCallId,omitempty"`
		ByClient   bool                `json:"byClient,omitempty"`
		Requester  *wireRequester      `json:"requester,omitempty"`
	}
	wireRequester struct {
		Channel       string `json:"channel,omitempty"`
		AccountID     string `json:"accountId,omitempty"`
		SenderID      string `json:"senderId,omitempty"`
		SenderIsOwner bool   `json:"senderIsOwner,omitempty"` // missing is "not proven", never "no"
	}
	wireEvent struct {
		ToolName   string          `json:"toolName"`
		Params     json.RawMessage `json:"params"`
		ToolCallID string          `json:"toolCallId,omitempty"`
		RunID      string          `json:"runId,omitempty"`
		Status     toolward.Status `json:"status,omitempty"`
		Result     *wireResult     `json:"result,omitempty"`
		Error      string          `json:"error,omitempty"`
		DurationMs *int64          `json:"durationMs,omitempty"`
	}
	wireResult struct {
		Content   []wireContent `json:"content"`
		IsError   bool          `json:"isError,omitempty"`
		Truncated bool          `json:"truncated,omitempty"`
	}
	wireContent struct {
		Type  string `json:"type"` // text or binary
		Text  string `json:"text,omitempty"`
		MIME  string `json:"mimeType,omitempty"`
		Bytes int    `json:"bytes,omitempty"` // of binary content, which is not sent
	}
	reply struct {
		ID     string          `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  string          `json:"error"`
	}
	wireBefore struct {
		Params          json.RawMessage `json:"params"`
		Block           bool            `json:"block"`
		BlockReason     string          `json:"blockReason"`
		RequireApproval json.RawMessage `json:"requireApproval"`
	}
)

func wireContextOf(c CallContext) ([]byte, error) {
	w := wireContext{c.AgentID, c.SessionKey, c.ToolName, c.RunID, c.ToolCallID, c.ByClient, nil}
	if c.Requester != (Requester{}) {
		w.Requester = &wireRequester{c.Requester.Channel, c.Requester.AccountID, c.Requester.SenderID, c.Requester.SenderIsOwner}
	}
	return json.Marshal(w)
}

// paramsOf is the JSON object of parameters; no parameters are an empty object.
func paramsOf(p toolward.Params) []byte {
	if p.Len() == 0 {
		return []byte("{}")
	}
	return p.Canonical()
}

func (o *outside) before(ctx context.Context, e BeforeToolCallEvent) (BeforeToolCallResult, error) {
	seen, _, err := o.redact.JSON(paramsOf(e.Params))
	if err != nil {
		return BeforeToolCallResult{}, err
	}
	answer, err := o.send(ctx, BeforeToolCall, e.Call, wireEvent{
		ToolName: e.Call.ToolName, Params: seen, ToolCallID: e.Call.ToolCallID, RunID: e.Call.RunID,
	})
	if err != nil || answer == nil {
		return BeforeToolCallResult{}, err
	}
	wire, err := readBefore(answer)
	if err != nil {
		return BeforeToolCallResult{}, fmt.Errorf("its answer is not understood: %w", err)
	}
	result := BeforeToolCallResult{Block: wire.Block, BlockReason: wire.BlockReason}
	if wire.Block {
		return result, nil // whatever else it says
	}
	if result.RequireApproval, err = wanted(wire.RequireApproval); err != nil {
		return BeforeToolCallResult{}, err
	}
	if len(wire.Params) > 0 && wire.Params[0] == '{' { // anything but an object changes nothing
		result.Params, err = o.changes(wire.Params, seen, e.Params)
	}
	return result, err
}

// readBefore reads the result of before_tool_call.
func readBefore(raw json.RawMessage) (wire wireBefore, err error) {
	return wire, strict(raw, &wire, "params", "block", "blockReason", "requireApproval")
}

// strict reads a canonical JSON object that has no fields but these. A field that is misspelt, in case only too, could
// be a guard's "no".
func strict(canonical []byte, into any, fields ...string) error {
	var names map[string]json.RawMessage
	if err := json.Unmarshal(canonical, &names); err != nil || names == nil {
		return errors.New("it is not an object")
	}
	for name := range names {
		if !slices.Contains(fields, name) {
			return fmt.Errorf("it has a field %q; those that are known are %s", shortened(name), strings.Join(fields, ", "))
		}
	}
	return json.Unmarshal(canonical, into)
}

// wanted reads requireApproval: true or an object (a title and the like, which people see from Toolward itself).
func wanted(raw json.RawMessage) (bool, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null" || string(raw) == "false":
		return false, nil
	case string(raw) == "true" || raw[0] == '{':
		return true, nil
	}
	return false, errors.New("its answer is not understood: requireApproval is neither true nor an object")
}

// changes reads the parameters that a plug-in returned. It was shown placeholders for secrets; a text that it returns
// as it was shown is the secret that stood there.
func (o *outside) changes(raw, seen json.RawMessage, original toolward.Params) (Changes, error) {
	returned, err := objectOf(raw)
	if err != nil {
		return Changes{}, err
	}
	shown, err := objectOf(seen)
	if err != nil {
		return Changes{}, err
	}
	restored, err := restore(returned, shown, original.Object())
	if err != nil {
		return Changes{}, err
	}
	return Change(restored.(map[string]any)), nil
}

func objectOf(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	return object, nil
}

// restore puts the original texts where placeholders were returned unchanged. A placeholder anywhere else is an error:
// the call would run with the placeholder instead of what the caller meant, or a secret would go where the plug-in
// wants it.
func restore(returned, shown, original any) (any, error) {
	switch v := returned.(type) {
	case string:
		if !redact.Hidden(v) {
			return v, nil
		}
		if before, ok := shown.(string); ok && before == v {
			return original, nil
		}
		return nil, errors.New("it returned the placeholder of a hidden secret in a changed text: return the text as it was shown, or leave the parameter out")
	case map[string]any:
		before, _ := shown.(map[string]any)
		was, _ := original.(map[string]any)
		for name, element := range v {
			var err error
			if v[name], err = restore(element, before[name], was[name]); err != nil {
				return nil, err
			}
		}
	case []any:
		before, _ := shown.([]any)
		was, _ := original.([]any)
		for i := range v {
			var b, w any
			if i < len(before) && i < len(was) {
				b, w = before[i], was[i]
			}
			var err error
			if v[i], err = restore(v[i], b, w); err != nil {
				return nil, err
			}
		}
	}
	return returned, nil
}

func (o *outside) after(ctx context.Context, e AfterToolCallEvent) error {
	params, _, err := o.redact.JSON(paramsOf(e.Params))
	if err != nil {
		return err
	}
	event := wireEvent{
		ToolName: e.Call.ToolName, Params: params, ToolCallID: e.Call.ToolCallID, RunID: e.Call.RunID,
		Status: e.Status, Result: o.result(e.Result), Error: o.redact.String(e.Error),
	}
	if e.Duration > 0 {
		ms := e.Duration.Milliseconds()
		event.DurationMs = &ms
	}
	_, err = o.send(ctx, AfterToolCall, e.Call, event)
	return err
}

// result shows a result without secrets and without binary content. Text is cleaned before it is cut: half a secret
// would not be recognized.
func (o *outside) result(r *toolward.Result) *wireResult {
	if r == nil {
		return nil
	}
	w := &wireResult{Content: []wireContent{}, IsError: r.IsError}
	left := maxResultText
	for _, c := range r.Content {
		if c.MIME != "" || c.Data != nil {
			w.Content = append(w.Content, wireContent{Type: "binary", MIME: c.MIME, Bytes: len(c.Data)})
			continue
		}
		text := o.redact.String(c.Text)
		if len(text) > left {
			text, w.Truncated = text[:left], true
		}
		left -= len(text)
		w.Content = append(w.Content, wireContent{Type: "text", Text: text})
	}
	return w
}

// send carries an event to the plug-in; a nil answer is none.
func (o *outside) send(ctx context.Context, hook Name, call CallContext, e wireEvent) (json.RawMessage, error) {
	var event bytes.Buffer
	encoder := json.NewEncoder(&event)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, err
	}
	about, err := wireContextOf(call)
	if err != nil {
		return nil, err
	}
	answer, err := o.line.ask(ctx, bytes.TrimSpace(event.Bytes()), hook, about)
	switch {
	case err != nil:
		return nil, err
	case answer.Error != "":
		return nil, fmt.Errorf("it reports an error: %s", shortened(answer.Error))
	case string(answer.Result) == "null":
		return nil, nil
	}
	return answer.Result, nil
}

// readReply reads one answer. Duplicate keys, broken text and the like are refused at any depth.
func readReply(raw []byte) (r reply, err error) {
	canonical, err := schema.Canonicalize(raw)
	if err != nil {
		return r, err
	}
	return r, strict(canonical, &r, "id", "result", "error")
}
