package audit

import (
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
	nameLimit     = 128      // bytes of names that a client chose
	listLimit     = 64       // elements of one list
)

// cleaner makes text fit to be kept: without secrets, and with nothing in it
// that a reader cannot see.
type cleaner struct {
	redact, escape func(string) string
}

// text redacts before it cuts: half a secret would not be recognised, and
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

// key prepares an identifier of our own. It is as a face gave it: what could
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
	tool, agent, session := c.name(d.Tool), c.key(call.Caller.Agent), c.key(string(call.Session))
	b := append(e.buf[:0], `{"agentId":`...)
	b = appendText(b, agent)
	b = c.answer(b, &d.Answer)
	b = flagField(b, "byClient", call.ByClient)
	b = textField(b, "callId", c.name(call.ID))
	b = textField(b, "cause", c.text(d.Cause, errorLimit))
	b = textField(b, "class", d.Judgement.Class.Class.String())
	b = textField(b, "code", string(d.Code))
	b = intField(b, "depth", int64(call.Caller.Depth))
	b = textField(b, "digest", d.Digest)
	b = textField(b, "digestOriginal", d.DigestOriginal)
	b = c.facts(b, &d.Facts)
	b = textField(b, "finding", d.Judgement.Finding)
	b = c.findings(b, d.Judgement.Findings)
	b = textField(b, "from", d.Judgement.Class.From.String())
	b = c.hooks(b, d.Hooks)
	b = textField(b, "host", string(call.Host))
	b = textField(b, "level", d.Level.String())
	b = c.inputs(b, &d.Inputs)
	if call.NativeName != d.Tool {
		b = textField(b, "nativeName", c.name(call.NativeName))
	}
	b = texts(b, "overrides", d.Judgement.Overrides)
	b = textField(b, "policyRevision", d.Revision)
	e.prevAt = len(b)
	b = c.preview(b, d.Params)
	b = c.reasons(b, d.Judgement.Reasons)
	b = c.requester(b, &call.Caller)
	b = textField(b, "row", d.Judgement.Row)
	b = textField(b, "runId", c.name(call.Run))
	e.seqAt = len(b)
	b = textField(b, "sessionKey", session)
	b = textField(b, "severity", d.Judgement.Class.Severity.String())
	b = textField(b, "surface", string(call.Surface))
	b = textField(b, "tool", tool)
	b = timeField(b, at)
	b = append(b, `,"type":"decision","v":1`...)
	b = textField(b, "v1", d.First.String())
	if d.DigestOriginal != "" {
		b = textField(b, "v2", d.Judgement.Verdict.String())
	}
	b = textField(b, "verdict", d.Verdict.String())
	b = textField(b, "via", d.Via)
	b = textField(b, "workDir", c.text(call.WorkDir, detailLimit))
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

// facts keeps what rules and grants decide on, and of contents only the size,
// so that a candidate policy can be tried on old records without keeping what
// people wrote.
func (c *cleaner) facts(b []byte, f *toolward.Facts) []byte {
	return object(b, "facts", func(b []byte) []byte {
		b = textField(b, "action", f.Action)
		b = textField(b, "browserOn", f.BrowserOn)
		b = countField(b, "commandBytes", int64(len(f.Command)))
		b = countField(b, "deletes", int64(f.Deletes))
		b = flagField(b, "elevated", f.Elevated)
		b = c.list(b, "hosts", f.Hosts)
		b = flagField(b, "mutates", f.Mutates)
		b = sizes(b, "outboundBytes", f.Outbound)
		b = c.list(b, "recipients", f.Recipients)
		b = textField(b, "scope", f.Scope)
		if len(f.Targets) > listLimit {
			b = intField(b, "targetCount", int64(len(f.Targets)))
		}
		b = textField(b, "targetId", c.name(f.TargetID))
		b = list(b, "targets", min(len(f.Targets), listLimit), func(b []byte, i int) []byte {
			return c.target(b, &f.Targets[i])
		})
		return sizes(b, "urlBytes", f.URLs)
	})
}

func (c *cleaner) target(b []byte, t *toolward.Target) []byte {
	return element(b, func(b []byte) []byte {
		b = textField(b, "kind", t.Kind)
		b = flagField(b, "left", t.Left)
		if t.Links > 1 {
			b = intField(b, "links", int64(min(t.Links, 1<<53)))
		}
		b = textField(b, "op", string(t.Op))
		b = textField(b, "path", c.text(t.Real, detailLimit))
		return textField(b, "place", t.Place)
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
			b = textField(b, "effect", runs[i].Effect)
			b = intField(b, "ms", runs[i].Ms)
			return textField(b, "plugin", runs[i].Plugin)
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

func (c *cleaner) requester(b []byte, caller *toolward.Caller) []byte {
	return object(b, "requester", func(b []byte) []byte {
		b = textField(b, "account", c.name(caller.Account))
		b = textField(b, "channel", c.name(caller.Channel))
		b = textField(b, "client", c.name(caller.Client))
		b = textField(b, "context", caller.Context)
		b = textField(b, "device", caller.Device)
		b = textField(b, "senderId", c.name(caller.Sender))
		return boolField(b, "senderIsOwner", caller.Owner)
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

func sizes(b []byte, name string, values []string) []byte {
	return list(b, name, min(len(values), listLimit), func(b []byte, i int) []byte {
		return appendInt(b, len(values[i]))
	})
}
