package plugin_test

import (
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/plugin"
)

// What plug-ins add to a decision: none, one in this process, one program.
func BenchmarkBeforeToolCall(b *testing.B) {
	request := &toolward.Request{
		Tool: &toolward.Tool{Name: "write"}, Params: toolward.NewParams([]byte(`{"path":"a"}`), map[string]any{"path": "a"}),
		Call: toolward.Call{ID: "c1", Session: "agent:main:main", Caller: toolward.Caller{Agent: "main"}},
	}
	for _, c := range []struct {
		name     string
		registry func() *plugin.Registry
		config   func() plugin.Config
	}{
		{"none", plugin.NewRegistry, func() plugin.Config { return plugin.Config{} }},
		{"compiled", func() *plugin.Registry {
			return registryOf(b, before{id: "x", f: says(plugin.BeforeToolCallResult{})})
		}, func() plugin.Config { return plugin.Config{} }},
		{"compiled, rewrites", func() *plugin.Registry { return registryOf(b, before{id: "x", f: says(sets("timeout", 60))}) }, func() plugin.Config { return plugin.Config{} }},
		{"command", plugin.NewRegistry, func() plugin.Config { return only(program(b, "answers")) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			g := newGuarded(b, toolward.Allow, c.registry(), c.config())
			if answer := g.runner.Before(b.Context(), request); answer.Code != "" {
				b.Fatal(answer)
			}
			b.ReportAllocs()
			for b.Loop() {
				if answer := g.runner.Before(b.Context(), request); answer.Code != "" {
					b.Fatal(answer)
				}
			}
		})
	}
}
