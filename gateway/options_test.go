package gateway

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

func TestAGatewayWithoutAHomeIsNone(t *testing.T) {
	if _, err := Open(t.Context(), Options{}); err == nil {
		t.Error("it keeps its state nowhere")
	}
}

// What is left out opens nothing and allows nothing: no door, and nobody who says yes.
func TestOptionsLeftOutAreSafe(t *testing.T) {
	home := filepath.Join(shortHome(t), ".toolward")
	ran := false
	own := &toolward.Tool{Name: "own", Schema: []byte(`{"type":"object"}`), Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
		ran = true
		return toolward.Result{}, nil
	}}
	g, err := Open(t.Context(), Options{Home: home, Tools: []*toolward.Tool{own}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if g.URL() != "" {
		t.Errorf("it is at %s", g.URL())
	}
	entries, err := os.ReadDir(home)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type()&os.ModeSocket != 0 {
			t.Errorf("%s listens", e.Name())
		}
	}
	call := toolward.Call{Tool: "own", Arguments: []byte(`{}`), Session: "agent:main:x", Caller: toolward.Caller{Agent: "main"}}
	if _, err := g.Call(t.Context(), call); err == nil || ran {
		t.Errorf("a tool that nobody has classified ran: %v", err)
	}
}

func TestATwiceNamedToolIsRefused(t *testing.T) {
	home := filepath.Join(shortHome(t), ".toolward")
	_, err := Open(t.Context(), Options{Home: home, Tools: []*toolward.Tool{{Name: "Exec", Schema: []byte(`{"type":"object"}`)}}})
	if err == nil || !strings.Contains(err.Error(), "two tools") {
		t.Error(err)
	}
}

// The given configuration counts; the file in the home neither does nor is forgotten.
func TestAGivenConfigurationStandsForTheFile(t *testing.T) {
	home := filepath.Join(shortHome(t), ".toolward")
	file := filepath.Join(home, "toolward.jsonc")
	if err := os.WriteFile(file, []byte(`{"config": {"autoApply": true}, "agents": {"defaults": {"sandbox": {"mode": "off"}}}, "teg": {"preset": "workspace"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	preset := func(o Options) string {
		t.Helper()
		g, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		g.config.Reload()
		return string(g.config.Current().File.TEG.Preset)
	}
	for _, o := range []Options{{Home: home}, {Home: home, Configuration: []byte(`{"teg": {"preset": "strict"}, "agents": {"defaults": {"sandbox": {"mode": "off"}}}}`)}, {Home: home}} {
		want := "workspace"
		if o.Configuration != nil {
			want = "strict"
		}
		if got := preset(o); got != want {
			t.Errorf("given %s: %s, want %s", o.Configuration, got, want)
		}
	}
	if _, err := Open(t.Context(), Options{Home: home, Configuration: []byte(`{"teg": {"preset": "lax"}}`)}); err == nil {
		t.Error("a wrong configuration is in force")
	}
}

// One yes runs one call, the one that was asked about.
func TestAnAnswerIsUsedOnce(t *testing.T) {
	decision := toolward.AllowOnce
	people := Answering(func(context.Context, *toolward.Question) toolward.Answer { return toolward.Answer{Decision: decision} })
	yes, err := people.Ask(t.Context(), &toolward.Question{Binding: "b"})
	if err != nil {
		t.Fatal(err)
	}
	decision = toolward.DenyCall
	no, err := people.Ask(t.Context(), &toolward.Question{Binding: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		id, binding string
		want        bool
	}{{yes.ApprovalID, "other", false}, {yes.ApprovalID, "b", true}, {yes.ApprovalID, "b", false}, {no.ApprovalID, "b", false}, {"", "", false}} {
		if err := people.Consume(t.Context(), c.id, c.binding); (err == nil) != c.want {
			t.Errorf("%d: %v", i, err)
		}
	}
}
