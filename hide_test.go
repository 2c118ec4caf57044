package toolward_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/redact"
)

// bringer is a plug-in that puts a text into every result.
type bringer struct{ text string }

func (b bringer) Result(_ context.Context, _ *toolward.Request, r toolward.Result) (toolward.Result, error) {
	r.Content = append(r.Content, toolward.Content{Text: b.text})
	return r, nil
}

func (bringer) Before(context.Context, *toolward.Request) toolward.HookAnswer {
	return toolward.HookAnswer{}
}

func (bringer) After(context.Context, *toolward.Request, *toolward.OutcomeRecord, *toolward.Result) {}

// What a tool found goes to the agent without the secrets in it, whichever part of the result or of a failure they stand in.
func TestResultsHoldNoSecrets(t *testing.T) {
	const token, held = "ghp_0123456789abcdefghijklmnopqrstuvwxyzA", "correct-horse-battery"
	for name, c := range map[string]struct {
		result toolward.Result
		err    error
		keeps  string
	}{
		"a text":                {result: toolward.TextResult("KEY=" + token + " and more"), keeps: "and more"},
		"one of the gateway's":  {result: toolward.TextResult("the key is " + held + ", see")},
		"a failed result":       {result: toolward.ErrorResult("denied for " + token), keeps: "denied for"},
		"the second block":      {result: toolward.Result{Content: []toolward.Content{{Text: "a"}, {Text: token}}}, keeps: "a"},
		"structured":            {result: toolward.Result{Structured: json.RawMessage(`{"n":1,"out":"x ` + token + `"}`)}, keeps: `"n":1`},
		"a telling key":         {result: toolward.Result{Structured: json.RawMessage(`{"password":"` + held + `","n":2}`)}, keeps: `"n":2`},
		"not JSON":              {result: toolward.Result{Structured: json.RawMessage(token)}},
		"a resource of text":    {result: toolward.Result{Content: []toolward.Content{{MIME: "text/plain", Data: []byte("x " + token)}}}, keeps: "x "},
		"a resource of no kind": {result: toolward.Result{Content: []toolward.Content{{MIME: "application/json", Data: []byte(`"` + token + `"`)}}}},
		"a failure":             {err: &fs.PathError{Op: "open", Path: token, Err: fs.ErrNotExist}, keeps: "open"},
		"a picture stays":       {result: toolward.Result{Content: []toolward.Content{{MIME: "image/png", Data: []byte("\x89PNG" + "plain")}}}, keeps: "\x89PNGplain"},
	} {
		for _, plugged := range []bool{false, true} {
			tool := &toolward.Tool{Name: "x", Schema: []byte(`{"type":"object"}`), Run: func(context.Context, *toolward.Request) (toolward.Result, error) { return c.result, c.err }}
			h := gatetest.New(t, toolward.Allow, tool)
			gateway := h.With(t, func(config *toolward.Config) {
				config.Hider = redact.New(held)
				if plugged {
					config.Hooks = bringer{text: "brought " + token}
				}
			})
			result, err := gateway.Call(t.Context(), call("x", `{}`))
			if !errors.Is(err, c.err) {
				t.Errorf("%s: %v", name, err)
			}
			said := string(result.Structured)
			for _, block := range result.Content {
				said += " " + block.Text + string(block.Data)
			}
			if err != nil {
				said += err.Error()
			}
			if strings.Contains(said, token) || strings.Contains(said, held) || !strings.Contains(said, c.keeps) {
				t.Errorf("%s, plug-in %v: %q", name, plugged, said)
			}
		}
	}
}
