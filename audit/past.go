package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward"
)

// Past is a decided call as its record keeps it.
type Past struct {
	Seq  int64
	Time time.Time
	Tool string
	// Request is the call as another policy can judge it: its facts, with of contents nothing, and as findings those
	// that were made of the contents. It has no tool if the caller was shown none.
	Request *toolward.Request
	// Judged is what the policy itself said; nil if the call was refused before.
	Judged *toolward.Judgment
	// Gap says why the call cannot be judged again; "" if it can.
	Gap string

	Verdict  toolward.Verdict // how it ended: Allow or Deny
	Code     toolward.Code
	Via      string
	Decision toolward.Decision // what people answered, if they were asked
	Digest   string
	Original string // the digest that the call had before a plug-in rewrote it; "" if none did
}

// analysis is what was known about a command. What "always" would have saved is not kept, only that it would.
func (p *keptAnalysis) analysis() *toolward.CommandAnalysis {
	if p == nil {
		return nil
	}
	a := &toolward.CommandAnalysis{
		Understood: p.Understood, Covered: p.Covered, Findings: p.Forced, Forbidden: p.Forbidden,
		Security: p.Security, Ask: p.Ask, Unanswered: p.Unanswered, Contained: p.Contained,
	}
	if p.Savable {
		a.Always = []toolward.CommandEntry{{}}
	}
	return a
}

// ReadDecision reads a decision record back.
func ReadDecision(r *Record) (*Past, error) {
	if r.Type != TypeDecision {
		return nil, fmt.Errorf("record %d is of type %s, not a decision", r.Seq, r.Type)
	}
	var d decided
	if err := json.Unmarshal([]byte(r.JSON), &d); err != nil {
		return nil, fmt.Errorf("decision record %d: %w", r.Seq, err)
	}
	p := &Past{
		Seq: r.Seq, Time: r.Time, Tool: r.Tool, Verdict: d.Verdict, Code: d.Code, Via: d.Via,
		Decision: d.Approval.Decision, Digest: d.Digest, Original: d.DigestOriginal, Gap: d.gap(),
	}
	p.Request = d.request(r)
	if d.Policy != nil {
		p.Judged = &toolward.Judgment{
			Verdict: d.Policy.Verdict, Code: d.Policy.Code, Row: d.Row, Overrides: d.Overrides,
			GrantOK: d.Policy.GrantOK, AllowAlways: d.Policy.AllowAlways, Findings: d.Findings,
			Class: toolward.Classification{Class: d.Class, From: d.From, Severity: d.Severity, Grant: d.GrantKind},
		}
	}
	return p, nil
}

// gap says why a record does not hold enough to be judged again.
func (d *decided) gap() string {
	switch {
	case d.Withheld:
		return "something that decides was too long or too secret to be kept"
	case d.Policy == nil && d.Row != "":
		return "records of this age do not keep enough"
	case d.Policy == nil && d.Code != toolward.CodeUnknownTool && d.Code != toolward.CodeInvalidArgs:
		return "the call was refused before the policy was asked"
	case d.DigestOriginal != "" && d.V1 == toolward.Ask:
		// Its findings are those of both calls.
		return "a plug-in rewrote a call that had to be asked for"
	}
	return ""
}

// request builds the call anew, from its facts.
func (d *decided) request(r *Record) *toolward.Request {
	q := d.Requester
	c := toolward.Call{
		ID: d.CallID, Run: d.RunID, Tool: r.Tool, Session: d.SessionKey, Surface: d.Surface, WorkDir: d.WorkDir, Host: d.Host, ByClient: d.ByClient,
		Caller: toolward.Caller{
			Agent: d.AgentID, Depth: d.Depth, Owner: q.SenderIsOwner, Context: q.Context, Channel: q.Channel, Account: q.Account,
			Sender: q.SenderID, Client: q.Client, Workspace: q.Workspace, Device: q.Device, Parent: q.Parent,
			Provider: q.Provider, Model: q.Model, Group: q.Group, SenderPhone: q.SenderPhone, SenderUser: q.SenderUser,
			SenderName: q.SenderName, Sandboxed: q.Sandboxed, SandboxReadOnly: q.SandboxReadOnly, Ceiling: q.Ceiling,
		},
	}
	tool := d.tool(r.Tool)
	if d.Form {
		c.Form = tool
	}
	request := &toolward.Request{
		Call: c, Level: d.Level, Params: d.Facts.selected(), Facts: d.Facts.facts(),
		Inputs: toolward.LevelInputs{External: d.Inputs.External, Suspicious: d.Inputs.Suspicious, Compacted: d.Inputs.Compacted},
	}
	if d.Code != toolward.CodeUnknownTool || d.Policy != nil {
		request.Tool = tool
	}
	request.Facts.Findings = ofContents(d.Findings)
	return request
}

// tool stands for the tool of the record. The class that it declared, if it did, is the one it was judged by.
func (d *decided) tool(name string) *toolward.Tool {
	class := toolward.Classification{Class: d.Class, From: d.From, Severity: d.Severity, Grant: d.GrantKind}
	return &toolward.Tool{
		Name: name, Plugin: d.Plugin, OwnerOnly: d.OwnerOnly, Schema: json.RawMessage(`{"type":"object"}`),
		Declared: func(toolward.Params) toolward.Classification { return class },
	}
}

// ofContents are the findings that a policy cannot make anew from what is kept. Those about places and links it makes
// itself, because they depend on its settings.
func ofContents(findings []toolward.Finding) []toolward.Finding {
	var kept []toolward.Finding
	for _, f := range findings {
		if f.Code != "path_link" && (f.Code != "path_escape" || f.Effect != toolward.EffectDeny) {
			kept = append(kept, f)
		}
	}
	return kept
}

func (f *keptFacts) facts() toolward.Facts {
	out := toolward.Facts{
		Action: f.Action, Hosts: f.Hosts, Listed: f.Listed, Recipients: f.Recipients, TargetID: f.TargetID, Elevated: f.Elevated, HostWhy: f.HostWhy,
		Mutates: f.Mutates, Deletes: f.Deletes, BrowserOn: f.BrowserOn, Sandbox: f.Sandbox, Scope: f.Scope, Analysis: f.Analysis.analysis(),
	}
	if len(f.URLBytes) > 0 {
		out.URLs = f.Hosts // that it aimed at addresses, without what they said
	}
	for _, t := range f.Targets {
		out.Targets = append(out.Targets, toolward.Target{
			Path: t.Path, Real: t.Path, Op: t.Op, Zone: t.Zone, Kind: t.Kind, Links: max(t.Links, 1), Left: t.Left,
		})
	}
	return out
}

// selected are the parameters that chose the row.
func (f *keptFacts) selected() toolward.Params {
	object := map[string]any{}
	for _, param := range f.Params {
		outer, inner, nested := strings.Cut(param.name, ".")
		if !nested {
			object[param.name] = param.value
			continue
		}
		members, _ := object[outer].(map[string]any)
		if members == nil {
			members = map[string]any{}
			object[outer] = members
		}
		members[inner] = param.value
	}
	canonical, err := json.Marshal(object)
	if err != nil {
		return toolward.Params{} // cannot be: it was JSON
	}
	return toolward.NewParams(canonical, object)
}
