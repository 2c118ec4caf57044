// Package consoletest is a running console for tests: both doors of the real server on a real gateway with real
// approvals, record, people and store. Only policy, tools and the list of processes are the test's own.
package consoletest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/gateparts"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/server"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
	"github.com/toolward/toolward/server/protocol"
	"github.com/toolward/toolward/session"
	"github.com/toolward/toolward/store"
	"github.com/toolward/toolward/undo/kept"
)

// Passphrase is what the person of every world signs in with.
const Passphrase = "correct horse battery staple"

// World is a running console.
type World struct {
	URL       string
	Home      string
	Workspace string
	Server    *server.Server
	People    *identity.Keeper
	Approvals *approval.Manager
	Audit     *audit.Log
	Gateway   *toolward.Gateway
	Processes *Processes
	Config    *Config
	Levels    *session.Tracker
	Pairings  *identity.Pairings
	Desk      *desk.Desk
	Passkeys  *identity.Passkeys
	Protocol  *protocol.Server // nil without Options.Protocol

	t    testing.TB
	wire atomic.Pointer[protocol.Server]
}

// Sandboxes are those of a gateway, to look at and to end.
type Sandboxes interface {
	api.Sandboxes
	desk.Sandboxes
}

// Options says how a world differs from the usual one.
type Options struct {
	Fresh     bool   // no passphrase has been set yet
	Workspace string // of all calls; need not exist
	Listen    string
	Timeout   time.Duration // of approvals
	Total     int           // approvals that may wait
	Refuse    bool          // refuse at once what nobody is there to answer, as a gateway does by default
	Hosts     []string
	Public    string   // public origin
	Proxies   []string // trusted
	MCP       http.Handler
	Hooks     http.Handler
	Policy    *policy.Snapshot // that people look at; default one that denies write
	Rules     *policy.Snapshot // that decides about calls, and that people look at; default one of the test's own
	Log       *slog.Logger     // default none
	Protocol  *protocol.Config // of the gateway protocol; without it there is none
	Agents    protocol.AgentList
	Sandboxes Sandboxes
	Forwards  desk.Forwards    // default none
	Undo      *kept.Workspaces // default none
	Commands  bool             // commands are judged by the real parts, under the preset developer; else nobody looks at them
}

// New starts a world; it ends with the test.
func New(t testing.TB, o Options) *World {
	t.Helper()
	ctx := t.Context()
	// Socket paths are short; the usual temporary directories of tests are not.
	home, err := os.MkdirTemp("", "tw")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	w := &World{t: t, Home: home, Workspace: cmp.Or(o.Workspace, "/home/ada/shop"), Processes: newProcesses(), Config: &Config{}}

	absent := approval.AbsentWait
	if o.Refuse {
		absent = approval.AbsentRefuse
	}
	parts, err := gateparts.Open(ctx, gateparts.Options{
		Home: home,
		Approvals: func(a *approval.Options) {
			a.Observe, a.Outline, a.Remember = w.tell, outlineOf, remember
			a.Settings = approval.Settings{Absent: absent, Timeout: o.Timeout, Total: o.Total, PerSession: o.Total, PerConn: o.Total}
		},
		People: func(p *identity.Options) {
			p.Processes, p.SameBuild = w.Processes, func(identity.Process) error { return nil }
		},
	})
	must(t, err)
	t.Cleanup(func() { _ = parts.Close() })
	w.Audit, w.Approvals, w.People, w.Levels = parts.Audit, parts.Approvals, parts.People, parts.Levels
	if !o.Fresh {
		must(t, w.People.SetUp(ctx, "test", w.People.SetupCode(), Passphrase))
	}
	w.Passkeys, err = identity.OpenPasskeys(ctx, w.People, store.NewPasskeys(parts.DB))
	must(t, err)
	rules := toolward.Policy(&gatetest.Policy{Rev: "1", All: tools(o.Commands), JudgeFunc: judge})
	if o.Rules != nil {
		rules, o.Policy = policy.NewLive(o.Rules), o.Rules
	}
	w.Gateway, err = parts.Gate(rules, nil)
	must(t, err)
	if o.Policy == nil {
		o.Policy, _, err = policy.Compile(policy.Config{Tools: visible.Tools{Deny: []string{"write"}}}, tools(o.Commands))
		must(t, err)
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Protocol != nil {
		w.Pairings = parts.Pairings
	}
	w.Desk, err = desk.New(desk.Options{
		Audit: w.Audit, People: w.People, Passkeys: w.Passkeys, Devices: w.Pairings, Levels: w.Levels, Approvals: w.Approvals,
		Sandboxes: o.Sandboxes, Forwards: o.Forwards, Undo: o.Undo, Config: w.Config, Records: w.Audit, Source: parts.Records, Log: o.Log,
	})
	must(t, err)
	w.openProtocol(o)
	public, err := door.ParsePublicOrigin(o.Public)
	must(t, err)
	trusted, err := door.ParseProxies(o.Proxies)
	must(t, err)
	doors := server.Options{
		Public: public, Proxies: door.Proxies{Trusted: trusted}, Passkeys: w.Passkeys,
		Home: home, Listen: o.Listen, Hosts: o.Hosts, People: w.People, Approvals: w.Approvals,
		Gateway: w.Gateway, Desk: w.Desk, MCP: o.MCP, Hooks: o.Hooks,
		Policy:    func() api.Policy { return o.Policy },
		Sandboxes: o.Sandboxes,
		Version:   "test", Stop: func() {}, Log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
	}
	if w.Protocol != nil {
		doors.WebSocket, doors.Invoke, doors.Ready = w.Protocol, w.Protocol.Tools(), w.Protocol.Ready
	}
	w.Server, err = server.Open(doors)
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- w.Server.Serve() }()
	t.Cleanup(func() {
		w.Approvals.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if w.Protocol != nil {
			_ = w.Protocol.Close(ctx)
		}
		_ = w.Server.Close(ctx) // a stream that a test left open is cut
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	w.URL = w.Server.URL()
	return w
}

// openProtocol opens the gateway protocol, if the test wants it.
func (w *World) openProtocol(o Options) {
	if o.Protocol == nil {
		return
	}
	wire, err := protocol.New(protocol.Options{
		Config: *o.Protocol, Tokens: w.People, Pairings: w.Pairings, Approvals: w.Approvals, Audit: w.Audit, Gate: w.Gateway, Desk: w.Desk,
		Policy: func() protocol.Policy { return o.Policy }, Agents: func() protocol.AgentList { return o.Agents },
		CallAs: func(ctx context.Context, secret string) (protocol.Agent, error) {
			token, err := w.People.Token(ctx, secret)
			if err != nil {
				return protocol.Agent{}, protocol.ErrNoAgent
			}
			return protocol.Agent{ID: token.Agent, Workspace: token.Workspace, Owner: token.Owner, TokenID: token.ID}, nil
		},
		Home: w.Home, Version: "test", Log: o.Log,
	})
	must(w.t, err)
	w.Protocol = wire
	w.wire.Store(wire)
}

func (w *World) tell(e approval.Event) {
	if wire := w.wire.Load(); wire != nil {
		wire.ApprovalNews(e)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Result is the end of a call.
type Result struct {
	Ran bool
	Err error
}

// Call makes a call of an agent in the background.
func (w *World) Call(agent, tool string, arguments map[string]any) <-chan Result {
	w.t.Helper()
	raw, err := json.Marshal(arguments)
	must(w.t, err)
	done := make(chan Result, 1)
	key, err := toolward.NewSessionKey(agent, "main")
	must(w.t, err)
	call := toolward.Call{
		ID: "c1", Tool: tool, Arguments: raw, Session: key, Surface: toolward.SurfaceHook, WorkDir: w.Workspace,
		Host: toolward.HostGateway,
		Caller: toolward.Caller{
			Agent: agent, Context: "main", Client: "Claude Code 2.1", Workspace: w.Workspace, Connection: "hook:" + agent,
		},
	}
	go func() {
		result, err := w.Gateway.Call(context.Background(), call)
		done <- Result{Ran: err == nil && !result.IsError, Err: err}
	}()
	return done
}

// AwaitPending waits until n approvals are pending and returns them.
func (w *World) AwaitPending(n int) []*approval.Record {
	w.t.Helper()
	by := w.Person()
	for range 2000 {
		list, err := w.Approvals.Pending(w.t.Context(), by)
		must(w.t, err)
		if len(list) == n {
			return list
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatalf("there never were %d pending approvals", n)
	return nil
}

// Person is a signed-in person at the daemon's own terminal.
func (w *World) Person() identity.Authority {
	w.t.Helper()
	by, err := w.People.SignInForeground(w.t.Context(), Passphrase)
	must(w.t, err)
	return by
}

// SocketClient speaks HTTP over the local socket; the host in URLs does not matter.
func (w *World) SocketClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(w.Home, server.SocketName))
	}}}
}

// Processes is a list of processes in which this test runs as "toolward", started by a shell in a terminal.
type Processes struct {
	mu     sync.Mutex
	listed map[int]identity.Process
}

const shellPID = 100

func newProcesses() *Processes {
	p := &Processes{listed: map[int]identity.Process{}}
	uid := uint32(os.Geteuid())
	p.listed[shellPID] = identity.Process{PID: shellPID, Parent: 1, Start: 10, Session: shellPID, TTY: 5, UID: uid, Exe: "/bin/bash", Args: []string{"bash"}}
	p.listed[os.Getpid()] = identity.Process{
		PID: os.Getpid(), Parent: shellPID, Start: 20, Session: shellPID, TTY: 5, UID: uid,
		Exe: "/usr/bin/toolward", Args: []string{"toolward"},
	}
	return p
}

// Process looks a process up.
func (p *Processes) Process(pid int) (identity.Process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.listed[pid]
	if !ok {
		return identity.Process{}, errors.New("no such process")
	}
	return found, nil
}

// Change changes what is known of this test's own process.
func (p *Processes) Change(change func(*identity.Process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.listed[os.Getpid()]
	change(&own)
	p.listed[os.Getpid()] = own
}

// Config is a configuration file of which a change may wait.
type Config struct {
	mu      sync.Mutex
	waiting *desk.ConfigChange
	applied []string
}

// Offer makes a change wait.
func (c *Config) Offer(change desk.ConfigChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = &change
}

// PendingChange is the change that waits.
func (c *Config) PendingChange() (desk.ConfigChange, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		return desk.ConfigChange{}, false
	}
	return *c.waiting, true
}

// ApplyPending applies it.
func (c *Config) ApplyPending(revision string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil || c.waiting.Revision != revision {
		return errors.New("the configuration file has changed since it was shown")
	}
	c.waiting = nil
	c.applied = append(c.applied, revision)
	return nil
}

// Applied lists what was applied.
func (c *Config) Applied() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.applied...)
}

// tools are read (runs at once), exec, write and mail.
func tools(commands bool) []*toolward.Tool {
	ran := func(context.Context, *toolward.Request) (toolward.Result, error) {
		return toolward.TextResult("done"), nil
	}
	file := func(op toolward.Op) func(context.Context, *toolward.Request) (toolward.Facts, error) {
		return func(_ context.Context, r *toolward.Request) (toolward.Facts, error) {
			path := r.Params.Text("path")
			real := path
			if !filepath.IsAbs(path) {
				real = filepath.Join(r.Call.WorkDir, path)
			}
			return toolward.Facts{Targets: []toolward.Target{{Path: path, Real: real, Op: op, Zone: "workspace", Kind: "file"}}, Mutates: op != toolward.OpRead}, nil
		}
	}
	all := []*toolward.Tool{
		{Name: "read", Description: "Reads a file.", Facts: file(toolward.OpRead), Run: ran},
		{Name: "write", Description: "Writes a file.", Facts: file(toolward.OpWrite), Run: ran},
		{Name: "edit", Description: "Edits a file.", Facts: file(toolward.OpWrite), Run: ran, Diff: func(_ context.Context, r *toolward.Request) (string, error) {
			return r.Params.Text("diff"), nil
		}},
		{Name: "exec", Description: "Runs a command.", Run: ran, Facts: commandFacts(commands)},
		{Name: "mail", Description: "Sends a message.", Run: ran},
	}
	for _, t := range all {
		t.Schema = json.RawMessage(`{"type":"object"}`)
	}
	return all
}

// judge asks about everything but reads; secrets are critical.
func judge(r *toolward.Request) toolward.Judgment {
	j := toolward.Judgment{
		Verdict: toolward.Ask, GrantOK: true, AllowAlways: true,
		Class: toolward.Classification{Class: toolward.NeedsApproval, From: toolward.Normal, Severity: toolward.Info, Grant: toolward.GrantExact},
	}
	switch path := r.Params.Text("path"); {
	case strings.Contains(path, ".ssh"):
		j.Class.Severity, j.AllowAlways, j.GrantOK = toolward.Critical, false, false
		j.Reasons = []toolward.Reason{{Layer: "class", Rule: "read · secret", Text: "The file is a private key; reading it is asked about each time"}}
	case r.Tool.Name == "read":
		j.Verdict, j.Class.Class, j.Class.From = toolward.Allow, toolward.Safe, toolward.Lockdown
		j.Reasons = []toolward.Reason{{Layer: "class", Text: "reading in the workspace is safe"}}
	case r.Tool.Name == "exec":
		j.Findings = r.Facts.Findings
		for _, f := range j.Findings {
			j.Class.Severity = toolward.Warning
			if f.Code == "command_dangerous" {
				j.Class.Severity, j.AllowAlways, j.GrantOK = toolward.Critical, false, false
				break
			}
		}
		j.Reasons = []toolward.Reason{{Layer: "class", Rule: "exec", Text: "Nothing says yes to all of this command"}}
	default:
		j.Class.Grant = toolward.GrantPath
		j.Reasons = []toolward.Reason{{Layer: "class", Rule: "write · workspace", Text: "Changing files in the workspace asks"}}
	}
	return j
}
