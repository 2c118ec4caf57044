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

// decision encodes a decision record into e, in the order of field names.
func (c *cleaner) decision(e *entry, d *toolward.DecisionRecord) {
	call, at := &d.Call, d.Time
	if at.IsZero() {
		at = time.Now()
	}
	k := keeper{cleaner: c}
	workDir := k.verbatim(call.WorkDir, detailLimit)
	tool, agent, session := c.name(d.Tool), c.key(call.Caller.Agent), c.key(string(call.Session))
	b := append(e.buf[:0], `{"agentId":`...)
	b = appendText(b, agent)
	b = c.answer(b, &d.Answer)
	b = flagField(b, "byClient", call.ByClient)
	b = textField(b, "callId", c.name(call.ID))
	b = textField(b, "cause", c.text(d.Cause, errorLimit))
	b = textField(b, "class", d.Judgment.Class.Class.String())
	b = textField(b, "code", string(d.Code))
	b = intField(b, "depth", int64(call.Caller.Depth))
	b = textField(b, "digest", d.Digest)
	b = textField(b, "digestOriginal", d.DigestOriginal)
	b = k.facts(b, &d.Facts, d.Params)
	b = textField(b, "finding", d.Judgment.Finding)
	b = c.findings(b, d.Judgment.Findings)
	b = flagField(b, "form", call.Form != nil)
	b = textField(b, "from", d.Judgment.Class.From.String())
	b = textField(b, "grantKind", string(d.Judgment.Class.Grant))
	b = c.hooks(b, d.Hooks)
	b = textField(b, "host", string(cmp.Or(d.Facts.Host, call.Host)))
	b = textField(b, "level", d.Level.String())
	b = c.inputs(b, &d.Inputs)
	if call.NativeName != d.Tool {
		b = textField(b, "nativeName", c.name(call.NativeName))
	}
	b = texts(b, "overrides", d.Judgment.Overrides)
	b = flagField(b, "ownerOnly", d.OwnerOnly)
	b = textField(b, "plugin", c.name(d.Plugin))
	b = policyAlone(b, d.Policy)
	b = textField(b, "policyRevision", d.Revision)
	e.prevAt = len(b)
	b = c.preview(b, d.Params)
	b = c.reasons(b, d.Judgment.Reasons)
	b = k.requester(b, &call.Caller)
	b = textField(b, "row", d.Judgment.Row)
	b = textField(b, "runId", c.name(call.Run))
	e.seqAt = len(b)
	b = textField(b, "sessionKey", session)
	b = textField(b, "severity", d.Judgment.Class.Severity.String())
	b = c.shadow(b, d.Shadow)
	b = textField(b, "surface", string(call.Surface))
	b = textField(b, "tool", tool)
	b = timeField(b, at)
	b = append(b, `,"type":"decision","v":1`...)
	b = textField(b, "v1", d.First.String())
	if d.DigestOriginal != "" {
		b = textField(b, "v2", d.Judgment.Verdict.String())
	}
	b = textField(b, "verdict", d.Verdict.String())
	b = textField(b, "via", d.Via)
	b = flagField(b, "withheld", k.withheld)
	b = textField(b, "workDir", workDir)
	e.buf = append(b, '}')

	e.record = Record{
		Time: at, Type: TypeDecision, Session: session, Agent: agent,
		Tool: tool, Verdict: d.Verdict.String(),
	}
}

func (c *cleaner) answer(b []byte, a *toolward.Answer) []byte {
	if a.ApprovalID == "" {
		return b
	}
	return object(b, "approval", func(b []byte) []byte {
		b = textField(b, "decision", a.Decision.String())
		b = textField(b, "id", a.ApprovalID)
		b = textField(b, "path", a.Path)
		b = textField(b, "reason", c.text(a.Reason, detailLimit))
		b = textField(b, "resolvedBy", c.name(a.By))
		return intField(b, "waitedMs", a.Waited.Milliseconds())
	})
}

func (c *cleaner) findings(b []byte, findings []toolward.Finding) []byte {
	return list(b, "findings", min(len(findings), listLimit), func(b []byte, i int) []byte {
		f := &findings[i]
		return element(b, func(b []byte) []byte {
			b = textField(b, "code", f.Code)
			b = textField(b, "detail", c.text(f.Detail, detailLimit))
			return textField(b, "effect", f.Effect.String())
		})
	})
}

func (c *cleaner) hooks(b []byte, runs []toolward.HookRun) []byte {
	return list(b, "hooks", min(len(runs), listLimit), func(b []byte, i int) []byte {
		return element(b, func(b []byte) []byte {
			run := &runs[i]
			b = textField(b, "detail", c.text(run.Detail, detailLimit))
			b = textField(b, "digestAfter", run.After)
			b = textField(b, "digestBefore", run.Before)
			b = textField(b, "effect", run.Effect)
			b = textField(b, "hook", run.Hook)
			b = intField(b, "ms", run.Ms)
			return textField(b, "plugin", run.Plugin)
		})
	})
}

func (c *cleaner) inputs(b []byte, in *toolward.LevelInputs) []byte {
	return object(b, "levelInputs", func(b []byte) []byte {
		b = boolField(b, "compacted", in.Compacted)
		b = intField(b, "contextTokens", in.ContextTokens)
		b = boolField(b, "external", in.External)
		b = textField(b, "floor", in.Floor.String())
		b = intField(b, "maxContextTokens", in.ContextWindow)
		b = texts(b, "reasons", in.Reasons)
		return boolField(b, "suspicious", in.Suspicious)
	})
}

// preview shows the canonical arguments, which are what runs.
func (c *cleaner) preview(b []byte, p toolward.Params) []byte {
	if p.Len() == 0 {
		return b
	}
	return textField(b, "preview", c.text(string(p.Canonical()), previewLimit))
}

// policyAlone keeps what the policy said by itself: a replay compares another policy with that, and not with what
// plug-ins and detectors made of it.
func policyAlone(b []byte, j *toolward.Judgment) []byte {
	if j == nil {
		return b
	}
	return object(b, "policy", func(b []byte) []byte {
		b = flagField(b, "allowAlways", j.AllowAlways)
		b = textField(b, "code", string(j.Code))
		b = flagField(b, "grantOk", j.GrantOK)
		return textField(b, "verdict", j.Verdict.String())
	})
}

func (c *cleaner) shadow(b []byte, s *toolward.ShadowJudgment) []byte {
	if s == nil {
		return b
	}
	return object(b, "shadow", func(b []byte) []byte {
		b = flagField(b, "allowAlways", s.AllowAlways)
		b = textField(b, "change", string(s.Change))
		b = textField(b, "code", string(s.Code))
		b = c.findings(b, s.Findings)
		b = flagField(b, "grantOk", s.GrantOK)
		b = flagField(b, "partial", s.Partial)
		b = c.reasons(b, s.Reasons)
		b = textField(b, "revision", s.Revision)
		b = textField(b, "row", s.Row)
		if s.Partial {
			return b
		}
		return textField(b, "verdict", s.Verdict.String())
	})
}

func (c *cleaner) reasons(b []byte, reasons []toolward.Reason) []byte {
	return list(b, "reasons", min(len(reasons), listLimit), func(b []byte, i int) []byte {
		r := &reasons[i]
		return element(b, func(b []byte) []byte {
			b = textField(b, "layer", r.Layer)
			b = textField(b, "matched", c.text(r.Matched, detailLimit))
			b = textField(b, "rule", r.Rule)
			return textField(b, "text", c.text(r.Text, detailLimit))
		})
	})
}

func (c *cleaner) list(b []byte, name string, values []string) []byte {
	return list(b, name, min(len(values), listLimit), func(b []byte, i int) []byte {
		return appendText(b, c.text(values[i], detailLimit))
	})
}

// texts appends words of our own: nothing in them came from a caller.
func texts(b []byte, name string, values []string) []byte {
	return list(b, name, min(len(values), listLimit), func(b []byte, i int) []byte {
		return appendText(b, values[i])
	})
}
