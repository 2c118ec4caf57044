package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/schema"
)

// Compile checks the configuration and turns it, with the tools that are registered, into a snapshot. An error is
// ConfigErrors for mistakes in the configuration. A tool of a plug-in that may not be registered is left out with a
// warning; one of Toolward's own is an error.
func Compile(c Config, tools []*toolward.Tool) (*Snapshot, []Warning, error) {
	b := builder{config: c, snapshot: &Snapshot{
		tools: map[string]*toolward.Tool{}, internal: map[string]*toolward.Tool{}, schemas: map[*toolward.Tool]*schema.Schema{}, agents: map[string]*agent{},
		table: newTable(c.TEG.Preset), around: c.Around, trusted: map[string]bool{},
	}}
	if err := b.register(tools); err != nil {
		return nil, nil, err
	}
	b.layers()
	b.teg()
	if len(b.errs) > 0 {
		return nil, nil, b.errs
	}
	if err := b.revise(); err != nil {
		return nil, nil, err
	}
	return b.snapshot, b.warnings, nil
}

// builder collects what Compile finds.
type builder struct {
	config   Config
	snapshot *Snapshot
	sorted   []*toolward.Tool // registered tools by name
	plugins  map[string]bool
	rules    *ruleBook
	errs     ConfigErrors
	warnings []Warning
}

func (b *builder) fail(at Path, format string, args ...any) {
	b.errs = append(b.errs, &ConfigError{Path: at, Problem: fmt.Sprintf(format, args...)})
}

// register takes the tools that may exist.
func (b *builder) register(tools []*toolward.Tool) error {
	b.plugins = map[string]bool{}
	for i, t := range tools {
		if t == nil {
			return fmt.Errorf("register tool %d: it is nil", i)
		}
		err := b.admit(t)
		switch {
		case err == nil && t.Internal:
		case err == nil:
			b.sorted = append(b.sorted, t)
			if t.Plugin != "" {
				b.plugins[NormalizeName(t.Plugin)] = true
			}
		case t.Plugin == "":
			return fmt.Errorf("register tool %q: %w", t.Name, err)
		default:
			b.warn(Warning{Tool: t.Name, Code: CheckToolRefused, Text: fmt.Sprintf("of %q is not registered: %v", t.Plugin, err)})
		}
	}
	slices.SortFunc(b.sorted, func(x, y *toolward.Tool) int { return strings.Compare(x.Name, y.Name) })
	return nil
}

func (b *builder) admit(t *toolward.Tool) error {
	if err := CheckName(t.Name, t.Plugin); err != nil {
		return err
	}
	if t.Internal != isInternal(t.Name) || t.Internal && t.Run != nil {
		return fmt.Errorf("%q: the internal tools are known by name, and Toolward's parts run them", t.Name)
	}
	if other := b.snapshot.tools[t.Name]; other != nil {
		return fmt.Errorf("the name is taken by a tool of %q", other.Plugin)
	}
	compiled, err := schema.Compile(t.Schema, schema.Options{Params: paramsOf(t), Foreign: t.Plugin != ""})
	if err != nil {
		return err
	}
	b.snapshot.schemas[t] = compiled
	if t.Internal {
		b.snapshot.internal[t.Name] = t
	} else {
		b.snapshot.tools[t.Name] = t
	}
	return nil
}

// paramsOf says which parameters of Toolward's own tools have other spellings or name things.
func paramsOf(t *toolward.Tool) schema.Params {
	if t.Plugin != "" {
		return schema.Params{}
	}
	if p, ok := schema.FileParams(t.Name); ok {
		return p
	}
	return schema.Params{Kinds: map[string]schema.Kind{
		"path": schema.Path, "paths": schema.Path, "workdir": schema.Path, "cwd": schema.Path, "image": schema.Path,
		"images": schema.Path, "command": schema.Command, "url": schema.URL, "to": schema.Recipient,
		"target": schema.Recipient, "targets": schema.Recipient, "channel": schema.Recipient,
	}}
}

// teg compiles the section "teg".
func (b *builder) teg() {
	t, s, at := b.config.TEG.WithDefaults(), b.snapshot, Path{"teg"}
	if t.Preset != PresetStrict && t.Preset != PresetWorkspace {
		b.fail(at.At("preset"), "%q is not a preset; use strict or workspace", t.Preset)
	}
	var level toolward.Level
	if err := level.UnmarshalText([]byte(t.DefaultLevel)); err != nil {
		b.fail(at.At("defaultLevel"), "%v", err)
	}
	if t.HighWater <= 0 || t.HighWater > maxHighWater {
		b.fail(at.At("highWater"), "%v is out of range; it may only be lowered, to a value above 0 and at most %v", t.HighWater, maxHighWater)
	}
	if t.Exec.Sandbox != "auto" && t.Exec.Sandbox != "ask" {
		b.fail(at.At("exec", "sandbox"), "%q is unknown; use auto or ask", t.Exec.Sandbox)
	}
	if a := t.Approval; a.TimeoutMs < minTimeoutMs || a.TimeoutMs > maxTimeoutMs {
		b.fail(at.At("approval", "timeoutMs"), "%d is out of range; use %d to %d milliseconds", a.TimeoutMs, minTimeoutMs, maxTimeoutMs)
	}
	if n := t.Approval.MaxPendingPerSession; n < 1 || n > maxPendingPerKey {
		b.fail(at.At("approval", "maxPendingPerSession"), "%d is out of range; use 1 to %d", n, maxPendingPerKey)
	}
	if t.Approval.Absent != "refuse" && t.Approval.Absent != "wait" {
		b.fail(at.At("approval", "absent"), "%q is unknown; use refuse or wait", t.Approval.Absent)
	}
	if t.Approval.Socket != "off" && t.Approval.Socket != "once" {
		b.fail(at.At("approval", "socket"), "%q is unknown; use off or once", t.Approval.Socket)
	}
	s.waits = b.waits(t.Approval.WaitMs, at.At("approval", "waitMs"))
	s.overrides = b.overrides(t.Tools, "teg.tools", at.At("tools"))
	b.enable(t.Enable, at.At("enable"))
	b.compileRules(t.Rules, at.At("rules"))
	b.hosts(t.Web.AllowHosts, at.At("web", "allowHosts"))
	for server, m := range t.MCP {
		if m.TrustHints {
			s.trusted[NormalizeName(server)] = true
		}
	}
}

func (b *builder) overrides(entries map[string]string, layer string, at Path) overrides {
	o, errs := newOverrides(entries, layer, at, b.hasTool)
	b.errs = append(b.errs, errs...)
	b.prepare(&o)
	b.warnOverrides(&o, at)
	return o
}

// hasTool reports whether a key is the whole name of a tool.
func (b *builder) hasTool(name string) bool { return b.snapshot.tools[name] != nil || reserved(name) }

func (b *builder) prepare(o *overrides) {
	for _, t := range b.sorted {
		o.prepare(t.Name)
	}
	for tool := range b.snapshot.table {
		o.prepare(tool)
	}
}

// enable compiles teg.enable: exact names of blocked rows.
func (b *builder) enable(names []string, at Path) {
	known := enableable()
	b.snapshot.enabled = map[string]bool{}
	for i, name := range names {
		tool, action, ok := strings.Cut(NormalizeName(name), ".")
		key := NormalizeName(tool) + "." + squashKey(action)
		canonical := slices.IndexFunc(known, func(k string) bool { t, a, _ := strings.Cut(k, "."); return t+"."+squashKey(a) == key })
		if !ok || canonical < 0 {
			b.fail(at.At(i), "%q is not a blocked row that can be enabled; these can: %s%s", name, strings.Join(known, ", "), didYouMean(name, known))
			continue
		}
		b.snapshot.enabled[key] = true
		b.warn(Warning{Path: at.At(i), Code: CheckBlockedEnabled, Text: known[canonical] + " is enabled: it asks each time instead of being refused"})
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

// entries checks the entries of one list.
func (b *builder) entries(entries []string, at Path, label string) {
	for i, entry := range entries {
		// The matcher drops blank entries; a list of blanks would silently mean "everything".
		if strings.TrimSpace(entry) == "" {
			b.fail(at.At(i), "the entry is blank; name a tool, a glob or a group, or remove it")
		}
	}
	b.warnUnknown(entries, at, label)
}

// modes lays the settings for commands of a narrower scope over those of a wider one.
func (b *builder) modes(e Exec, m modes.Modes, at Path) modes.Modes {
	var err error
	if e.Security != "" {
		if m.Security, err = modes.ParseSecurity(e.Security); err != nil {
			b.fail(at.At("security"), "%v", err)
		}
	}
	if e.Ask != "" {
		if m.Ask, err = modes.ParseAsk(e.Ask); err != nil {
			b.fail(at.At("ask"), "%v", err)
		}
	}
	return m
}

func orFalse(p *bool) bool { return p != nil && *p }

// hosts compiles teg.web.allowHosts.
func (b *builder) hosts(entries []string, at Path) {
	b.snapshot.allowHosts = map[string]bool{}
	for i, entry := range entries {
		host, err := hostKey(entry)
		if err != nil {
			b.fail(at.At(i), "%v", err)
			continue
		}
		b.snapshot.allowHosts[host] = true
	}
}

// revise makes the revision: a digest of everything that the snapshot was compiled from.
func (b *builder) revise() error {
	type fingerprint struct {
		Config   Config
		Channels []string
		Tools    []string
	}
	print := fingerprint{Config: b.config, Channels: b.config.Around.Channels}
	for _, t := range b.sorted {
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
