package toolward_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

func TestForm(t *testing.T) {
	runs := func(context.Context, *toolward.Request) (toolward.Result, error) {
		return toolward.TextResult("ran"), nil
	}
	one := toolward.NewParams([]byte(`{"n":1}`), map[string]any{"n": json.Number("1")})
	form := toolward.Tool{Name: "x", Decode: func(json.RawMessage) (toolward.Params, error) { return one, nil }}
	running := form
	running.Run = runs

	for _, test := range []struct {
		name     string
		tool     string
		form     *toolward.Tool
		byClient bool
		admitted bool
	}{
		{"form of the client's tool", "x", &form, true, true},
		{"a form for a call that Toolward runs", "x", &form, false, false},
		{"a form of another name", "y", &form, true, false},
		{"a form that could be run", "x", &running, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := gatetest.New(t, toolward.Allow, &toolward.Tool{Name: "x", Run: runs}, &toolward.Tool{Name: "y", Run: runs})
			c := call(test.tool, `{"n":2}`)
			c.Form, c.ByClient = test.form, test.byClient
			pass, err := h.Admit(t.Context(), c)
			var refusal *toolward.Refusal
			switch {
			case !test.admitted && (!errors.As(err, &refusal) || refusal.Code != toolward.CodeUnknownTool):
				t.Errorf("admitted, or refused for another reason: %v", err)
			case test.admitted && err != nil:
				t.Errorf("refused: %v", err)
			case test.admitted && string(pass.Request().Params.Canonical()) != `{"n":1}`:
				t.Errorf("the form's decoder was not used: %s", pass.Request().Params.Canonical())
			}
		})
	}
}

// holder is a policy that knows only its own tools.
type holder struct{ held toolward.Snapshot }

func (h holder) Snapshot() toolward.Snapshot { return struct{ toolward.Snapshot }{h.held} }

func TestFormNeedsAnAdopter(t *testing.T) {
	h := gatetest.New(t, toolward.Allow)
	g, err := toolward.New(toolward.Config{
		Policy: holder{h.Policy}, Approver: h.Approver, Auditor: h.Auditor, Sessions: h.Sessions,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := call("x", `{}`)
	c.Form, c.ByClient = &toolward.Tool{Name: "x"}, true
	if _, err := g.Admit(t.Context(), c); err == nil {
		t.Error("a policy that cannot judge foreign tools admitted one")
	}
}

func TestClientAsks(t *testing.T) {
	for _, test := range []struct {
		name                string
		verdict             toolward.Verdict
		byClient            bool
		clientAsks, askedUs bool
		admitted            bool
	}{
		{"the client puts the question to its person", toolward.Ask, true, true, false, true},
		{"what needs no question is not asked", toolward.Allow, true, false, false, true},
		{"what is refused stays refused", toolward.Deny, true, false, false, false},
		{"a call that Toolward runs is asked here", toolward.Ask, false, false, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := gatetest.New(t, test.verdict, &toolward.Tool{Name: "x"})
			c := call("x", `{}`)
			c.ByClient, c.ClientAsks = test.byClient, true
			pass, err := h.Admit(t.Context(), c)
			if (err == nil) != test.admitted {
				t.Fatalf("error %v, want admitted %t", err, test.admitted)
			}
			if pass != nil && pass.ClientAsks() != test.clientAsks {
				t.Errorf("the client asks: %t, want %t", pass.ClientAsks(), test.clientAsks)
			}
			if asked := len(h.Approver.Asked()) > 0; asked != test.askedUs {
				t.Errorf("people were asked here: %t, want %t", asked, test.askedUs)
			}
		})
	}
}
