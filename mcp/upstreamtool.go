package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward"
)

// tool makes a tool of Toolward of an accepted definition.
func (u *Upstreams) tool(s Upstream, d Definition) *toolward.Tool {
	t := &toolward.Tool{
		Name: d.Name, Description: d.Description, Schema: d.Schema, Plugin: s.ID,
		Facts: foreignFacts,
		Run: func(ctx context.Context, r *toolward.Request) (toolward.Result, error) {
			// The list may have changed since the call was admitted.
			if !u.stands(s.ID, &d) {
				return toolward.Result{}, fmt.Errorf("tool %s of server %s: %w", d.Native, s.ID, ErrNotAccepted)
			}
			result, err := s.Call(ctx, d.Native, r.Params.Canonical())
			// Whatever a foreign server says may have been written by strangers.
			result.External = append(result.External, "MCP server "+s.ID)
			return result, err
		},
	}
	if d.ReadOnly {
		t.Declared = func(toolward.Params) toolward.Classification {
			return toolward.Classification{Class: toolward.Safe, From: toolward.Elevated, Severity: toolward.Info}
		}
	}
	return t
}

// foreignFacts is what can be said of a call whose tool only its server knows: every text goes out to it, it may change
// anything, and a text that is an address is one that it may fetch.
func foreignFacts(_ context.Context, r *toolward.Request) (toolward.Facts, error) {
	f := toolward.Facts{Mutates: true}
	f.Outbound = texts(nil, r.Params.Object())
	for _, text := range f.Outbound {
		lower := strings.ToLower(text)
		if strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") {
			f.URLs = append(f.URLs, text)
		}
	}
	return f, nil
}

// texts collects all texts of a decoded value, by the order of names, so that the same call gives the same facts.
func texts(found []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(found, v)
	case []any:
		for _, e := range v {
			found = texts(found, e)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = texts(found, v[name])
		}
	}
	return found
}
