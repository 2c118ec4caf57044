package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/glob"
	"github.com/toolward/toolward/policy/report"
	"github.com/toolward/toolward/policy/visible"
)

// Codes of warnings about overrides.
const (
	warnGlobCannotLoosen = "glob_cannot_loosen"
	warnNameTheAction    = "name_the_action"
)

// specificity says how precisely a key names what it changes.
type specificity uint8

const (
	byGlob specificity = iota
	byTool
	byAction
)

// override is one entry of teg.tools.
type override struct {
	key    string   // as written
	named  []string // the key alone, for judgments
	reason toolward.Reason
	class  toolward.Class
	wait   time.Duration // in teg.approval.waitMs, in the place of the class
	kind   specificity
	action string // with byAction: squashed
	glob   string // with byGlob: normalized
}

// toolOverrides are the entries that may concern one tool.
type toolOverrides struct {
	actions map[string]*override // by squashed action
	tool    *override
	globs   []override // most specific first, of equally specific ones the strictest
}

// overrides is a compiled teg.tools.
type overrides struct {
	byTool map[string]*toolOverrides
	globs  []override // all globs, for tools that no entry names
}

// newOverrides compiles entries of a section, which reasons name as layer. known tells whether a key is the whole name
// of a tool, which decides for names with dots.
func newOverrides(entries map[string]string, layer string, at report.Path, known func(string) bool) (overrides, report.Errors) {
	return newKeyed(entries, at, known, func(entry *override, value string) (problem string) {
		if err := entry.class.UnmarshalText([]byte(value)); err != nil {
			return fmt.Sprintf("%q is not a class; use safe, needs_approval or blocked", value)
		}
		entry.reason = toolward.Reason{Layer: layer, Rule: entry.key, Text: "configured as " + entry.class.String()}
		return ""
	})
}

// newKeyed compiles entries whose keys name tools, actions or globs. read takes over the value of one, or says what is
// wrong with it.
func newKeyed[V any](entries map[string]V, at report.Path, known func(string) bool, read func(*override, V) (problem string)) (overrides, report.Errors) {
	o := overrides{byTool: map[string]*toolOverrides{}}
	var errs report.Errors
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		entry := override{key: key, named: []string{key}}
		if problem := read(&entry, entries[key]); problem != "" {
			errs = append(errs, &report.Error{Path: at.At(key), Problem: problem})
			continue
		}
		name := visible.NormalizeName(key)
		switch {
		case name == "":
			errs = append(errs, &report.Error{Path: at.At(key), Problem: "the name of a tool is blank"})
		case glob.Is(name):
			entry.kind, entry.glob = byGlob, name
			o.globs = append(o.globs, entry)
		case !known(name) && namesNoAction(name):
			errs = append(errs, &report.Error{Path: at.At(key), Problem: "the action is blank; write the tool alone, or tool.action"})
		default:
			o.add(entry, name, known)
		}
	}
	slices.SortFunc(o.globs, func(a, b override) int {
		return cmp.Or(cmp.Compare(glob.Literal(b.glob), glob.Literal(a.glob)), a.strictness(&b), cmp.Compare(a.glob, b.glob))
	})
	for tool, t := range o.byTool {
		t.globs = o.globsFor(tool)
	}
	return o, errs
}

// strictness compares two entries for the same calls; the stricter is less. An answer must not come later than the
// more impatient of two entries wants.
func (o *override) strictness(other *override) int {
	return cmp.Or(cmp.Compare(o.class, other.class), cmp.Compare(o.wait, other.wait))
}

// add enters a key without a glob. "a.b" is the action b of the tool a, unless there is a tool of that whole name;
// then it is both, because nothing in the key tells which was meant and an override that does not bite would open
// a hole.
func (o *overrides) add(entry override, name string, known func(string) bool) {
	tool, action, dotted := strings.Cut(name, ".")
	tool = visible.NormalizeName(tool)
	if !dotted || known(name) {
		t, whole := o.of(name), entry
		whole.kind = byTool
		if t.tool == nil || entry.strictness(t.tool) < 0 {
			t.tool = &whole
		}
	}
	if action = squashKey(action); dotted && action != "" {
		t := o.of(tool)
		entry.kind, entry.action = byAction, action
		if old := t.actions[action]; old == nil || entry.strictness(old) < 0 {
			t.actions[action] = &entry
		}
	}
}

// namesNoAction reports whether a key ends where the action should be.
func namesNoAction(name string) bool {
	_, action, dotted := strings.Cut(name, ".")
	return dotted && squashKey(action) == ""
}

// squashKey squashes the action part of a key, which may be "invoke:<command>".
func squashKey(action string) string {
	first, command, ok := strings.Cut(action, ":")
	if !ok {
		return toolward.NormalAction(action)
	}
	return toolward.NormalAction(first) + ":" + toolward.NormalAction(command)
}

func (o *overrides) of(tool string) *toolOverrides {
	t := o.byTool[tool]
	if t == nil {
		t = &toolOverrides{actions: map[string]*override{}}
		o.byTool[tool] = t
	}
	return t
}

// globsFor keeps the globs that can concern a tool: by its name alone, or by "tool.action".
func (o *overrides) globsFor(tool string) []override {
	var out []override
	for _, g := range o.globs {
		before, _, _ := strings.Cut(g.glob, "*")
		if glob.Match(g.glob, tool) || strings.HasPrefix(before, tool+".") || strings.HasPrefix(tool+".", before) {
			out = append(out, g)
		}
	}
	return out
}

// prepare makes room for a tool that is going to be judged, so that judging it looks at its own entries only.
func (o *overrides) prepare(tool string) {
	if o.byTool[tool] == nil {
		if globs := o.globsFor(tool); len(globs) > 0 {
			o.of(tool).globs = globs
		}
	}
}

// find returns the most specific entry for a call, or nil: action before tool before glob.
func (o *overrides) find(s *subject, prepared bool) *override {
	t := o.byTool[s.tool]
	globs := o.globs
	if t == nil && (prepared || len(globs) == 0) {
		return nil
	}
	precise, kind := s.actionKeys()
	if t != nil {
		globs = t.globs
		switch { // no entry has the action ""
		case t.actions[precise] != nil:
			return t.actions[precise]
		case t.actions[kind] != nil:
			return t.actions[kind]
		case t.tool != nil:
			return t.tool
		}
	}
	for i := range globs {
		g := &globs[i]
		if glob.Match(g.glob, s.tool) || g.matchesAction(s.tool, precise) || g.matchesAction(s.tool, kind) {
			return g
		}
	}
	return nil
}

// matchesAction tries a glob such as "browser.*" or "nodes.camera_*" on an action.
func (o *override) matchesAction(tool, action string) bool {
	if action == "" {
		return false
	}
	rest, ok := strings.CutPrefix(o.glob, tool+".")
	if !ok {
		return glob.Match(o.glob, tool+"."+action)
	}
	parts := strings.Split(rest, "*")
	for i, part := range parts {
		parts[i] = squashKey(part)
	}
	return glob.Match(strings.Join(parts, "*"), action)
}

// apply changes a row's classification. Tightening always works. Loosening needs a precise key: a glob never
// loosens, a tool's name does not loosen rows of severity critical, and nothing here loosens a blocked row; the
// warning says so.
func (o *override) apply(base toolward.Classification) (changed toolward.Classification, warning string) {
	switch {
	case o.class == base.Class:
		return base, ""
	case o.class < base.Class: // tightening
		base.Class, base.From = o.class, toolward.Normal
		return base, ""
	case base.Class == toolward.Blocked:
		return base, ""
	case o.kind == byGlob:
		return base, warnGlobCannotLoosen
	case o.kind == byTool && base.Severity == toolward.Critical:
		return base, warnNameTheAction
	default:
		base.Class, base.From = toolward.Safe, toolward.Elevated
		return base, ""
	}
}

// stricterClass combines what two sets of overrides make of one row.
func stricterClass(a, b toolward.Classification) toolward.Classification {
	if b.Class < a.Class || b.Class == a.Class && b.From > a.From {
		return b
	}
	return a
}
