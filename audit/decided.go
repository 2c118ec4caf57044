package audit

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/toolward/toolward"
)

// decided is a decision as its record keeps it, for writing and for reading alike. Fields stand in the order of their names
// in JSON, which is the order of canonical JSON; appendTo writes them by hand, see encode.go. Two more fields, prev and seq, are
// the chain's: it puts them in when it knows them.
type decided struct {
	AgentID        string              `json:"agentId"`
	Approval       keptAnswer          `json:"approval"`
	ByClient       bool                `json:"byClient"`
	CallID         string              `json:"callId"`
	Cause          string              `json:"cause"`
	Class          toolward.Class      `json:"class"`
	Code           toolward.Code       `json:"code"`
	Depth          int                 `json:"depth"`
	Digest         string              `json:"digest"`
	DigestOriginal string              `json:"digestOriginal"`
	Facts          keptFacts           `json:"facts"`
	Finding        string              `json:"finding"`
	Findings       findings            `json:"findings"`
	Form           bool                `json:"form"`
	From           toolward.Level      `json:"from"`
	GrantKind      toolward.GrantKind  `json:"grantKind"`
	Hooks          []toolward.HookRun  `json:"hooks"`
	Host           toolward.Host       `json:"host"`
	Level          toolward.Level      `json:"level"`
	Inputs         keptInputs          `json:"levelInputs"`
	NativeName     string              `json:"nativeName"`
	Overrides      []string            `json:"overrides"`
	OwnerOnly      bool                `json:"ownerOnly"`
	Plugin         string              `json:"plugin"`
	Policy         *keptPolicy         `json:"policy"`
	Revision       string              `json:"policyRevision"`
	Preview        string              `json:"preview"`
	Reasons        reasons             `json:"reasons"`
	Requester      keptRequester       `json:"requester"`
	Row            string              `json:"row"`
	RunID          string              `json:"runId"`
	SessionKey     toolward.SessionKey `json:"sessionKey"`
	Severity       toolward.Severity   `json:"severity"`
	Shadow         *keptShadow         `json:"shadow"`
	Surface        toolward.Surface    `json:"surface"`
	Tool           string              `json:"tool"`
	Time           moment              `json:"ts"`
	Undo           string              `json:"undo"`
	V1             toolward.Verdict    `json:"v1"`
	V2             *toolward.Verdict   `json:"v2"` // only of a call that a plug-in rewrote
	Verdict        toolward.Verdict    `json:"verdict"`
	Via            string              `json:"via"`
	Withheld       bool                `json:"withheld"`
	WorkDir        string              `json:"workDir"`
}

// appendTo writes the record into e, without what the chain puts in.
func (d *decided) appendTo(e *entry) {
	b := append(e.buf[:0], `{"agentId":`...)
	b = appendText(b, d.AgentID)
	b = d.Approval.append(b)
	b = flagField(b, "byClient", d.ByClient)
	b = textField(b, "callId", d.CallID)
	b = textField(b, "cause", d.Cause)
	b = textField(b, "class", d.Class.String())
	b = textField(b, "code", string(d.Code))
	b = intField(b, "depth", int64(d.Depth))
	b = textField(b, "digest", d.Digest)
	b = textField(b, "digestOriginal", d.DigestOriginal)
	b = d.Facts.append(b)
	b = textField(b, "finding", d.Finding)
	b = d.Findings.append(b)
	b = flagField(b, "form", d.Form)
	b = textField(b, "from", d.From.String())
	b = textField(b, "grantKind", string(d.GrantKind))
	b = appendHooks(b, d.Hooks)
	b = textField(b, "host", string(d.Host))
	b = textField(b, "level", d.Level.String())
	b = d.Inputs.append(b)
	b = textField(b, "nativeName", d.NativeName)
	b = textsField(b, "overrides", d.Overrides)
	b = flagField(b, "ownerOnly", d.OwnerOnly)
	b = textField(b, "plugin", d.Plugin)
	b = d.Policy.append(b)
	b = textField(b, "policyRevision", d.Revision)
	e.prevAt = len(b)
	b = textField(b, "preview", d.Preview)
	b = d.Reasons.append(b)
	b = d.Requester.append(b)
	b = textField(b, "row", d.Row)
	b = textField(b, "runId", d.RunID)
	e.seqAt = len(b)
	b = textField(b, "sessionKey", string(d.SessionKey))
	b = textField(b, "severity", d.Severity.String())
	b = d.Shadow.append(b)
	b = textField(b, "surface", string(d.Surface))
	b = textField(b, "tool", d.Tool)
	b = timeField(b, time.Time(d.Time))
	b = append(b, `,"type":"decision"`...)
	b = textField(b, "undo", d.Undo)
	b = append(b, `,"v":1`...)
	b = textField(b, "v1", d.V1.String())
	if d.V2 != nil {
		b = textField(b, "v2", d.V2.String())
	}
	b = textField(b, "verdict", d.Verdict.String())
	b = textField(b, "via", d.Via)
	b = flagField(b, "withheld", d.Withheld)
	b = textField(b, "workDir", d.WorkDir)
	e.buf = append(b, '}')
}

// keptAnswer is what people answered. Nothing is written of a call that they were not asked about.
type keptAnswer struct {
	Decision   toolward.Decision `json:"decision"`
	ID         string            `json:"id"`
	Path       string            `json:"path"`
	Reason     string            `json:"reason"`
	ResolvedBy string            `json:"resolvedBy"`
	WaitedMs   int64             `json:"waitedMs"`
}

func (a *keptAnswer) append(b []byte) []byte {
	if a.ID == "" {
		return b
	}
	return object(b, "approval", func(b []byte) []byte {
		b = textField(b, "decision", a.Decision.String())
		b = textField(b, "id", a.ID)
		b = textField(b, "path", a.Path)
		b = textField(b, "reason", a.Reason)
		b = textField(b, "resolvedBy", a.ResolvedBy)
		return intField(b, "waitedMs", a.WaitedMs)
	})
}

// keptFacts is what the decision was about, without what people wrote.
type keptFacts struct {
	Action        string        `json:"action"`
	Analysis      *keptAnalysis `json:"analysis"`
	BrowserOn     string        `json:"browserOn"`
	CommandBytes  int           `json:"commandBytes"`
	Deletes       int           `json:"deletes"`
	Elevated      bool          `json:"elevated"`
	HostWhy       string        `json:"hostWhy"`
	Hosts         []string      `json:"hosts"`
	Listed        string        `json:"listed"`
	Mutates       bool          `json:"mutates"`
	OutboundBytes []int         `json:"outboundBytes"`
	Params        keptParams    `json:"params"`
	Recipients    []string      `json:"recipients"`
	Sandbox       string        `json:"sandbox"`
	Scope         string        `json:"scope"`
	TargetCount   int           `json:"targetCount"` // only where not all are kept
	TargetID      string        `json:"targetId"`
	Targets       []keptTarget  `json:"targets"`
	URLBytes      []int         `json:"urlBytes"`
}

func (f *keptFacts) append(b []byte) []byte {
	return object(b, "facts", func(b []byte) []byte {
		b = textField(b, "action", f.Action)
		b = f.Analysis.append(b)
		b = textField(b, "browserOn", f.BrowserOn)
		b = countField(b, "commandBytes", int64(f.CommandBytes))
		b = countField(b, "deletes", int64(f.Deletes))
		b = flagField(b, "elevated", f.Elevated)
		b = textField(b, "hostWhy", f.HostWhy)
		b = textsField(b, "hosts", f.Hosts)
		b = textField(b, "listed", f.Listed)
		b = flagField(b, "mutates", f.Mutates)
		b = sizesField(b, "outboundBytes", f.OutboundBytes)
		b = f.Params.append(b)
		b = textsField(b, "recipients", f.Recipients)
		b = textField(b, "sandbox", f.Sandbox)
		b = textField(b, "scope", f.Scope)
		b = countField(b, "targetCount", int64(f.TargetCount))
		b = textField(b, "targetId", f.TargetID)
		b = list(b, "targets", len(f.Targets), func(b []byte, i int) []byte { return f.Targets[i].append(b) })
		return sizesField(b, "urlBytes", f.URLBytes)
	})
}

// keptAnalysis is what decided about a command.
type keptAnalysis struct {
	Ask        string   `json:"ask"`
	Contained  bool     `json:"contained"`
	Covered    bool     `json:"covered"`
	Enforced   string   `json:"enforced"`
	Forbidden  string   `json:"forbidden"`
	Forced     []string `json:"forced"`
	Savable    bool     `json:"savable"`
	Security   string   `json:"security"`
	Unanswered bool     `json:"unanswered"`
	Understood bool     `json:"understood"`
}

func (a *keptAnalysis) append(b []byte) []byte {
	if a == nil {
		return b
	}
	return object(b, "analysis", func(b []byte) []byte {
		b = textField(b, "ask", a.Ask)
		b = flagField(b, "contained", a.Contained)
		b = flagField(b, "covered", a.Covered)
		b = textField(b, "enforced", a.Enforced)
		b = textField(b, "forbidden", a.Forbidden)
		b = textsField(b, "forced", a.Forced)
		b = flagField(b, "savable", a.Savable)
		b = textField(b, "security", a.Security)
		b = flagField(b, "unanswered", a.Unanswered)
		return flagField(b, "understood", a.Understood)
	})
}

type keptTarget struct {
	Kind  toolward.Kind `json:"kind"`
	Left  bool          `json:"left"`
	Links uint64        `json:"links"` // only if there are several
	Op    toolward.Op   `json:"op"`
	Path  string        `json:"path"`
	Zone  toolward.Zone `json:"place"`
}

func (t *keptTarget) append(b []byte) []byte {
	return element(b, func(b []byte) []byte {
		b = textField(b, "kind", string(t.Kind))
		b = flagField(b, "left", t.Left)
		b = countField(b, "links", int64(t.Links))
		b = textField(b, "op", string(t.Op))
		b = textField(b, "path", t.Path)
		return textField(b, "place", string(t.Zone))
	})
}

// keptParams are the parameters that chose the row of the class table, by name.
type keptParams []keptParam

// keptParam is a word, or true or false.
type keptParam struct {
	name  string
	value any
}

func (p keptParams) append(b []byte) []byte {
	return object(b, "params", func(b []byte) []byte {
		for _, param := range p {
			switch value := param.value.(type) {
			case bool:
				b = boolField(b, param.name, value)
			case string:
				b = appendText(field(b, param.name), value)
			}
		}
		return b
	})
}

// UnmarshalJSON reads what append wrote.
func (p *keptParams) UnmarshalJSON(data []byte) error {
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	*p = nil
	for _, name := range slices.Sorted(maps.Keys(values)) {
		*p = append(*p, keptParam{name, values[name]})
	}
	return nil
}

// findings and reasons are as the root package has them; their JSON is written in the order of names.
type (
	findings []toolward.Finding
	reasons  []toolward.Reason
)

func (f findings) append(b []byte) []byte {
	return list(b, "findings", len(f), func(b []byte, i int) []byte {
		return element(b, func(b []byte) []byte {
			b = textField(b, "code", f[i].Code)
			b = textField(b, "detail", f[i].Detail)
			return textField(b, "effect", f[i].Effect.String())
		})
	})
}

func (r reasons) append(b []byte) []byte {
	return list(b, "reasons", len(r), func(b []byte, i int) []byte {
		return element(b, func(b []byte) []byte {
			b = textField(b, "layer", r[i].Layer)
			b = textField(b, "matched", r[i].Matched)
			b = textField(b, "rule", r[i].Rule)
			return textField(b, "text", r[i].Text)
		})
	})
}

func appendHooks(b []byte, runs []toolward.HookRun) []byte {
	return list(b, "hooks", len(runs), func(b []byte, i int) []byte {
		return element(b, func(b []byte) []byte {
			run := &runs[i]
			b = textField(b, "detail", run.Detail)
			b = textField(b, "digestAfter", run.After)
			b = textField(b, "digestBefore", run.Before)
			b = textField(b, "effect", run.Effect)
			b = textField(b, "hook", run.Hook)
			b = intField(b, "ms", run.Ms)
			return textField(b, "plugin", run.Plugin)
		})
	})
}

// keptInputs are the signals of the level. All of them are written, also those that say nothing.
type keptInputs struct {
	Compacted     bool           `json:"compacted"`
	ContextTokens int64          `json:"contextTokens"`
	External      bool           `json:"external"`
	Floor         toolward.Level `json:"floor"`
	ContextWindow int64          `json:"maxContextTokens"`
	Reasons       []string       `json:"reasons"`
	Suspicious    bool           `json:"suspicious"`
}

func (in *keptInputs) append(b []byte) []byte {
	return object(b, "levelInputs", func(b []byte) []byte {
		b = boolField(b, "compacted", in.Compacted)
		b = intField(b, "contextTokens", in.ContextTokens)
		b = boolField(b, "external", in.External)
		b = textField(b, "floor", in.Floor.String())
		b = intField(b, "maxContextTokens", in.ContextWindow)
		b = textsField(b, "reasons", in.Reasons)
		return boolField(b, "suspicious", in.Suspicious)
	})
}

// keptPolicy is what the policy said by itself: a replay compares another policy with that, and not with what plug-ins and
// detectors made of it.
type keptPolicy struct {
	AllowAlways bool             `json:"allowAlways"`
	Code        toolward.Code    `json:"code"`
	GrantOK     bool             `json:"grantOk"`
	Verdict     toolward.Verdict `json:"verdict"`
}

func (p *keptPolicy) append(b []byte) []byte {
	if p == nil {
		return b
	}
	return object(b, "policy", func(b []byte) []byte {
		b = flagField(b, "allowAlways", p.AllowAlways)
		b = textField(b, "code", string(p.Code))
		b = flagField(b, "grantOk", p.GrantOK)
		return textField(b, "verdict", p.Verdict.String())
	})
}

// keptShadow is what a second policy said where it differed.
type keptShadow struct {
	AllowAlways bool             `json:"allowAlways"`
	Change      toolward.Change  `json:"change"`
	Code        toolward.Code    `json:"code"`
	Findings    findings         `json:"findings"`
	GrantOK     bool             `json:"grantOk"`
	Partial     bool             `json:"partial"`
	Reasons     reasons          `json:"reasons"`
	Revision    string           `json:"revision"`
	Row         string           `json:"row"`
	Verdict     toolward.Verdict `json:"verdict"` // not written if it is partial: there is none
}

func (s *keptShadow) append(b []byte) []byte {
	if s == nil {
		return b
	}
	return object(b, "shadow", func(b []byte) []byte {
		b = flagField(b, "allowAlways", s.AllowAlways)
		b = textField(b, "change", string(s.Change))
		b = textField(b, "code", string(s.Code))
		b = s.Findings.append(b)
		b = flagField(b, "grantOk", s.GrantOK)
		b = flagField(b, "partial", s.Partial)
		b = s.Reasons.append(b)
		b = textField(b, "revision", s.Revision)
		b = textField(b, "row", s.Row)
		if s.Partial {
			return b
		}
		return textField(b, "verdict", s.Verdict.String())
	})
}

// keptRequester is who asked, as far as rules and grants can depend on it.
type keptRequester struct {
	Account         string              `json:"account"`
	Ceiling         toolward.Ceiling    `json:"ceiling"`
	Channel         string              `json:"channel"`
	Client          string              `json:"client"`
	Context         string              `json:"context"`
	Device          string              `json:"device"`
	Group           string              `json:"group"`
	Model           string              `json:"model"`
	Parent          toolward.SessionKey `json:"parent"`
	Provider        string              `json:"provider"`
	SandboxReadOnly bool                `json:"sandboxReadOnly"`
	Sandboxed       bool                `json:"sandboxed"`
	SenderID        string              `json:"senderId"`
	SenderIsOwner   bool                `json:"senderIsOwner"`
	SenderName      string              `json:"senderName"`
	SenderPhone     string              `json:"senderPhone"`
	SenderUser      string              `json:"senderUser"`
	Workspace       string              `json:"workspace"`
}

func (q *keptRequester) append(b []byte) []byte {
	return object(b, "requester", func(b []byte) []byte {
		b = textField(b, "account", q.Account)
		b = textField(b, "ceiling", string(q.Ceiling))
		b = textField(b, "channel", q.Channel)
		b = textField(b, "client", q.Client)
		b = textField(b, "context", q.Context)
		b = textField(b, "device", q.Device)
		b = textField(b, "group", q.Group)
		b = textField(b, "model", q.Model)
		b = textField(b, "parent", string(q.Parent))
		b = textField(b, "provider", q.Provider)
		b = flagField(b, "sandboxReadOnly", q.SandboxReadOnly)
		b = flagField(b, "sandboxed", q.Sandboxed)
		b = textField(b, "senderId", q.SenderID)
		b = boolField(b, "senderIsOwner", q.SenderIsOwner)
		b = textField(b, "senderName", q.SenderName)
		b = textField(b, "senderPhone", q.SenderPhone)
		b = textField(b, "senderUser", q.SenderUser)
		return textField(b, "workspace", q.Workspace)
	})
}

// moment is a time as records write it.
type moment time.Time

// UnmarshalText reads what timeField wrote.
func (m *moment) UnmarshalText(text []byte) error {
	t, err := time.Parse(timeFormat, string(text))
	*m = moment(t)
	return err
}
