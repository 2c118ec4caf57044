package policy

import (
	"slices"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/visible"
)

// Judge classifies a call, validates what it would touch, and weighs both at the level of its session.
func (s *Snapshot) Judge(r *toolward.Request) toolward.Judgment {
	a := s.agents.Of(r.Call.Caller.Agent, r.Call.Session)
	if a == nil {
		return toolward.Judgment{Code: toolward.CodeInternal, Reasons: []toolward.Reason{{Layer: "registry", Text: "no policy is loaded"}}}
	}
	if !r.Call.Caller.Owner && visible.OwnerOnly(r.Tool) {
		// Find has refused this caller already; a face that skipped it gets no further.
		return toolward.Judgment{Code: toolward.CodeUnknownTool, Reasons: []toolward.Reason{visible.OwnerReason}}
	}
	level := r.Level
	if level > toolward.Normal {
		level = toolward.Lockdown // no level that we know
	}
	c := s.classify(a, r)
	c.findings = validator{a.keepsInWorkspace(r.Tool.Name), r.Tool.Plugin != "" || c.row.Class != toolward.Safe, &s.around}.findings(r)
	if c.row.runsCommand() {
		c.findings = commandFindings(c.findings, r.Facts.Analysis, c.row.host(r), level)
	}
	worst, code := c.raise()
	if worst != toolward.EffectDeny {
		if ruled := s.rule(r, level, &c); ruled < worst {
			worst, code = ruled, ""
		}
	}
	w := weigh(c.Classification, c.enabled, level, worst)
	switch {
	case worst == toolward.EffectDeny:
		switch code {
		case findInvalidArgs:
			w.code = toolward.CodeInvalidArgs
		case "": // a rule, not a finding
			w.code = toolward.CodeBlocked
		}
	case c.row.runsCommand():
		w = a.weighCommand(r.Facts.Analysis, c.row.host(r), level, &c, w, worst)
	case w.verdict == toolward.Ask && w.grantOK && s.hostsAllowed(r, c.Grant):
		w = weighed{verdict: toolward.Allow}
		c.explain(hostsReason)
	// As good as a grant and no better: not in lockdown, and not where something was found.
	case w.verdict == toolward.Ask && w.grantOK && c.Grant == byHost && r.Facts.Listed != "" && r.Tool.Plugin == "":
		w = weighed{verdict: toolward.Allow}
		c.explain(toolward.Reason{Layer: "hosts", Rule: r.Facts.Listed, Text: "the operator lists the host for this agent's sandboxes"})
	}
	if reason, ok := levelReason(&c, w, level); ok {
		c.explain(reason)
	}
	if w.verdict != toolward.Allow {
		c.explainZones(r.Facts.Targets)
	}
	j := toolward.Judgment{
		Verdict: w.verdict, Code: w.code, Class: c.Classification, Row: c.row.name, Overrides: c.overrides,
		AllowAlways: w.allowAlways, GrantOK: w.grantOK, Listed: w.listed, Unanswered: w.unanswered, Findings: c.findings, Reasons: c.reasons,
	}
	if worst == toolward.EffectDeny {
		j.Finding = code
	}
	if w.verdict != toolward.Deny {
		j.Wait = s.waitOf(r, &c)
	}
	return j
}

// zoneReasons say in words why a zone is not like the rest of the workspace.
var zoneReasons = map[toolward.Zone]string{
	toolward.ZoneSelf:         "it is Toolward's own",
	toolward.ZoneSecret:       "it is a secret: a key, a password or what holds them",
	toolward.ZoneProtected:    "other programs run it or trust it",
	toolward.ZoneInstructions: "later runs obey what it says",
	toolward.ZoneOutside:      "it is outside the workspace",
}

// explainZones names the targets that people should look at.
func (c *classified) explainZones(targets []toolward.Target) {
	const most = 4
	for i := range targets {
		words, special := zoneReasons[targets[i].Zone]
		if special && len(c.reasons) < most {
			c.explain(toolward.Reason{Layer: "place", Rule: string(targets[i].Zone), Matched: targets[i].Real, Text: targets[i].Path + ": " + words})
		}
	}
}

// classify finds the row of a call and applies the operator's changes: those of the gateway and those of the agent,
// of which the stricter counts.
func (s *Snapshot) classify(a *agent, r *toolward.Request) classified {
	sub := newSubject(r)
	return s.configured(a, s.rowOf(r, &sub), &sub)
}

// configured is a row with the operator's changes for a call.
func (s *Snapshot) configured(a *agent, of *row, sub *subject) classified {
	c := classified{row: of, reasons: make([]toolward.Reason, 0, 3)}
	c.Classification = c.row.Classification
	c.explain(c.row.reason)
	global, _ := s.override(&s.overrides, sub, &c)
	own, hasOwn := s.override(&a.overrides, sub, &c)
	c.enabled = c.row.Class == toolward.Blocked && s.isEnabled(sub) && !c.named
	c.Classification = global
	if hasOwn {
		c.Classification = stricterClass(global, own)
		c.agentInsists = own.Class != toolward.Safe
	}
	return c
}

// rowOf finds the row. Only Toolward's own tools have rows of their own in the table; what a plug-in says about its
// tools is a claim.
func (s *Snapshot) rowOf(r *toolward.Request, sub *subject) *row {
	t := r.Tool
	if t.Plugin == "" {
		if found, known := s.table.classify(sub); known {
			return found
		}
		if t.Declared != nil {
			declared := line{tool: t.Name, Classification: t.Declared(r.Params), name: t.Name}.explained()
			return &declared
		}
		return &unknownTool
	}
	if s.trusted[visible.NormalizeName(t.Plugin)] && t.Declared != nil && t.Declared(r.Params).Class == toolward.Safe {
		return &trustedHint
	}
	return &unknownTool
}

// trustedHint is the row of a tool that its server calls read-only, if the operator trusts the server's word.
var trustedHint = line{Classification: safe(elevated, info, none), name: "read-only by its server's word"}.explained()

// override applies the entry that concerns a call, if there is one.
func (s *Snapshot) override(o *overrides, sub *subject, c *classified) (toolward.Classification, bool) {
	entry := o.find(sub, s.Tool(sub.tool) != nil || s.table[sub.tool] != nil)
	if entry == nil {
		return c.row.Classification, false
	}
	changed, _ := entry.apply(c.row.Classification)
	c.named = c.named || entry.class == toolward.Blocked || c.row.Class != toolward.Blocked
	if c.overrides == nil {
		c.overrides = slices.Clip(entry.named) // most calls have one, and it was made when the policy was compiled
	} else {
		c.overrides = append(c.overrides, entry.key)
	}
	reason := entry.reason
	reason.Matched = sub.tool
	c.explain(reason)
	return changed, true
}

// isEnabled reports whether teg.enable names the call's row. Only the most specific name counts: enabling "invoke"
// as such is not possible.
func (s *Snapshot) isEnabled(sub *subject) bool {
	if len(s.enabled) == 0 {
		return false
	}
	precise, _ := sub.actionKeys()
	if precise == "" || !s.enabled[sub.tool+"."+precise] {
		return false
	}
	return sub.tool != "gateway" || !touchesGate(sub)
}

// raise lets findings raise the severity and returns the strictest effect with the code of the finding that has it.
func (c *classified) raise() (toolward.Effect, string) {
	worst, code := toolward.EffectNote, ""
	for i := range c.findings {
		f := &c.findings[i]
		if grave(f.Code) {
			c.Severity = toolward.Graver(c.Severity, toolward.Warning)
		}
		if f.Effect == toolward.EffectNote {
			continue
		}
		if gravest(f.Code) {
			c.Severity = toolward.Critical
		}
		if f.Effect < worst {
			worst, code = f.Effect, f.Code
		}
		c.explain(toolward.Reason{Layer: "validation", Rule: f.Code, Text: f.Detail})
	}
	return worst, code
}

// levelReason says that the session's level made a difference.
func levelReason(c *classified, w weighed, level toolward.Level) (toolward.Reason, bool) {
	switch {
	case w.code == toolward.CodeBlockedInLockdown:
		return toolward.Reason{Layer: "level", Matched: "lockdown", Text: "what the operator enabled is refused while the session is in lockdown"}, true
	case c.Class != toolward.Safe || w.verdict == toolward.Allow || w.verdict == toolward.Deny:
		return toolward.Reason{}, false
	case level == toolward.Lockdown:
		return toolward.Reason{Layer: "level", Matched: "lockdown", Text: "the session is in lockdown, where every call asks"}, true
	case level <= c.From:
		return toolward.Reason{Layer: "level", Matched: level.String(), Text: "the session is at a level at which this asks"}, true
	}
	return toolward.Reason{}, false
}
