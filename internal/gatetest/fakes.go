package gatetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/toolward/toolward"
)

// Harness is a real gateway on plain collaborators that a test steers through its fields. Set the fields before the
// first call.
type Harness struct {
	*toolward.Gateway
	Policy   *Policy
	Approver *Approver
	Auditor  *Auditor
	Sessions *Sessions
}

// New makes a gateway whose policy shows the tools to everybody and judges all of them as verdict.
func New(t testing.TB, verdict toolward.Verdict, tools ...*toolward.Tool) *Harness {
	t.Helper()
	h := &Harness{
		Policy:   &Policy{Rev: "1", All: tools, Verdict: verdict},
		Approver: &Approver{}, Auditor: &Auditor{}, Sessions: &Sessions{Current: toolward.Normal},
	}
	h.Gateway = h.With(t, nil)
	return h
}

// With makes another gateway on the same collaborators, with what change puts in the place of some or beside them.
func (h *Harness) With(t testing.TB, change func(*toolward.Config)) *toolward.Gateway {
	t.Helper()
	c := toolward.Config{Policy: h.Policy, Approver: h.Approver, Auditor: h.Auditor, Sessions: h.Sessions}
	if change != nil {
		change(&c)
	}
	g, err := toolward.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Policy judges every call alike, or as JudgeFunc says.
type Policy struct {
	Rev       string
	All       []*toolward.Tool
	Verdict   toolward.Verdict
	JudgeFunc func(*toolward.Request) toolward.Judgment

	mu      sync.Mutex
	callers []toolward.Caller
}

// Snapshot is the policy itself.
func (p *Policy) Snapshot() toolward.Snapshot { return p }

// Revision returns Rev.
func (p *Policy) Revision() string { return p.Rev }

// Tools returns All.
func (p *Policy) Tools(c toolward.Caller) []*toolward.Tool {
	p.remember(c)
	return p.All
}

func (p *Policy) remember(c toolward.Caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callers = append(p.callers, c)
}

// Callers returns who has listed or looked for tools so far.
func (p *Policy) Callers() []toolward.Caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.callers)
}

// Find looks in All by exact name.
func (p *Policy) Find(c toolward.Caller, name string) (*toolward.Tool, toolward.Reason) {
	p.remember(c)
	for _, tool := range p.All {
		if tool.Name == name {
			return tool, toolward.Reason{}
		}
	}
	return nil, toolward.Reason{Layer: "test", Text: "no such tool"}
}

// Adopt takes every form that a client brings.
func (p *Policy) Adopt(_ toolward.Caller, form *toolward.Tool) (*toolward.Tool, toolward.Reason) {
	return form, toolward.Reason{}
}

// Decode accepts any JSON object; keys come out sorted.
func (p *Policy) Decode(_ *toolward.Tool, raw json.RawMessage) (toolward.Params, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil || object == nil {
		return toolward.Params{}, &toolward.InvalidArgs{Text: "expected a JSON object"}
	}
	canonical, err := json.Marshal(object)
	return toolward.NewParams(canonical, object), err
}

// Judge answers Verdict, or what JudgeFunc says.
func (p *Policy) Judge(r *toolward.Request) toolward.Judgment {
	if p.JudgeFunc != nil {
		return p.JudgeFunc(r)
	}
	return toolward.Judgment{
		Verdict: p.Verdict, GrantOK: true, AllowAlways: true, Code: toolward.CodeBlocked,
		Class: toolward.Classification{Class: toolward.NeedsApproval, From: toolward.Normal, Severity: toolward.Info, Grant: toolward.GrantExact},
	}
}

// Approver answers every question with Decision, or as AskFunc says; without either nobody decides.
type Approver struct {
	Decision toolward.Decision
	AskFunc  func(context.Context, *toolward.Question) (toolward.Answer, error)
	Grant    string // id of a grant that covers everything; "" for none

	mu       sync.Mutex
	asked    []*toolward.Question
	consumed map[string]bool
}

// Granted answers with Grant.
func (a *Approver) Granted(context.Context, *toolward.Question) (string, bool, error) {
	return a.Grant, a.Grant != "", nil
}

// Covered answers with Grant.
func (a *Approver) Covered(ctx context.Context, q *toolward.Question) (string, bool, error) {
	return a.Granted(ctx, q)
}

// Ask remembers the question and answers. A call that comes back for its answer gets it under the id that it names.
func (a *Approver) Ask(ctx context.Context, q *toolward.Question) (toolward.Answer, error) {
	a.mu.Lock()
	a.asked = append(a.asked, q)
	a.mu.Unlock()
	if a.AskFunc != nil {
		return a.AskFunc(ctx, q)
	}
	id := cmp.Or(q.Request.Call.Approval, "approval-"+cmp.Or(q.Request.Call.ID, "1"))
	return toolward.Answer{ApprovalID: id, Decision: a.Decision, By: "tester"}, nil
}

// Consume succeeds once for every id.
func (a *Approver) Consume(_ context.Context, id, _ string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.consumed[id] {
		return toolward.ErrPassUsed
	}
	if a.consumed == nil {
		a.consumed = map[string]bool{}
	}
	a.consumed[id] = true
	return nil
}

// Asked returns the questions so far.
func (a *Approver) Asked() []*toolward.Question {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// Auditor keeps records in memory.
type Auditor struct {
	Err error // fails every write

	mu        sync.Mutex
	decisions []toolward.DecisionRecord
	outcomes  map[toolward.RecordID]toolward.OutcomeRecord
}

// Decide keeps the record.
func (a *Auditor) Decide(_ context.Context, r *toolward.DecisionRecord) (toolward.RecordID, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Err != nil {
		return 0, a.Err
	}
	a.decisions = append(a.decisions, *r)
	return toolward.RecordID(len(a.decisions)), nil
}

// Conclude keeps the outcome.
func (a *Auditor) Conclude(_ context.Context, id toolward.RecordID, o *toolward.OutcomeRecord) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Err != nil {
		return a.Err
	}
	if a.outcomes == nil {
		a.outcomes = map[toolward.RecordID]toolward.OutcomeRecord{}
	}
	a.outcomes[id] = *o
	return nil
}

// Decisions returns the decision records so far.
func (a *Auditor) Decisions() []toolward.DecisionRecord {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.decisions)
}

// Outcome returns the outcome of the nth decision, from 1.
func (a *Auditor) Outcome(id toolward.RecordID) (toolward.OutcomeRecord, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.outcomes[id]
	return o, ok
}

// Sessions has one level for all and remembers exposures.
type Sessions struct {
	Current toolward.Level
	Err     error

	mu      sync.Mutex
	exposed map[toolward.SessionKey][]string
}

// Level returns Current.
func (s *Sessions) Level(context.Context, *toolward.Call) (toolward.Level, toolward.LevelInputs, error) {
	return s.Current, toolward.LevelInputs{Floor: toolward.Normal}, s.Err
}

// Expose remembers the sources.
func (s *Sessions) Expose(_ context.Context, key toolward.SessionKey, e toolward.Exposure) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exposed == nil {
		s.exposed = map[toolward.SessionKey][]string{}
	}
	s.exposed[key] = append(s.exposed[key], e.External...)
	return s.Err
}

// Exposed returns what a session has been exposed to.
func (s *Sessions) Exposed(key toolward.SessionKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.exposed[key])
}
