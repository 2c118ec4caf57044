package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/report"
	"github.com/toolward/toolward/policy/visible"
)

// warnOverrides says which overrides do not do what they seem to say, and which loosen.
func (b *builder) warnOverrides(o *overrides, at report.Path) {
	for _, g := range o.globs {
		if g.class == toolward.Safe {
			b.Warn(report.Warning{
				Path: at.At(g.key), Code: report.CheckGlobLoosens,
				Text: fmt.Sprintf("%q cannot make a call safer: name the tool, or the tool and action", g.key),
			})
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(o.byTool)) {
		t := o.byTool[tool]
		if t.tool != nil {
			b.warnOverride(tool, t.tool, at)
		}
		for _, action := range slices.Sorted(maps.Keys(t.actions)) {
			b.warnOverride(tool, t.actions[action], at)
		}
	}
}

func (b *builder) warnOverride(tool string, o *override, at report.Path) {
	at = at.At(o.key)
	if !b.words.Knows(tool) {
		b.Warn(report.Warning{Path: at, Code: report.CheckUnknownEntries, Text: fmt.Sprintf("no tool is called %q%s", tool, report.DidYouMean(tool, b.words.Names()))})
		return
	}
	if o.class == toolward.Blocked {
		return
	}
	for _, r := range b.rowsOf(tool, o) {
		switch changed, warning := o.apply(r.Classification); {
		case warning == warnNameTheAction:
			b.Warn(report.Warning{Path: at, Code: report.CheckNameTheAction, Text: fmt.Sprintf("%q does not make %s safer, which is critical: name the action", o.key, r.name)})
		case changed.Class > r.Class:
			b.loosened(tool, report.Warning{Path: at, Code: report.CheckLoosened, Text: r.name + " runs without a question at level normal"})
		}
	}
}

// loosened reports what runs without a question because the operator says so. Commands, messages, other machines and every
// host on the internet are where most harm is done.
func (b *builder) loosened(tool string, w report.Warning) {
	switch tool {
	case "exec", "message", "nodes", visible.EgressTool:
		b.Alarm(w)
	default:
		b.Warn(w)
	}
}

// rowsOf lists the rows that an override concerns.
func (b *builder) rowsOf(tool string, o *override) []row {
	of, known := b.snapshot.table[tool]
	switch {
	case !known:
		return []row{unknownTool}
	case o.kind != byAction:
		return of.rows
	}
	action, _, _ := strings.Cut(o.action, ":")
	return slices.DeleteFunc(slices.Clone(of.rows), func(r row) bool {
		return r.actions != nil && !slices.Contains(r.actions, action)
	})
}

func (b *builder) overrides(entries map[string]string, layer string, at report.Path) overrides {
	o, errs := newOverrides(entries, layer, at, b.words.HasTool)
	b.Errs = append(b.Errs, errs...)
	b.prepare(&o)
	b.warnOverrides(&o, at)
	return o
}

func (b *builder) prepare(o *overrides) {
	for _, t := range b.snapshot.Registered() {
		o.prepare(t.Name)
	}
	for tool := range b.snapshot.table {
		o.prepare(tool)
	}
}
