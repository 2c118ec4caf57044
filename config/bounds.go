package config

import (
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/tailscale/hujson"

	"github.com/toolward/toolward/audit/elsewhere"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/plugin"
)

// bound is the range of a whole number in the file.
type bound struct{ fallback, least, most int64 }

// bounds are the ranges by key.
func bounds() map[string]bound {
	all := map[string]bound{
		"teg.audit.retainDays":          {90, 1, 3650},
		"teg.audit.checkpoints.everyMs": {elsewhere.DefaultEveryMs, elsewhere.LeastEveryMs, elsewhere.MostEveryMs},
	}
	for _, b := range undoBounds() {
		all[b.key] = b.bound
	}
	for _, l := range Table() {
		all[l.Key] = bound{l.Default, l.Least, l.Most}
	}
	for _, l := range builtin.Limits() {
		all["limits.tools."+l.Key] = bound{int64(l.Default), int64(l.Least), int64(l.Most)}
	}
	return all
}

// words are the settings that take one of a few words.
var words = map[string][]any{
	"teg.mode":            {ModeEnforce, ModeShadow},
	"teg.preset":          {"strict", "workspace"},
	"teg.defaultLevel":    {"normal", "elevated", "lockdown"},
	"teg.exec.sandbox":    {"auto", "ask"},
	"teg.approval.absent": {"refuse", "wait"},
	"teg.approval.socket": {"off", "once"},
	"teg.audit.sync":      {"auto", "always"},
	"bridge.attended":     {"toolward", "client"},

	"agents.defaults.elevatedDefault": {"off", "on", "ask", "full"},
}

// describe tells editors the ranges and words, so that a wrong value is marked while it is typed.
func describe(schema *jsonschema.Schema) {
	at := func(key string) *jsonschema.Schema {
		s := schema
		for _, part := range SplitKey(key) {
			if s = s.Properties[part]; s == nil {
				return &jsonschema.Schema{} // no such key any more: a test notices
			}
		}
		return s
	}
	for key, b := range bounds() {
		s := at(key)
		least, most := float64(b.least), float64(b.most)
		s.Minimum, s.Maximum = &least, &most
		s.Default, _ = json.Marshal(b.fallback)
	}
	for key, list := range words {
		at(key).Enum = list
	}
	describePlugin(at("plugins.entries").AdditionalProperties)
	describeAnomaly(at("teg.anomaly"))
	describeCommands(at("tools"))
	describeCommands(at("agents.list").Items.Properties["tools"])
	describeSandbox(at("agents.defaults.sandbox"))
	describeSandbox(at("agents.list").Items.Properties["sandbox"])
}

// describePlugin tells the words of one entry of plugins.entries.
func describePlugin(entry *jsonschema.Schema) {
	entry.Properties["kind"].Enum = []any{plugin.KindCommand, plugin.KindHTTP, plugin.KindCompiled}
	entry.Properties["onError"].Enum = []any{plugin.Closed, plugin.Open}
	entry.Properties["hooks"].Items.Enum = []any{plugin.BeforeToolCall, plugin.AfterToolCall}
	least, most := 1.0, float64(plugin.MaxTimeout.Milliseconds())
	entry.Properties["timeoutMs"].Minimum, entry.Properties["timeoutMs"].Maximum = &least, &most
}

// zeros reports bounded settings that are written as 0. Left alone, 0 would silently mean the default, to somebody
// who wanted none at all.
func (d *decoder) zeros(document *hujson.Value) {
	for key, b := range bounds() {
		at := document
		for _, part := range SplitKey(key) {
			if at != nil {
				at = member(at, part)
			}
		}
		if at == nil {
			continue
		}
		if literal, ok := at.Value.(hujson.Literal); ok && literal.Kind() == '0' && literal.Int() == 0 && b.least > 0 {
			d.add(at.StartOffset, key, "0 is out of range", rangeText(b))
		}
	}
}

func rangeText(b bound) string { return fmt.Sprintf("write %d to %d", b.least, b.most) }
