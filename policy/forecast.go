package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy/visible"
)

// Possible is what may become of calls, before it is known what they would touch.
type Possible struct {
	Allow bool `json:"allow"` // some run without a question
	Ask   bool `json:"ask"`   // people or a grant decide about some
	Deny  bool `json:"deny"`  // some are refused
}

func (p *Possible) add(v toolward.Verdict) {
	switch v {
	case toolward.Allow:
		p.Allow = true
	case toolward.Ask:
		p.Ask = true
	default:
		p.Deny = true
	}
}

func (p Possible) or(other Possible) Possible {
	return Possible{p.Allow || other.Allow, p.Ask || other.Ask, p.Deny || other.Deny}
}

// Forecast is what the policy says about the calls of one tool while there is none. It is no verdict: which case a call
// falls into shows in its arguments, and what validation finds in them, plug-ins and grants come with the call.
type Forecast struct {
	Tool     string           `json:"tool"`
	Visible  bool             `json:"visible"`
	Removed  *toolward.Reason `json:"removed,omitempty"` // the first step that takes it away
	Possible Possible         `json:"possible"`          // of all cases together; nothing for a tool that is not visible
	Cases    []Case           `json:"cases"`             // also for a tool that is not visible: what it would be
}

// Case is one row of the class table with the operator's changes.
type Case struct {
	Row       string             `json:"row"`
	Actions   []string           `json:"actions,omitempty"` // in the form of records; none: whatever no other case names; "other": any further one
	Possible  Possible           `json:"possible"`
	Class     toolward.Class     `json:"class"`
	Severity  toolward.Severity  `json:"severity"`
	Grant     toolward.GrantKind `json:"grant,omitempty"`
	Overrides []string           `json:"overrides,omitempty"` // keys of the configuration that concern it
	Rules     []string           `json:"rules,omitempty"`     // of teg.rules, that decide where their conditions hold
	Enabled   bool               `json:"enabled,omitempty"`   // blocked, and the operator enabled it by name
	Reasons   []toolward.Reason  `json:"reasons"`
}

// Forecast tells what may become of a caller's calls of a tool at a level. A name that no tool has yet is judged by
// the same layers and rows. It walks the rows of the table and judges each by the code that judges calls, so the two
// cannot disagree.
func (s *Snapshot) Forecast(c toolward.Caller, name string, level toolward.Level) Forecast {
	o := Forecast{Tool: name, Cases: []Case{}}
	a := s.agentOf(&c)
	if a == nil {
		o.Removed = &toolward.Reason{Layer: "registry", Text: "no policy is loaded"}
		return o
	}
	t := s.Tool(name)
	if t == nil {
		t = &toolward.Tool{Name: visible.NormalizeName(name)}
	}
	o.Tool = t.Name
	reason, hidden := s.Hides(&c, t)
	if hidden {
		o.Removed = &reason
	}
	o.Visible = !hidden
	o.Cases = s.cases(a, &c, t, level)
	for i := range o.Cases {
		if o.Visible {
			o.Possible = o.Possible.or(o.Cases[i].Possible)
		}
	}
	return o
}

// cases judges every row of a tool.
func (s *Snapshot) cases(a *agent, c *toolward.Caller, t *toolward.Tool, level toolward.Level) []Case {
	var out []Case
	for _, r := range s.rowsFor(t) {
		var of []Case
		for _, sub := range s.subjects(a, t, &r) {
			one := s.caseOf(a, c, t, &r, &sub, level)
			same := slices.IndexFunc(of, func(other Case) bool { return sameCase(&one, &other) })
			switch {
			case same < 0:
				of = append(of, one)
			case len(of[same].Actions) > 0: // the case of unnamed actions covers this one too
				of[same].Actions = append(of[same].Actions, one.Actions...)
			}
		}
		for i := range of {
			slices.Sort(of[i].Actions)
			of[i].Actions = slices.Compact(of[i].Actions)
		}
		out = append(out, of...)
	}
	return out
}

// sameCase reports whether two actions of one row are treated alike.
func sameCase(a, b *Case) bool {
	return a.Possible == b.Possible && a.Class == b.Class && a.Severity == b.Severity && a.Grant == b.Grant &&
		a.Enabled == b.Enabled && slices.Equal(a.Overrides, b.Overrides) && slices.Equal(a.Rules, b.Rules)
}

// rowsFor lists the rows of a tool, with the one for whatever its rows do not name.
func (s *Snapshot) rowsFor(t *toolward.Tool) []row {
	known := s.table[t.Name]
	if t.Plugin != "" || known == nil {
		r := &toolward.Request{Tool: t}
		sub := newSubject(r)
		return []row{*s.rowOf(r, &sub)}
	}
	if slices.ContainsFunc(known.rows, catchesAll) {
		return known.rows
	}
	return append(slices.Clip(known.rows), known.other)
}

func catchesAll(r row) bool { return r.actions == nil && r.when == nil }

// subjects are calls that stand for all those of a row which the operator's changes can treat differently: one for
// every action of the row, and for a row without actions one for each that the configuration names.
func (s *Snapshot) subjects(a *agent, t *toolward.Tool, r *row) []subject {
	elevated := r.when != nil && r.when(subject{elevated: true}) && !r.when(subject{})
	one := func(action string, params map[string]any) subject {
		return subject{tool: t.Name, action: action, elevated: elevated, params: toolward.NewParams(nil, params)}
	}
	var out []subject
	for _, action := range r.actions {
		switch {
		case t.Name == "nodes" && action == "invoke":
			for _, command := range s.invokeCommands(a, t) {
				sub := one(action, map[string]any{"invokeCommand": command})
				if hit, known := s.table.classify(&sub); known && hit.name == r.name {
					out = append(out, sub)
				}
			}
		case t.Name == "gateway" && action == "configpatch":
			// A patch that names nothing of the gate may be enabled; any other may not.
			out = append(out, one(action, nil), one(action, map[string]any{"patch": map[string]any{}}))
		default:
			out = append(out, one(action, nil))
		}
	}
	if r.actions != nil {
		return out
	}
	out = append(out, one("", nil))
	for _, action := range s.namedActions(a, t) {
		if !s.takenBefore(t.Name, r, action) {
			out = append(out, one(action, nil))
		}
	}
	return out
}

// takenBefore reports whether an earlier row takes every call with an action.
func (s *Snapshot) takenBefore(tool string, r *row, action string) bool {
	known := s.table[tool]
	if known == nil {
		return false
	}
	for i := range known.rows {
		earlier := &known.rows[i]
		if earlier.name == r.name {
			return false
		}
		if earlier.when == nil && (earlier.actions == nil || slices.Contains(earlier.actions, action)) {
			return true
		}
	}
	return false
}

// otherAction stands for every action that no row names, where a glob such as "browser.*" tells calls with an action
// from calls without one.
const otherAction = "other"

// namedActions are the actions of a tool that the operator's changes and rules name, and for a glob the shortest that it covers.
func (s *Snapshot) namedActions(a *agent, t *toolward.Tool) []string {
	var out []string
	tool := t.Name
	if rules := s.rulesOf.of(tool, t.Plugin); rules != nil {
		out = slices.Collect(maps.Keys(rules.byAction))
	}
	for _, o := range []*overrides{&s.overrides, &a.overrides} {
		globs := o.globs
		if t := o.byTool[tool]; t != nil {
			globs = t.globs
			for action := range t.actions {
				out = append(out, action)
			}
		}
		for _, g := range globs {
			if rest, ok := strings.CutPrefix(g.glob, tool+"."); ok {
				out = append(out, cmp.Or(squashKey(strings.ReplaceAll(rest, "*", "")), otherAction))
			}
		}
	}
	// "invoke:<command>" and "elevated" are no actions; rows of their own stand for them.
	out = slices.DeleteFunc(out, func(action string) bool {
		return action == "" || strings.Contains(action, ":") || tool == "exec" && action == "elevated"
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// invokeCommands are the commands of "nodes invoke" that the table or the operator name, and "" for all
// others.
func (s *Snapshot) invokeCommands(a *agent, t *toolward.Tool) []string {
	out := slices.Concat([]string{""}, invokeBlocked, invokeSystem, invokeLook)
	var named []string
	for _, o := range []*overrides{&s.overrides, &a.overrides} {
		if changes := o.byTool[t.Name]; changes != nil {
			named = slices.AppendSeq(named, maps.Keys(changes.actions))
		}
	}
	if rules := s.rulesOf.of(t.Name, t.Plugin); rules != nil {
		named = slices.AppendSeq(named, maps.Keys(rules.byAction))
	}
	for _, action := range named {
		if command, ok := strings.CutPrefix(action, "invoke:"); ok {
			out = append(out, command)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// caseOf judges one subject as calls are judged, with nothing found in its arguments.
func (s *Snapshot) caseOf(a *agent, caller *toolward.Caller, t *toolward.Tool, r *row, sub *subject, level toolward.Level) Case {
	c := s.configured(a, r, sub)
	out := Case{Row: r.name, Enabled: c.enabled, Overrides: c.overrides}
	if precise, _ := sub.actionKeys(); precise != "" {
		out.Actions = []string{strings.TrimSuffix(precise, ":")}
	}
	w := weigh(c.Classification, c.enabled, level, toolward.EffectNote)
	switch {
	case r.runsCommand() && !(c.named && w.verdict == toolward.Deny):
		s.addCommands(&out.Possible, a, caller, &c, w, level)
	default:
		out.Possible.add(w.verdict)
	}
	if w.verdict == toolward.Ask && w.grantOK && c.Grant == byHost && len(s.allowHosts) > 0 {
		out.Possible.Allow = true
		c.explain(toolward.Reason{Layer: "teg.web.allowHosts", Rule: "teg.web.allowHosts", Text: "calls to the hosts of this list run"})
	}
	if a.keepsInWorkspace(sub.tool) && mayLeaveWorkspace(r, sub) {
		out.Possible.Deny = true
		c.explain(toolward.Reason{Layer: "validation", Rule: findPathEscape, Text: "files outside the workspace are refused to this agent"})
	}
	s.addRules(&out, &c, t, sub, level)
	out.Class, out.Severity, out.Grant, out.Reasons = c.Class, c.Severity, c.Grant, c.reasons
	return out
}

// mayLeaveWorkspace reports whether the row is for files of a kind that lies outside the workspace, too.
func mayLeaveWorkspace(r *row, sub *subject) bool {
	if r.when == nil {
		return false
	}
	for _, p := range []place.Zone{place.Outside, place.Protected, place.Secret, place.Instructions} {
		file := subject{tool: sub.tool, action: sub.action, placed: true, place: p}
		withURL := file
		withURL.urls = true
		if r.hits(&file) || r.hits(&withURL) {
			return true
		}
	}
	return false
}

// addRules adds what teg.rules may make of the case, the kinds in the order of their strictness: what a stricter rule
// says counts. Whether a condition holds is known with the call, unless it is "true".
func (s *Snapshot) addRules(out *Case, c *classified, t *toolward.Tool, sub *subject, level toolward.Level) {
	rules := s.rulesOf.of(t.Name, t.Plugin)
	if rules == nil || c.Class == toolward.Blocked && !c.enabled {
		return
	}
	precise, kind := sub.actionKeys()
	for then := thenCount; then > 0; {
		then--
		if then == ThenAllow && !(c.lowerable() && level == toolward.Normal) {
			continue
		}
		for _, one := range slices.Concat(rules.any.of(then), rules.byAction[precise].of(then), rules.byAction[kind].of(then)) {
			out.Possible.rule(then, strings.TrimSpace(one.When) == "true")
			out.Rules = append(out.Rules, one.Name)
			c.explain(one.reason)
		}
	}
}

// rule adds the end that a rule may bring. always says that it brings it to every call of the case that no stricter
// rule takes.
func (p *Possible) rule(then Then, always bool) {
	switch {
	case then == ThenDeny && always:
		*p = Possible{Deny: true}
	case then == ThenDeny:
		p.Deny = true
	case then == ThenAsk && (p.Allow || p.Ask):
		p.Ask, p.Allow = true, p.Allow && !always
	case then == ThenAllow:
		p.Allow, p.Ask = true, p.Ask && !always
	}
}

// addCommands judges a command that the allowlist covers, one that it does not cover, one that asks whatever the
// settings, and one that a rule forbids.
func (s *Snapshot) addCommands(p *Possible, a *agent, caller *toolward.Caller, c *classified, w weighed, level toolward.Level) {
	host := toolward.HostGateway
	if s.Confined(*caller).Sandboxed {
		host = toolward.HostSandbox
	}
	kinds := []toolward.CommandAnalysis{{Understood: true, Covered: true}, {Understood: true}, {Findings: []string{modes.FindingObfuscation}}, {Forbidden: "a rule"}}
	for i := range kinds {
		p.add(a.weighCommand(&kinds[i], host, level, c, w, toolward.EffectNote).verdict)
	}
}
