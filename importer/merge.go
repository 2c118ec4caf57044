package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
)

// Merged is a configuration file with an import in it.
type Merged struct {
	Source  []byte   `json:"-"`
	Changes []Change `json:"changes"`
	Losses  []Loss   `json:"notCarriedOver"`
}

// Change is one setting that the import brought.
type Change struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  Place  `json:"from"`
	Says  string `json:"says"` // the source's own setting
}

// Merge puts the settings into a configuration file: name is its path, source its content (nil if there is none),
// tools are those of the gateway. Comments and everything that has nothing to do with the import stay. Each setting is
// tried alone: what Toolward refuses, and what would let a call through that the file as it stands stops, is left out
// and listed. The file itself must be sound.
func (p *Plan) Merge(name string, source []byte, tools []*toolward.Tool, around policy.Surroundings) (*Merged, error) {
	tools = everyTool(tools)
	check := config.CheckPolicy(tools, around)
	before, err := config.Parse(name, source, check)
	if err != nil {
		return nil, err
	}
	guard, err := newGuard(before, tools, around)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(source)) == 0 {
		source = []byte("{\n}\n") // a line of its own for every setting
	}
	m := &merger{check: check, name: name, guard: guard, source: source}
	m.out.Changes, m.out.Losses = []Change{}, append([]Loss{}, p.Losses...)
	for _, s := range p.settings {
		if err := m.merge(s); err != nil {
			return nil, err
		}
	}
	m.out.Source = m.source
	slices.SortStableFunc(m.out.Losses, func(a, b Loss) int {
		if a.From.File != b.From.File {
			return slices.Index(p.Files, a.From.File) - slices.Index(p.Files, b.From.File)
		}
		return a.From.Line - b.From.Line
	})
	return &m.out, nil
}

type merger struct {
	name   string
	check  config.Check
	guard  *guard
	source []byte // with everything merged so far
	out    Merged
}

func (m *merger) lose(s setting, reason string) {
	m.out.Losses = append(m.out.Losses, Loss{s.from, s.says, reason})
}

// merge tries one setting. Of a list that would loosen something, the entries that would not are kept.
func (m *merger) merge(s setting) error {
	if list, isList := s.value.([]string); isList && s.key == sandboxAllow {
		s.value = m.withinSandbox(s, list)
	}
	reason, err := m.try(s)
	if err != nil || reason == "" {
		return err
	}
	list, _ := s.value.([]string)
	if len(list) < 2 {
		m.lose(s, reason)
		return nil
	}
	fitting := m.fitting(s, list)
	if len(fitting) == 0 {
		m.lose(s, reason)
		return nil
	}
	s.value = fitting
	rest, err := m.try(s)
	if err == nil {
		s.says += " (" + strings.Join(without(list, fitting), ", ") + ")"
		if rest != "" {
			s.says = strings.Join(list, ", ")
		}
		m.lose(s, reason)
	}
	return err
}

// fitting are the entries of a list that can be carried over alone.
func (m *merger) fitting(s setting, list []string) (fitting []string) {
	for _, entry := range list {
		one := s
		one.value = []string{entry}
		trial := *m
		trial.out.Changes = nil
		if reason, err := trial.try(one); err == nil && reason == "" {
			fitting = append(fitting, entry)
		}
	}
	return fitting
}

func without(list, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(gone, s) })
}

// sandboxAllow is the list that is not open when it is absent.
const sandboxAllow = "tools.sandbox.tools.allow"

// withinSandbox keeps of an allow list for sandboxed sessions what the list in force allows.
func (m *merger) withinSandbox(s setting, list []string) []string {
	now := m.guard.before[0].SandboxTools(toolward.Caller{Agent: s.agent}).Allow
	if len(now) == 0 {
		return list
	}
	both := inBoth(now, list)
	if beyond := without(visible.ExpandGroups(list), both); len(beyond) > 0 {
		s.says += " (" + strings.Join(beyond, ", ") + ")"
		m.lose(s, "an import only tightens: sandboxed sessions do not have it; tools.sandbox.tools.alsoAllow adds it")
	}
	if len(both) == 0 {
		return []string{"session_status"} // the least that a list can leave: an empty one would open everything
	}
	return both
}

// try makes the change if it is one and may be made; else it says why it may not.
func (m *merger) try(s setting) (reason string, err error) {
	key, source, err := m.locate(s)
	if err != nil {
		return "", err
	}
	changed, value, problem, err := apply(source, key, s)
	if err != nil || problem != "" || changed == nil { // no change: it says so already, or something stricter
		return problem, err
	}
	after, err := config.Parse(m.name, changed, m.check)
	if err != nil {
		var wrong config.Problems
		if errors.As(err, &wrong) && len(wrong) > 0 {
			return "Toolward refuses it: " + wrong[0].Text, nil
		}
		return "", err
	}
	looser, err := m.guard.looser(after)
	if err != nil {
		return "", err
	}
	if looser != "" {
		return "an import only tightens, and it would loosen what holds now: " + looser, nil
	}
	m.source = changed
	m.out.Changes = append(m.out.Changes, Change{shownKey(s), value, s.from, s.says})
	return "", nil
}

func shownKey(s setting) string {
	if s.agent == "" {
		return s.key
	}
	return "agents.list[" + s.agent + "]." + s.key
}

// locate finds the full key of a setting, and makes an entry for its agent if there is none.
func (m *merger) locate(s setting) (key string, source []byte, err error) {
	if s.agent == "" {
		return s.key, m.source, nil
	}
	raw, err := config.Get(m.source, "agents.list")
	if err != nil {
		return "", nil, err
	}
	var agents []struct{ ID string }
	if raw != nil {
		if err := json.Unmarshal(raw, &agents); err != nil {
			return "", nil, err
		}
	}
	i := slices.IndexFunc(agents, func(a struct{ ID string }) bool {
		return strings.EqualFold(strings.TrimSpace(a.ID), strings.TrimSpace(s.agent))
	})
	key = fmt.Sprintf("agents.list[%d].%s", i, s.key)
	if i >= 0 {
		return key, m.source, nil
	}
	entry := map[string]any{"id": s.agent}
	key = fmt.Sprintf("agents.list[%d]", len(agents))
	if raw == nil {
		source, err = config.Set(m.source, "agents.list", []any{entry})
	} else {
		source, err = config.Set(m.source, key, entry)
	}
	return key + "." + s.key, source, err
}

// apply makes the change to the text. No text means that there is nothing to change; a problem, that it cannot be.
func apply(source []byte, key string, s setting) (changed []byte, value any, problem string, err error) {
	raw, err := config.Get(source, key)
	if err != nil {
		return nil, nil, "", err
	}
	switch s.how {
	case set:
		return replace(source, key, raw, s)
	case another:
		return appendRule(source, key, raw, s)
	}
	wanted := s.value.([]string)
	var there []string
	if raw != nil {
		if err := json.Unmarshal(raw, &there); err != nil {
			return nil, nil, "", err
		}
	}
	switch {
	case s.how == narrow && len(there) > 0:
		both := inBoth(there, wanted)
		if len(both) == 0 {
			// An empty list allows everything.
			return nil, nil, "it has nothing in common with " + strings.Join(there, ", ") + ", which stands there", nil
		}
		if slices.Equal(both, there) {
			return nil, nil, "", nil
		}
		changed, err = config.Set(source, key, both)
		return changed, both, "", err
	case len(there) == 0:
		if len(wanted) == 0 {
			return nil, nil, "", nil
		}
		changed, err = config.Set(source, key, wanted)
		return changed, wanted, "", err
	}
	changed = source
	var added []string
	for _, entry := range wanted {
		if contains(there, entry) {
			continue
		}
		if changed, err = config.Set(changed, fmt.Sprintf("%s[%d]", key, len(there)+len(added)), entry); err != nil {
			return nil, nil, "", err
		}
		added = append(added, entry)
	}
	if added == nil {
		return nil, nil, "", nil
	}
	return changed, added, "", nil
}

// appendRule adds a rule, unless one of its name is there: that one is the person's.
func appendRule(source []byte, key string, raw json.RawMessage, s setting) (changed []byte, value any, problem string, err error) {
	var there []policy.Rule
	if raw == nil {
		changed, err = config.Set(source, key, []any{s.value})
		return changed, s.value, "", err
	}
	if err := json.Unmarshal(raw, &there); err != nil {
		return nil, nil, "", err
	}
	wanted := s.value.(policy.Rule)
	if i := slices.IndexFunc(there, func(r policy.Rule) bool { return r.Name == wanted.Name && r.Tool == wanted.Tool }); i >= 0 {
		if there[i] != wanted {
			problem = fmt.Sprintf("teg.rules has a rule %q that says something else", wanted.Name)
		}
		return nil, nil, problem, nil
	}
	changed, err = config.Set(source, fmt.Sprintf("%s[%d]", key, len(there)), s.value)
	return changed, s.value, "", err
}

// replace sets a value, unless what is there is the same or, where values have an order, stricter.
func replace(source []byte, key string, raw json.RawMessage, s setting) (changed []byte, value any, problem string, err error) {
	wanted, err := json.Marshal(s.value)
	if err != nil {
		return nil, nil, "", err
	}
	if raw != nil {
		var a, b any
		if json.Unmarshal(raw, &a) == nil && json.Unmarshal(wanted, &b) == nil {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			if bytes.Equal(x, y) {
				return nil, nil, "", nil
			}
		}
		have, isText := a.(string)
		want, wantsText := b.(string)
		if isText && wantsText && stricterWord(s.key, have, want) {
			return nil, nil, "", nil
		}
	}
	changed, err = config.Set(source, key, s.value)
	return changed, s.value, "", err
}

// orders are the settings whose words have an order, strictest first.
var orders = map[string][]string{
	"tools.exec.security": {"deny", "allowlist", "full"},
	"tools.exec.ask":      {"always", "on-miss", "off"},
	"teg.tools":           {"blocked", "needs_approval", "safe"},
}

// stricterWord reports whether one word of a setting is stricter than another.
func stricterWord(key, a, b string) bool {
	order := orders[key]
	if strings.HasPrefix(key, "teg.tools") {
		order = orders["teg.tools"]
	}
	i, j := slices.Index(order, a), slices.Index(order, b)
	return i >= 0 && j >= 0 && i < j
}

func contains(list []string, entry string) bool {
	return slices.ContainsFunc(list, func(have string) bool { return visible.NormalizeName(have) == visible.NormalizeName(entry) })
}

// inBoth is a list of what two lists allow: entries of the one that an entry of the other covers. What neither covers
// whole is left out, which is stricter.
func inBoth(a, b []string) []string {
	var both []string
	keep := func(entries, by []string) {
		for _, entry := range visible.ExpandGroups(entries) {
			if visible.Matches(by, nil, visible.NormalizeName(entry), nil) && !contains(both, entry) {
				both = append(both, entry)
			}
		}
	}
	keep(a, b)
	keep(b, a)
	return both
}
