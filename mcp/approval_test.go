package mcp_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/internal/gateparts"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/mcp"
)

// person is somebody who has signed in.
type person struct{}

func (person) MayAnswer() error { return nil }
func (person) MayGrant() error  { return nil }
func (person) Name() string     { return "tester" }
func (person) SignIn() string   { return "s1" }
func (person) Means() string    { return "" }

// office is a server whose questions go to the real approval manager on a real database.
type office struct {
	parts  *gateparts.Parts
	policy *gatetest.Policy
	asked  chan string // ids of new questions
	ran    chan string
	server *mcp.Server
}

func openOffice(t *testing.T, home string) *office {
	t.Helper()
	o := &office{asked: make(chan string, 16), ran: make(chan string, 16)}
	var err error
	o.parts, err = gateparts.Open(t.Context(), gateparts.Options{Home: home, Approvals: func(a *approval.Options) {
		a.Settings.Absent = approval.AbsentWait
		a.Observe = func(e approval.Event) {
			if e.Type == approval.EventRequested {
				o.asked <- e.Approval.ID
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	act := &toolward.Tool{Name: "act", Run: func(_ context.Context, r *toolward.Request) (toolward.Result, error) {
		o.ran <- string(r.Params.Canonical())
		return toolward.TextResult("done"), nil
	}}
	policy := &gatetest.Policy{Rev: "1", All: []*toolward.Tool{act}, Verdict: toolward.Ask}
	o.policy = policy
	gateway, err := o.parts.Gate(policy, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.server, err = mcp.NewServer(mcp.Config{
		Gateway: gateway, Policy: policy, StateKey: make([]byte, 32),
		ApprovalURL: func(id string) string { return "http://127.0.0.1:7411/approvals/" + id },
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) close(t *testing.T) {
	t.Helper()
	o.server.Close()
	if err := o.parts.Close(); err != nil {
		t.Error(err)
	}
}

// answer decides a question that is at least half a second old, as a person who typed its id.
func (o *office) answer(t *testing.T, id, decision string) {
	t.Helper()
	time.Sleep(600 * time.Millisecond) // a person reads first; the manager refuses faster answers
	if _, err := o.parts.Approvals.Resolve(t.Context(), approval.Response{ID: id, Decision: decision, By: person{}, Typed: true}); err != nil {
		t.Fatalf("answer %s: %v", id, err)
	}
}

func (o *office) stdio(t *testing.T, version string, options *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(served)
		_ = o.server.ServeConn(ctx, ours, mcp.Identity{Agent: "coder", Workspace: "/work", TokenID: "local"})
	}()
	t.Cleanup(func() {
		cancel()
		<-served
	})
	client := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, options)
	session, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: theirs, Writer: theirs}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func links() *sdk.ClientOptions {
	return &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}},
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept"}, nil
		},
	}
}

func TestPeopleAnswer(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		for name, options := range map[string]*sdk.ClientOptions{"plain": nil, "with links": links()} {
			for _, decision := range []string{"allow-once", "deny"} {
				t.Run(version+" "+name+" "+decision, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						o := openOffice(t, t.TempDir())
						t.Cleanup(func() { o.close(t) })
						session := o.stdio(t, version, options)
						done := make(chan *sdk.CallToolResult, 1)
						go func() {
							result, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "act", Arguments: json.RawMessage(`{"n":1}`)})
							if err != nil {
								t.Error(err)
							}
							done <- result
						}()
						o.answer(t, <-o.asked, decision)
						result := <-done
						if allowed := decision == "allow-once"; result == nil || result.IsError == allowed || (len(o.ran) == 1) != allowed {
							t.Errorf("result %+v, ran %d times", result, len(o.ran))
						}
					})
				})
			}
		}
	}
}

// A client of the newest protocol holds its call itself. It may come back after the daemon has started again; the
// question is still the same, and its answer lets the call run once.
func TestResumeAfterRestart(t *testing.T) {
	home := t.TempDir()
	o := openOffice(t, home)
	first := callOnce(t, o, "")
	if !first.NeedsInput() || first.RequestState == "" {
		t.Fatalf("first round: %+v", first)
	}
	id := <-o.asked
	o.close(t)

	o = openOffice(t, home)
	defer o.close(t)
	done := make(chan *sdk.CallToolResult, 1)
	go func() { done <- callOnce(t, o, first.RequestState) }()
	o.answer(t, id, "allow-once")
	if second := <-done; second.IsError || len(o.ran) != 1 {
		t.Errorf("second round: %+v, ran %d times", second, len(o.ran))
	}
}

// callOnce makes one round of a call over HTTP: a token outlives the daemon, a stream does not.
func callOnce(t *testing.T, o *office, state string) *sdk.CallToolResult {
	t.Helper()
	web := httptest.NewServer(o.server.Handler(func(context.Context, string, *http.Request) (mcp.Identity, error) {
		return mcp.Identity{Agent: "coder", Workspace: "/work", TokenID: "t1"}, nil
	}))
	defer web.Close()
	options := links()
	options.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
	client := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, options)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: web.URL, HTTPClient: &http.Client{Transport: bearer{}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Error(err)
		return &sdk.CallToolResult{IsError: true}
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "act", Arguments: json.RawMessage(`{"n":1}`), RequestState: state})
	if err != nil {
		t.Error(err)
		return &sdk.CallToolResult{IsError: true}
	}
	return result
}

type bearer struct{}

func (bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer secret")
	return http.DefaultTransport.RoundTrip(r)
}
