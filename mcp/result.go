package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
)

// metaExternal is the result's _meta key that lists where content from outside came from.
const metaExternal = "toolward/external"

// finish turns what the gateway said into what the client gets. Only a result without an error is a tool's own.
func finish(result toolward.Result, err error) (*sdk.CallToolResult, error) {
	var (
		refusal *toolward.Refusal
		pending *toolward.Pending
	)
	switch {
	case err == nil:
		return resultOf(result), nil
	case errors.As(err, &refusal):
		return notRun(refusal), nil
	case errors.As(err, &pending):
		return notRun(pending), nil
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}, IsError: true}, nil
}

// notRun is the answer to a call that did not run, as text: {status:"denied", tool, code, message, retry} of a
// *toolward.Refusal, {status:"approval-pending", …} of a *toolward.Pending.
func notRun(why json.Marshaler) *sdk.CallToolResult {
	text, err := why.MarshalJSON()
	if err != nil { // cannot happen: it is texts
		text = []byte(`{"status":"denied","message":"The call did not run.","retry":"later"}`)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, IsError: true}
}

func resultOf(result toolward.Result) *sdk.CallToolResult {
	out := &sdk.CallToolResult{Content: make([]sdk.Content, 0, len(result.Content)), IsError: result.IsError}
	for _, c := range result.Content {
		out.Content = append(out.Content, contentOf(c))
	}
	if isObject(result.Structured) { // the older protocols know objects only
		out.StructuredContent = result.Structured
	}
	if len(out.Content) == 0 && len(result.Structured) > 0 {
		out.Content = append(out.Content, &sdk.TextContent{Text: string(result.Structured)})
	}
	if len(result.External) > 0 {
		out.Meta = sdk.Meta{metaExternal: result.External}
	}
	return out
}

func contentOf(c toolward.Content) sdk.Content {
	switch {
	case c.MIME == "" && c.Data == nil:
		return &sdk.TextContent{Text: c.Text}
	case strings.HasPrefix(c.MIME, "image/"):
		return &sdk.ImageContent{Data: c.Data, MIMEType: c.MIME}
	case strings.HasPrefix(c.MIME, "audio/"):
		return &sdk.AudioContent{Data: c.Data, MIMEType: c.MIME}
	}
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "toolward:result", MIMEType: c.MIME, Blob: c.Data}}
}

func isObject(data json.RawMessage) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && data[0] == '{' && json.Valid(data)
}
