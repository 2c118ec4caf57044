package mcp

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

var versions = []string{version20250618, version20251125, version20260728}

// world is a server in front of a real gateway with one safe tool, "echo", and one that asks, "act".
type world struct {
	*gatetest.Harness
	server *Server
	people *people
	ran    chan string // arguments of every "act" that ran
}

func newWorld(t testing.TB, adjust ...func(*Config)) *world {
	t.Helper()
	w := &world{people: newPeople(), ran: make(chan string, 64)}
	echo := &toolward.Tool{
		Name: "echo", Description: "says it back", Schema: []byte(`{"type":"object","properties":{"text":{"type":"string"}}}`),
		Run: func(_ context.Context, r *toolward.Request) (toolward.Result, error) {
			return toolward.TextResult(r.Params.Text("text")), nil
		},
	}
	act := &toolward.Tool{
		Name: "act", Schema: []byte(`{"type":"object"}`),
		Run: func(_ context.Context, r *toolward.Request) (toolward.Result, error) {
			w.ran <- string(r.Params.Canonical())
			return toolward.TextResult("done"), nil
		},
	}
	w.Harness = gatetest.New(t, toolward.Deny, echo, act)
	w.Policy.JudgeFunc = func(r *toolward.Request) toolward.Judgment {
		if r.Tool.Name == "act" {
			return toolward.Judgment{Verdict: toolward.Ask}
		}
		return toolward.Judgment{Verdict: toolward.Allow}
	}
	w.Approver.AskFunc = w.people.ask
	config := Config{
		Gateway: w.Gateway, Policy: w.Policy, StateKey: []byte("0123456789abcdef0123456789abcdef"),
		ApprovalURL: func(id string) string { return "http://127.0.0.1:7411/approvals/" + id },
		Withdraw:    w.people.withdraw,
	}
	for _, f := range adjust {
		f(&config)
	}
	var err error
	if w.server, err = NewServer(config); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) add(tool *toolward.Tool) { w.Policy.All = append(w.Policy.All, tool) }

// stdio serves one stream, and returns its other end.
func (w *world) stdio(t testing.TB, id Identity) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = w.server.ServeConn(ctx, ours, id)
	}()
	t.Cleanup(func() {
		cancel()
		theirs.Close()
		<-served
	})
	return theirs
}

var coder = Identity{Agent: "coder", Workspace: "/work", TokenID: "local"}

// tokens of the HTTP tests.
var tokens = map[string]Identity{
	"coder-secret": {Agent: "coder", Workspace: "/work", TokenID: "t1"},
	"other-secret": {Agent: "coder", Workspace: "/work", TokenID: "t2"},
	"owner-secret": {Agent: "coder", Workspace: "/work", TokenID: "t3", Owner: true},
}

func authenticate(_ context.Context, token string, _ *http.Request) (Identity, error) {
	if id, ok := tokens[token]; ok {
		return id, nil
	}
	return Identity{}, fmt.Errorf("no token %q", token)
}

func (w *world) http(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(w.server.Handler(authenticate))
	t.Cleanup(func() {
		server.CloseClientConnections() // streams of clients that never said goodbye
		server.Close()
	})
	return server
}

// bearer adds a token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// The faces that tests run over.
const (
	faceStdio = "stdio"
	faceHTTP  = "http"
)

// connect joins a real SDK client over a face.
func (w *world) connect(t testing.TB, face, version string, options *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	var transport sdk.Transport
	if face == faceHTTP {
		transport = &sdk.StreamableClientTransport{
			Endpoint: w.http(t).URL, HTTPClient: &http.Client{Transport: bearer("coder-secret")}, DisableStandaloneSSE: true,
		}
	} else {
		end := w.stdio(t, coder)
		transport = &sdk.IOTransport{Reader: end, Writer: end}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, options)
	session, err := client.Connect(context.Background(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// everyFace runs a test over both faces with every protocol version.
func everyFace(t *testing.T, test func(t *testing.T, face, version string)) {
	for _, face := range []string{faceStdio, faceHTTP} {
		for _, version := range versions {
			t.Run(face+" "+version, func(t *testing.T) { test(t, face, version) })
		}
	}
}

// everyVersion runs a test over stdio with every protocol version, in a bubble where time is not real.
func everyVersion(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, version) })
		})
	}
}

// text is the first text block of a result.
func text(t testing.TB, result *sdk.CallToolResult) string {
	t.Helper()
	if len(result.Content) == 0 {
		t.Fatalf("result without content: %+v", result)
	}
	block, ok := result.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("first block is %T, want text", result.Content[0])
	}
	return block.Text
}

// people is an approver with memory: questions can wait, be left and be come back to.
type people struct {
	life time.Duration

	mu      sync.Mutex
	entries map[string]*entry
	changed chan struct{} // closed and replaced at every change
}

func newPeople() *people {
	return &people{life: 2 * time.Minute, entries: map[string]*entry{}, changed: make(chan struct{})}
}

type entry struct {
	id      string
	binding string
	answer  chan toolward.Decision
	waiting bool  // a call stays until it is answered
	gone    error // why the question was taken back
	expires time.Time
}

func (p *people) ask(ctx context.Context, q *toolward.Question) (toolward.Answer, error) {
	e, err := p.open(q)
	if err != nil {
		return toolward.Answer{}, err
	}
	if q.Request.Call.Detach {
		return toolward.Answer{}, &toolward.Pending{ID: e.id, ExpiresAt: e.expires}
	}
	if q.OnPending != nil {
		q.OnPending(toolward.Pending{ID: e.id, ExpiresAt: e.expires})
	}
	p.wait(e)
	late := time.NewTimer(time.Until(e.expires))
	defer late.Stop()
	select {
	case decision := <-e.answer:
		return toolward.Answer{ApprovalID: e.id, Decision: decision}, nil
	case <-late.C:
	case <-ctx.Done():
		_ = p.withdraw(ctx, e.id, context.Cause(ctx))
	}
	return toolward.Answer{ApprovalID: e.id}, nil
}

func (p *people) wait(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.tell()
	e.waiting = true
}

func (p *people) open(q *toolward.Question) (*entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.tell()
	if id := q.Request.Call.Approval; id != "" {
		e := p.entries[id]
		if e == nil || e.binding != q.Binding {
			return nil, &toolward.Refusal{Tool: q.Request.Call.Tool, Code: toolward.CodeTargetChanged}
		}
		return e, nil
	}
	e := &entry{
		id: fmt.Sprintf("a%d", len(p.entries)+1), binding: q.Binding,
		answer: make(chan toolward.Decision, 1), expires: time.Now().Add(p.life),
	}
	p.entries[e.id] = e
	return e, nil
}

func (p *people) withdraw(_ context.Context, id string, cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.tell()
	if e := p.entries[id]; e != nil && e.gone == nil {
		e.gone = cause
	}
	return nil
}

// decide answers the question of that id as soon as it is there.
func (p *people) decide(t testing.TB, id string, d toolward.Decision) {
	t.Helper()
	p.until(t, id, func(*entry) bool { return true }).answer <- d
}

// withdrawn waits until the question of that id has been taken back, and returns why.
func (p *people) withdrawn(t testing.TB, id string) error {
	t.Helper()
	return p.until(t, id, func(e *entry) bool { return e.gone != nil }).gone
}

// until waits for a state of the question.
func (p *people) until(t testing.TB, id string, ok func(*entry) bool) *entry {
	t.Helper()
	late := time.After(time.Minute)
	for {
		p.mu.Lock()
		e := p.entries[id]
		if e != nil && ok(e) {
			p.mu.Unlock()
			return e
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			t.Fatalf("question %s never came to that", id)
		}
	}
}

// tell wakes those who wait for a state. The caller holds the lock.
func (p *people) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}
