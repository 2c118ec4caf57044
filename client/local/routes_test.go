package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/internal/consoletest"
)

// Nothing but this test would notice a route that the API has no more: callers are told what the gateway says, whatever it is.
func TestEveryMethodHasARoute(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	g := local.At(w.Home)
	const id = "some"
	if _, err := g.SignIn(t.Context(), consoletest.Passphrase); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{
		"SignIn": true, "SignOut": true,
		"Watch": true, "FollowRecords": true, // they do not end by themselves; the terminal console and a script of the command line follow
	}
	only := func(_ any, err error) error { return err }
	for name, ask := range map[string]func(context.Context) error{
		"Status":           func(ctx context.Context) error { return only(g.Status(ctx)) },
		"Waiting":          func(ctx context.Context) error { return only(g.Waiting(ctx)) },
		"RecentlyAnswered": func(ctx context.Context) error { return only(g.RecentlyAnswered(ctx)) },
		"Approval":         func(ctx context.Context) error { return only(g.Approval(ctx, id)) },
		"Answer":           func(ctx context.Context) error { return only(g.Answer(ctx, id, local.Answer{Decision: "deny"})) },
		"Grants":           func(ctx context.Context) error { return only(g.Grants(ctx)) },
		"RevokeGrant":      func(ctx context.Context) error { return g.RevokeGrant(ctx, id) },
		"Allowlist":        func(ctx context.Context) error { return only(g.Allowlist(ctx)) },
		"ReplaceAllowlist": func(ctx context.Context) error { return only(g.ReplaceAllowlist(ctx, json.RawMessage("{}"), id)) },
		"AllowProgram":     func(ctx context.Context) error { return only(g.AllowProgram(ctx, local.AllowlistEntry{Pattern: id})) },
		"DisallowProgram":  func(ctx context.Context) error { return only(g.DisallowProgram(ctx, "*", id)) },
		"SetUp":            func(ctx context.Context) error { return only(g.SetUp(ctx, id, id)) },
		"CreateToken":      func(ctx context.Context) error { return only(g.CreateToken(ctx, local.NewToken{Metrics: true})) },
		"Tokens":           func(ctx context.Context) error { return only(g.Tokens(ctx)) },
		"RevokeToken":      func(ctx context.Context) error { return g.RevokeToken(ctx, id) },
		"Devices":          func(ctx context.Context) error { return only(g.Devices(ctx)) },
		"ApproveDevice":    func(ctx context.Context) error { return only(g.ApproveDevice(ctx, id)) },
		"RejectDevice":     func(ctx context.Context) error { return g.RejectDevice(ctx, id) },
		"RemoveDevice":     func(ctx context.Context) error { return g.RemoveDevice(ctx, id) },
		"PendingConfig":    func(ctx context.Context) error { return only(g.PendingConfig(ctx)) },
		"ApplyConfig":      func(ctx context.Context) error { return g.ApplyConfig(ctx, id) },
		"Explain": func(ctx context.Context) error {
			return only(g.Explain(ctx, local.ExplainRequest{Agent: "main", Tool: id}))
		},
		"ExplainTools":   func(ctx context.Context) error { return only(g.ExplainTools(ctx, local.ExplainRequest{Agent: "main"})) },
		"Level":          func(ctx context.Context) error { return only(g.Level(ctx, "agent:main:x")) },
		"SetLevel":       func(ctx context.Context) error { return only(g.SetLevel(ctx, "agent:main:x", "lockdown")) },
		"ClearLevel":     func(ctx context.Context) error { return only(g.ClearLevel(ctx, "agent:main:x", "")) },
		"Sandboxes":      func(ctx context.Context) error { return only(g.Sandboxes(ctx)) },
		"StopSandbox":    func(ctx context.Context) error { return g.StopSandbox(ctx, id) },
		"RemoveSandbox":  func(ctx context.Context) error { return g.RemoveSandbox(ctx, id) },
		"PruneSandboxes": func(ctx context.Context) error { return only(g.PruneSandboxes(ctx)) },
		"SandboxPorts":   func(ctx context.Context) error { return only(g.SandboxPorts(ctx, id)) },
		"PortForwards":   func(ctx context.Context) error { return only(g.PortForwards(ctx)) },
		"ForwardPort":    func(ctx context.Context) error { return only(g.ForwardPort(ctx, id, 3000, 0)) },
		"StopForward":    func(ctx context.Context) error { return g.StopForward(ctx, id, 3000) },
		"Records":        func(ctx context.Context) error { return only(g.Records(ctx, nil)) },
		"Decisions":      func(ctx context.Context) error { return only(g.Decisions(ctx, 1)) },
		"ExportRecords":  func(ctx context.Context) error { return g.ExportRecords(ctx, "csv", new(bytes.Buffer)) },
		"UndoCalls":      func(ctx context.Context) error { return only(g.UndoCalls(ctx, "", 1)) },
		"UndoCall":       func(ctx context.Context) error { return only(g.UndoCall(ctx, id)) },
		"TakeBack":       func(ctx context.Context) error { return only(g.TakeBack(ctx, local.UndoRequest{Call: id})) },
		"Sessions":       func(ctx context.Context) error { return only(g.Sessions(ctx, 1)) },
	} {
		var refused *local.Error
		if err := ask(t.Context()); errors.As(err, &refused) && refused.Hint == "docs/api.md lists all routes" {
			t.Errorf("%s: %v", name, err)
		}
		asked[name] = true
	}
	for method := range reflect.TypeFor[*local.Gateway]().Methods() {
		if !asked[method.Name] {
			t.Errorf("nobody has asked by %s", method.Name)
		}
	}
	if err := g.SignOut(t.Context()); err != nil {
		t.Errorf("SignOut: %v", err)
	}
}
