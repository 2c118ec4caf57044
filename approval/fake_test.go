package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
)

// memory is a store that lives in memory, survives the manager (a restart) and can be made to fail.
type memory struct {
	mu     sync.Mutex
	rows   map[Key]*Record
	grants map[string]*Grant
	uses   map[string]int64
	fail   map[string]error // by method
	delay  time.Duration    // of durable writes
}

func newMemory() *memory {
	return &memory{rows: map[Key]*Record{}, grants: map[string]*Grant{}, uses: map[string]int64{}, fail: map[string]error{}}
}

var errDisk = errors.New("disk is full")

func (s *memory) begin(method string) error {
	s.mu.Lock()
	delay := s.delay
	s.mu.Unlock()
	time.Sleep(delay)
	s.mu.Lock()
	return s.fail[method]
}

func (s *memory) failing(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[method] = err
}

func (s *memory) slow(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
}

func copyRecord(r *Record) *Record {
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	out := new(Record)
	if err := json.Unmarshal(raw, out); err != nil {
		panic(err)
	}
	return out
}

func (s *memory) AddApproval(_ context.Context, r *Record) error {
	err := s.begin("add")
	defer s.mu.Unlock()
	if err == nil && s.rows[r.Key()] != nil {
		err = errors.New("row exists")
	}
	if err != nil {
		return err
	}
	s.rows[r.Key()] = copyRecord(r)
	return nil
}

func (s *memory) ResolveApproval(_ context.Context, key Key, end Resolution, g *Grant) error {
	err := s.begin("resolve")
	defer s.mu.Unlock()
	r := s.rows[key]
	if err != nil {
		return err
	}
	if r == nil || r.State != StatePending {
		return errors.New("not pending")
	}
	r.State, r.Decision, r.ResolvedBy, r.Reason, r.ResolvedMs = StateResolved, end.Decision, end.By, end.Reason, end.AtMs
	if g != nil {
		r.Grant = g.ID
		s.grants[g.ID] = g.clone()
	}
	return nil
}

func (s *memory) ExpireApprovals(_ context.Context, ends []Expiry) error {
	err := s.begin("expire")
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, e := range ends {
		if r := s.rows[e.Key]; r != nil && r.State == StatePending {
			r.State, r.ResolvedBy, r.ResolvedMs = StateResolved, e.By, e.AtMs
		}
	}
	return nil
}

func (s *memory) ConsumeApproval(_ context.Context, key Key, atMs int64) (bool, error) {
	err := s.begin("consume")
	defer s.mu.Unlock()
	r := s.rows[key]
	if err != nil || r == nil || r.State != StateResolved || !r.Decision.Allows() {
		return false, err
	}
	r.State, r.ConsumedMs = StateConsumed, atMs
	return true, nil
}

func (s *memory) VoidAnswers(context.Context) error {
	err := s.begin("void")
	defer s.mu.Unlock()
	for _, r := range s.rows {
		if r.State == StateResolved && r.Decision.Allows() {
			r.State = StateVoid
		}
	}
	return err
}

func (s *memory) PendingApprovals(context.Context) ([]*Record, error) {
	return s.list("pending", func(r *Record) bool { return r.State == StatePending })
}

func (s *memory) list(method string, keep func(*Record) bool) ([]*Record, error) {
	err := s.begin(method)
	defer s.mu.Unlock()
	var out []*Record
	for _, r := range s.rows {
		if keep(r) {
			out = append(out, copyRecord(r))
		}
	}
	slices.SortFunc(out, func(a, b *Record) int { return cmp.Compare(b.CreatedMs, a.CreatedMs) })
	return out, err
}

func (s *memory) Approval(_ context.Context, id string) (*Record, error) {
	list, err := s.list("approval", func(r *Record) bool { return r.ID == id })
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

func (s *memory) ApprovalByKey(_ context.Context, key Key) (*Record, error) {
	list, err := s.list("approval", func(r *Record) bool { return r.Key() == key })
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

func (s *memory) RecentApprovals(_ context.Context, limit int) ([]*Record, error) {
	list, err := s.list("recent", func(r *Record) bool { return r.ResolvedMs > 0 })
	return list[:min(limit, len(list))], err
}

func (s *memory) Denials(_ context.Context, sinceMs int64, _ int) ([]Denial, error) {
	list, err := s.list("denials", func(r *Record) bool { return r.Decision == toolward.DenyCall && r.ResolvedMs >= sinceMs })
	var out []Denial
	for _, r := range list {
		out = append(out, Denial{r.Request.Session, r.Request.Run, r.Request.Digest})
	}
	return out, err
}

func (s *memory) PruneApprovals(_ context.Context, beforeMs int64) error {
	err := s.begin("prune")
	defer s.mu.Unlock()
	for k, r := range s.rows {
		if r.CreatedMs < beforeMs && r.State != StatePending {
			delete(s.rows, k)
		}
	}
	return err
}

func (s *memory) Grants(_ context.Context, nowMs int64) ([]*Grant, error) {
	err := s.begin("grants")
	defer s.mu.Unlock()
	var out []*Grant
	for _, g := range s.grants {
		if g.RevokedMs == 0 && g.ExpiresMs > nowMs && (g.MaxUses == 0 || g.Uses < g.MaxUses) {
			out = append(out, g.clone())
		}
	}
	return out, err
}

func (s *memory) RevokeGrants(_ context.Context, ids []string, by string, atMs int64) error {
	err := s.begin("revoke")
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, id := range ids {
		s.grants[id].RevokedMs, s.grants[id].RevokedBy = atMs, by
	}
	return nil
}

func (s *memory) SpendGrant(_ context.Context, id string, atMs int64) (bool, error) {
	err := s.begin("spend")
	defer s.mu.Unlock()
	g := s.grants[id]
	if err != nil || g == nil || g.RevokedMs != 0 || g.Uses >= g.MaxUses {
		return false, err
	}
	g.Uses++
	g.LastUsedMs = atMs
	return true, nil
}

func (s *memory) CountGrantUses(_ context.Context, uses []GrantUse) error {
	err := s.begin("uses")
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, u := range uses {
		s.uses[u.ID] += u.Uses
	}
	return nil
}

// person is an authority for tests.
type person struct {
	name  string
	err   error  // why the person may do nothing
	means string // what let them in
}

func (p *person) MayAnswer() error { return p.err }
func (p *person) MayGrant() error  { return p.err }
func (p *person) Name() string     { return p.name }
func (p *person) SignIn() string   { return "session-of-" + p.name }
func (p *person) Means() string    { return p.means }

var alice, bob = &person{name: "alice"}, &person{name: "bob"}

// open starts a manager with plain settings on a store; it is closed with the test.
func open(t testing.TB, store Store, change func(*Options)) *Manager {
	t.Helper()
	o := Options{Store: store, Redact: func(s string) string { return s }}
	if change != nil {
		change(&o)
	}
	m, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// attach puts an approver in front of a manager.
func attach(t testing.TB, m *Manager, p *person) *Presence {
	t.Helper()
	presence, err := m.Attach(Approver{Name: p.name, By: p, Connection: "console-" + p.name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(presence.Close)
	return presence
}

// question is an ordinary question: agent coder wants to write a file.
func question(change func(*toolward.Request, *toolward.Judgment)) *toolward.Question {
	params := toolward.NewParams([]byte(`{"path":"src/a.go"}`), map[string]any{"path": "src/a.go"})
	r := &toolward.Request{
		Tool:   &toolward.Tool{Name: "write"},
		Params: params,
		Level:  toolward.Normal,
		Call: toolward.Call{
			ID: "call-1", Run: "run-1", Tool: "write", Session: "agent:coder:main", Host: toolward.HostGateway, WorkDir: "/ws",
			Caller: toolward.Caller{Agent: "coder", Owner: true, Context: "main", Workspace: "/ws", Connection: "agent-conn", Device: "token-1"},
		},
		Facts: toolward.Facts{
			Mutates: true,
			Targets: []toolward.Target{{Path: "src/a.go", Real: "/ws/src/a.go", Op: toolward.OpWrite, Zone: "workspace", Kind: "file"}},
		},
	}
	j := toolward.Judgment{
		Verdict: toolward.Ask, AllowAlways: true, GrantOK: true,
		Class:   toolward.Classification{Class: toolward.NeedsApproval, Severity: toolward.Info, Grant: toolward.GrantPath},
		Reasons: []toolward.Reason{{Layer: "class", Text: "writing files needs approval"}},
	}
	if change != nil {
		change(r, &j)
	}
	r.Digest = r.Params.Digest(r.Tool.Name, r.Call.Caller.Agent, r.Call.Session)
	return &toolward.Question{Request: r, Judgment: j, Binding: r.Digest + "|" + boundOf(r)}
}

// asked is the result of an Ask that runs in the background.
type asked struct {
	answer toolward.Answer
	err    error
}

func ask(ctx context.Context, m *Manager, q *toolward.Question) <-chan asked {
	out := make(chan asked, 1)
	go func() {
		a, err := m.Ask(ctx, q)
		out <- asked{a, err}
	}()
	return out
}

// only returns the one pending approval.
func only(t testing.TB, m *Manager) *Record {
	t.Helper()
	list, err := m.Pending(context.Background(), alice)
	if err != nil || len(list) != 1 {
		t.Fatalf("pending = %d approvals, %v; want one", len(list), err)
	}
	return list[0]
}

// looked is what a person is shown of an approval; of none, nothing but the id.
func looked(m *Manager, p *person, id string) *Record {
	if r, err := m.Get(context.Background(), p, id); err == nil {
		return r
	}
	return &Record{ID: id}
}

// answer answers an approval as a person who looked at it for a second.
func answer(m *Manager, p *person, id, decision string) (*Record, error) {
	stamp := m.MarkShown(looked(m, p, id), p)
	time.Sleep(time.Second)
	return m.Resolve(context.Background(), Response{ID: id, Decision: decision, By: p, Shown: stamp, Connection: "console-" + p.name})
}

// code is the refusal code of an error.
func code(t testing.TB, err error) toolward.Code {
	t.Helper()
	var r *toolward.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("error %v is not a refusal", err)
	}
	return r.Code
}
