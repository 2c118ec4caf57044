package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/report"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/schema"
)

// Compile checks the configuration and turns it, with the tools that are registered, into a snapshot. An error is
// [report.Errors] for mistakes in the configuration. A tool of a plug-in that may not be registered is left out with a
// warning; one of Toolward's own is an error.
func Compile(c Config, tools []*toolward.Tool) (*Snapshot, []report.Warning, error) {
	s := &Snapshot{
		schemas: map[*toolward.Tool]*schema.Schema{}, table: newTable(c.TEG.Preset), around: c.Around, trusted: map[string]bool{},
	}
	found := &report.Collector{}
	book, err := visible.Compile(c.forVisible(s.compileSchema), tools, found)
	if err != nil {
		return nil, nil, err
	}
	s.Book = book
	b := builder{Collector: found, config: c, snapshot: s, words: s.Vocabulary()}
	b.agents()
	b.teg()
	if len(b.Errs) > 0 {
		return nil, nil, b.Errs
	}
	if err := b.revise(); err != nil {
		return nil, nil, err
	}
	return b.snapshot, b.Warnings, nil
}

// builder collects what Compile finds.
type builder struct {
	*report.Collector
	config   Config
	snapshot *Snapshot
	words    *visible.Vocabulary
}

// teg compiles the section "teg".
func (b *builder) teg() {
	t, s, at := b.config.TEG.WithDefaults(), b.snapshot, report.Path{"teg"}
	if t.Preset != PresetStrict && t.Preset != PresetWorkspace {
		b.Fail(at.At("preset"), "%q is not a preset; use strict or workspace", t.Preset)
	}
	var level toolward.Level
	if err := level.UnmarshalText([]byte(t.DefaultLevel)); err != nil {
		b.Fail(at.At("defaultLevel"), "%v", err)
	}
	if t.HighWater <= 0 || t.HighWater > maxHighWater {
		b.Fail(at.At("highWater"), "%v is out of range; it may only be lowered, to a value above 0 and at most %v", t.HighWater, maxHighWater)
	}
	if t.Exec.Sandbox != "auto" && t.Exec.Sandbox != "ask" {
		b.Fail(at.At("exec", "sandbox"), "%q is unknown; use auto or ask", t.Exec.Sandbox)
	}
	if a := t.Approval; a.TimeoutMs < minTimeoutMs || a.TimeoutMs > maxTimeoutMs {
		b.Fail(at.At("approval", "timeoutMs"), "%d is out of range; use %d to %d milliseconds", a.TimeoutMs, minTimeoutMs, maxTimeoutMs)
	}
	if n := t.Approval.MaxPendingPerSession; n < 1 || n > maxPendingPerKey {
		b.Fail(at.At("approval", "maxPendingPerSession"), "%d is out of range; use 1 to %d", n, maxPendingPerKey)
	}
	if t.Approval.Absent != "refuse" && t.Approval.Absent != "wait" {
		b.Fail(at.At("approval", "absent"), "%q is unknown; use refuse or wait", t.Approval.Absent)
	}
	if t.Approval.Socket != "off" && t.Approval.Socket != "once" {
		b.Fail(at.At("approval", "socket"), "%q is unknown; use off or once", t.Approval.Socket)
	}
	s.waits = b.waits(t.Approval.WaitMs, at.At("approval", "waitMs"))
	s.overrides = b.overrides(t.Tools, "teg.tools", at.At("tools"))
	b.enable(t.Enable, at.At("enable"))
	b.compileRules(t.Rules, at.At("rules"))
	b.hosts(t.Web.AllowHosts, at.At("web", "allowHosts"))
	for server, m := range t.MCP {
		if m.TrustHints {
			s.trusted[visible.NormalizeName(server)] = true
		}
	}
}

// enable compiles teg.enable: exact names of blocked rows.
func (b *builder) enable(names []string, at report.Path) {
	known := enableable()
	b.snapshot.enabled = map[string]bool{}
	for i, name := range names {
		tool, action, ok := strings.Cut(visible.NormalizeName(name), ".")
		key := visible.NormalizeName(tool) + "." + squashKey(action)
		canonical := slices.IndexFunc(known, func(k string) bool { t, a, _ := strings.Cut(k, "."); return t+"."+squashKey(a) == key })
		if !ok || canonical < 0 {
			b.Fail(at.At(i), "%q is not a blocked row that can be enabled; these can: %s%s", name, strings.Join(known, ", "), report.DidYouMean(name, known))
			continue
		}
		b.snapshot.enabled[key] = true
		b.Warn(report.Warning{Path: at.At(i), Code: report.CheckBlockedEnabled, Text: known[canonical] + " is enabled: it asks each time instead of being refused"})
	}
}

// enableable lists what teg.enable may name. Rows about Toolward itself are not among them.
func enableable() []string {
	names := []string{
		"exec.elevated", "gateway.config.apply", "gateway.config.patch", "gateway.update.run",
		"nodes.camera_snap", "nodes.camera_clip", "nodes.screen_record", "nodes.approve", "nodes.reject",
	}
	for _, command := range slices.Concat(invokeBlocked, invokeSystem) {
		names = append(names, "nodes.invoke:"+command)
	}
	return names
}

// revise makes the revision: a digest of everything that the snapshot was compiled from.
func (b *builder) revise() error {
	type fingerprint struct {
		Config   Config
		Channels []string
		Tools    []string
	}
	print := fingerprint{Config: b.config, Channels: b.config.Around.Channels}
	for _, t := range b.snapshot.Registered() {
		print.Tools = append(print.Tools, fmt.Sprintf("%s\x00%s\x00%t\x00%t\x00%s", t.Name, t.Plugin, t.OwnerOnly, t.Optional, t.Schema))
	}
	text, err := json.Marshal(print)
	if err != nil {
		return errors.Join(errors.New("compute the policy revision"), err)
	}
	sum := sha256.Sum256(text)
	b.snapshot.revision = hex.EncodeToString(sum[:8])
	return nil
}
