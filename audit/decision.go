package audit

import (
	"cmp"
	"strings"
	"time"

	"github.com/toolward/toolward"
)

// Limits of what a record keeps of a call.
const (
	previewLimit  = 4 << 10  // bytes of the shown arguments
	previewWindow = 64 << 10 // bytes that are searched for secrets before the cut
	errorLimit    = 1 << 10  // bytes of an error
	detailLimit   = 512      // bytes of one finding, reason or path
	enforcedLimit = 8 << 10  // bytes of the text that runs in a command's place
	nameLimit     = 128      // bytes of names that a client chose
	listLimit     = 64       // elements of one list
)

// cleaner makes text fit to be kept: without secrets, and with nothing in it
// that a reader cannot see.
type cleaner struct {
	redact, escape func(string) string
	selectors      []string // parameters whose values are kept; see Options.Selectors
}

// text redacts before it cuts: half a secret would not be recognized, and
// would be kept.
func (c *cleaner) text(s string, limit int) string {
	if s == "" {
		return ""
	}
	if len(s) > previewWindow {
		s = s[:previewWindow]
	}
	return cut(c.visible(c.redact(s)), limit)
}

// visible escapes what cannot be seen. Plain text, which nearly all text is,
// has nothing of that kind.
func (c *cleaner) visible(s string) string {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return strings.ToValidUTF8(c.escape(s), "\uFFFD")
		}
	}
	return s
}

// key prepares an identifier of our own. It is as an adapter gave it: what could
// not be written as it stands would make the record differ from the columns
// beside it, and the log look forged.
func (c *cleaner) key(s string) string { return cut(c.visible(s), detailLimit) }

// name prepares an identifier that a client chose: too short to be searched
// for secrets for its own sake, but escaped and bounded.
func (c *cleaner) name(s string) string { return cut(c.visible(cut(s, nameLimit)), nameLimit) }

// decision encodes a decision record into e.
func (c *cleaner) decision(e *entry, d *toolward.DecisionRecord) {
	k := e.kept
	if k == nil {
		k = &decided{}
	}
	c.keep(k, d)
	k.appendTo(e)
	e.record = Record{
		Time: time.Time(k.Time), Type: TypeDecision, Session: string(k.SessionKey), Agent: k.AgentID,
		Tool: k.Tool, Verdict: k.Verdict.String(),
	}
}

// keep puts into kept what is kept of a decision. The lists of an earlier one are used again: a record is built for every call.
func (c *cleaner) keep(kept *decided, d *toolward.DecisionRecord) {
	call, j, used := &d.Call, &d.Judgment, kept
	k := keeper{cleaner: c}
	*kept = decided{
		AgentID:        c.key(call.Caller.Agent),
		Approval:       c.answer(&d.Answer),
		ByClient:       call.ByClient,
		CallID:         c.name(call.ID),
		Cause:          c.text(d.Cause, errorLimit),
		Class:          j.Class.Class,
		Code:           d.Code,
		Depth:          call.Caller.Depth,
		Digest:         d.Digest,
		DigestOriginal: d.DigestOriginal,
		Facts:          k.facts(&used.Facts, &d.Facts, d.Params),
		Finding:        j.Finding,
		Findings:       c.findings(used.Findings[:0], j.Findings),
		Form:           call.Form != nil,
		From:           j.Class.From,
		GrantKind:      j.Class.Grant,
		Hooks:          c.hooks(used.Hooks[:0], d.Hooks),
		Host:           cmp.Or(d.Facts.Host, call.Host),
		Level:          d.Level,
		Inputs: keptInputs{
			Compacted: d.Inputs.Compacted, ContextTokens: d.Inputs.ContextTokens, External: d.Inputs.External, Floor: d.Inputs.Floor,
			ContextWindow: d.Inputs.ContextWindow, Reasons: bounded(d.Inputs.Reasons), Suspicious: d.Inputs.Suspicious,
		},
		Overrides:  bounded(j.Overrides),
		OwnerOnly:  d.OwnerOnly,
		Plugin:     c.name(d.Plugin),
		Policy:     policyAlone(d.Policy),
		Revision:   d.Revision,
		Preview:    c.preview(d.Params),
		Reasons:    c.reasons(used.Reasons[:0], j.Reasons),
		Requester:  k.requester(&call.Caller),
		Row:        j.Row,
		RunID:      c.name(call.Run),
		SessionKey: toolward.SessionKey(c.key(string(call.Session))),
		Severity:   j.Class.Severity,
		Shadow:     c.shadow(d.Shadow),
		Surface:    call.Surface,
		Tool:       c.name(d.Tool),
		Time:       moment(d.Time),
		Undo:       d.Undo,
		V1:         d.First,
		Verdict:    d.Verdict,
		Via:        d.Via,
		WorkDir:    k.verbatim(call.WorkDir, detailLimit),
	}
	if d.Time.IsZero() {
		kept.Time = moment(time.Now())
	}
	if call.NativeName != d.Tool {
		kept.NativeName = c.name(call.NativeName)
	}
	if d.DigestOriginal != "" {
		kept.V2 = &j.Verdict
	}
	kept.Withheld = k.withheld
}

func (c *cleaner) answer(a *toolward.Answer) keptAnswer {
	if a.ApprovalID == "" {
		return keptAnswer{}
	}
	return keptAnswer{
		Decision: a.Decision, ID: a.ApprovalID, Path: a.Path, Reason: c.text(a.Reason, detailLimit),
		ResolvedBy: c.name(a.By), WaitedMs: a.Waited.Milliseconds(),
	}
}

func (c *cleaner) findings(kept findings, all []toolward.Finding) findings {
	for _, f := range bounded(all) {
		f.Detail = c.text(f.Detail, detailLimit)
		kept = append(kept, f)
	}
	return kept
}

func (c *cleaner) hooks(kept, all []toolward.HookRun) []toolward.HookRun {
	for _, run := range bounded(all) {
		run.Detail = c.text(run.Detail, detailLimit)
		kept = append(kept, run)
	}
	return kept
}

// preview shows the canonical arguments, which are what runs.
func (c *cleaner) preview(p toolward.Params) string {
	if p.Len() == 0 {
		return ""
	}
	return c.text(string(p.Canonical()), previewLimit)
}

func policyAlone(j *toolward.Judgment) *keptPolicy {
	if j == nil {
		return nil
	}
	return &keptPolicy{AllowAlways: j.AllowAlways, Code: j.Code, GrantOK: j.GrantOK, Verdict: j.Verdict}
}

func (c *cleaner) shadow(s *toolward.ShadowJudgment) *keptShadow {
	if s == nil {
		return nil
	}
	return &keptShadow{
		AllowAlways: s.AllowAlways, Change: s.Change, Code: s.Code, Findings: c.findings(nil, s.Findings), GrantOK: s.GrantOK,
		Partial: s.Partial, Reasons: c.reasons(nil, s.Reasons), Revision: s.Revision, Row: s.Row, Verdict: s.Verdict,
	}
}

func (c *cleaner) reasons(kept reasons, all []toolward.Reason) reasons {
	for _, r := range bounded(all) {
		r.Matched, r.Text = c.text(r.Matched, detailLimit), c.text(r.Text, detailLimit)
		kept = append(kept, r)
	}
	return kept
}

// bounded is as much of a list as is kept.
func bounded[T any](list []T) []T { return list[:min(len(list), listLimit)] }
