package policy

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy/visible"
)

func TestAdopt(t *testing.T) {
	s := compile(t, Config{Tools: visible.Tools{Deny: []string{"todo", "mcp__evil__*", "files"}}}, coreTools()...)
	guard := *s.Tool("tts")
	guard.OwnerOnly = true
	s2 := compile(t, Config{}, &guard)
	for _, c := range []struct {
		name   string
		s      *Snapshot
		form   toolward.Tool
		owner  bool
		adopts bool
	}{
		{"form of a tool of ours", s, toolward.Tool{Name: "read"}, false, true},
		{"form that we do not have", s, toolward.Tool{Name: "skill"}, false, true},
		{"denied by name", s, toolward.Tool{Name: "todo"}, true, false},
		{"tool of a client's server", s, toolward.Tool{Name: "mcp__github__issue", Plugin: "github"}, false, true},
		{"denied server by glob", s, toolward.Tool{Name: "mcp__evil__x", Plugin: "evil"}, true, false},
		{"denied server by id", s, toolward.Tool{Name: "mcp__files__x", Plugin: "files"}, true, false},
		{"server's tool that passes for ours", s, toolward.Tool{Name: "read", Plugin: "github"}, true, false},
		{"bad name", s, toolward.Tool{Name: "Read"}, true, false},
		{"bad name of a server's tool", s, toolward.Tool{Name: "mcp__a;b", Plugin: "a"}, true, false},
		{"mcp name without a server", s, toolward.Tool{Name: "mcp__a__b"}, true, true},
		{"owner-only by name", s, toolward.Tool{Name: "cron"}, false, false},
		{"owner-only by its own flag", s, toolward.Tool{Name: "x", OwnerOnly: true}, false, false},
		{"owner-only by our flag", s2, toolward.Tool{Name: "tts"}, false, false},
		{"owner", s2, toolward.Tool{Name: "tts"}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, reason := c.s.Adopt(toolward.Caller{Owner: c.owner}, &c.form)
			if (got != nil) != c.adopts || got == nil && reason.Text == "" {
				t.Errorf("got %v, %v", got, reason)
			}
		})
	}
	if got, _ := s2.Adopt(toolward.Caller{Owner: true}, &toolward.Tool{Name: "tts"}); got == nil || !got.OwnerOnly {
		t.Error("our owner-only flag is lost")
	}
}

func TestDecode(t *testing.T) {
	s := compile(t, Config{}, append(coreTools(), gatetest.Plugin("p", "p__x")...)...)
	params, err := s.Decode(s.Tool("write"), json.RawMessage(`{"file_path":"a","content":["x",{"text":"y"}]}`))
	if err != nil || string(params.Canonical()) != `{"content":"xy","path":"a"}` {
		t.Errorf("got %s, %v", params.Canonical(), err)
	}
	for _, c := range []struct{ tool, in, field, text string }{
		{"read", `{"path":5}`, "path", "has the wrong type (expected string)"},
		{"read", `{"path":"a\u0000"}`, "path", "contains a NUL character"},
		{"exec", `{"command":"\u0000"}`, "command", "contains a NUL character"},
		{"p__x", `{"evil\u202e":1}`, "evil⟦U+202E⟧", "is not a parameter of this tool"},
	} {
		_, err := s.Decode(s.Tool(c.tool), json.RawMessage(c.in))
		invalid, ok := errors.AsType[*toolward.InvalidArgs](err)
		if !ok || invalid.Field != c.field || invalid.Text != c.text {
			t.Errorf("%s %s: got %#v", c.tool, c.in, err)
		}
	}
	form := &toolward.Tool{Name: "skill", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)}
	if _, err := s.Decode(form, json.RawMessage(`{"name":"x"}`)); err != nil {
		t.Errorf("a form with a schema: %v", err)
	}
	if _, err := s.Decode(&toolward.Tool{Name: "skill"}, json.RawMessage(`{}`)); err == nil {
		t.Error("a form without a schema and decoder was decoded")
	}
}

func TestNoSnapshotRefusesEverything(t *testing.T) {
	for name, s := range map[string]toolward.Snapshot{"live": (&Live{}).Snapshot(), "zero": &Snapshot{}} {
		r := request(t, "read", json.RawMessage(`{}`), toolward.Facts{})
		tool, reason := s.Find(toolward.Caller{Owner: true}, "read")
		if tool != nil || reason.Text == "" || len(s.Tools(toolward.Caller{Owner: true})) > 0 || s.Judge(r).Verdict != toolward.Deny {
			t.Errorf("%s: something is allowed", name)
		}
	}
	live := NewLive(compile(t, Config{}, coreTools()...))
	before := live.Snapshot()
	live.Swap(compile(t, Config{Tools: visible.Tools{Deny: []string{"read"}}}, coreTools()...))
	if tool, _ := live.Snapshot().Find(toolward.Caller{}, "read"); tool != nil || before.Revision() == live.Snapshot().Revision() {
		t.Error("the swapped snapshot is not in force")
	}
}
