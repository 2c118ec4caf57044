package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/approval/socket"
	"github.com/toolward/toolward/client"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/gateparts"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/server/protocol"
)

const (
	secret     = "s3cret-s3cret"
	passphrase = "correct horse battery staple"
)

// gateway is the gateway protocol in front of a real approval manager and a real store, at a port and a socket.
type gateway struct {
	Address, Socket string
	Approvals       *approval.Manager

	home     string
	secret   string
	pairings *identity.Pairings
	keeper   *identity.Keeper
	person   identity.Authority
	server   *protocol.Server
	http     *http.Server
	ends     []func() // in the order in which they are undone, the last first
}

// startGateway starts a gateway with a state of its own.
func startGateway() *gateway {
	home, err := os.MkdirTemp("", "twc") // the path of a socket holds about 100 bytes
	must(err)
	g := &gateway{home: home, secret: secret, Socket: "unix://" + filepath.Join(home, "toolward.sock")}
	g.start("127.0.0.1:0")
	return g
}

func (g *gateway) start(listen string) {
	ctx := context.Background()
	var news atomic.Pointer[protocol.Server]
	parts := got(gateparts.Open(ctx, gateparts.Options{Home: g.home, Approvals: func(o *approval.Options) {
		o.Observe = func(e approval.Event) {
			if s := news.Load(); s != nil {
				s.ApprovalNews(e)
			}
		}
	}}))
	g.undo(func() { _ = parts.Close() })
	g.Approvals, g.keeper, g.pairings = parts.Approvals, parts.People, parts.Pairings
	tool := &toolward.Tool{
		Name: "read", Description: "reads a file", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`),
		Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
			return toolward.TextResult("ran"), nil
		},
	}
	rules, _, err := policy.Compile(policy.Config{}, []*toolward.Tool{tool})
	must(err)
	gate := got(parts.Gate(policy.NewLive(rules), nil))
	g.server = got(protocol.New(protocol.Options{
		Config:   protocol.Config{Auth: protocol.Auth{Mode: protocol.ModeToken, Token: g.secret}},
		Pairings: g.pairings, Approvals: g.Approvals, Audit: parts.Audit, Gate: gate,
		Desk:   got(desk.New(desk.Options{Audit: parts.Audit, Devices: g.pairings, Approvals: g.Approvals, Records: parts.Audit})),
		Policy: func() protocol.Policy { return rules },
		Agents: func() protocol.AgentList {
			return protocol.AgentList{Default: "main", All: []protocol.Agent{{ID: "main", Workspace: g.home}}}
		},
		CallAs:  func(context.Context, string) (protocol.Agent, error) { return protocol.Agent{}, protocol.ErrNoAgent },
		Version: "test",
	}))
	news.Store(g.server)
	g.serve(got(net.Listen("tcp", listen)), got(socket.Listen(filepath.Join(g.home, "toolward.sock"))))
}

func (g *gateway) serve(doors ...net.Listener) {
	g.Address = "ws://" + doors[0].Addr().String()
	g.http = &http.Server{Handler: g.server, ReadHeaderTimeout: 10 * time.Second}
	for _, door := range doors {
		served := make(chan struct{})
		go func() { defer close(served); _ = g.http.Serve(door) }()
		g.undo(func() { <-served })
	}
	server, web, approvals := g.server, g.http, g.Approvals
	g.undo(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = web.Close()
		approvals.Close() // as in the program: whoever waits is told, then connections end
		must(server.Close(ctx))
	})
}

func (g *gateway) undo(f func()) { g.ends = append(g.ends, f) }

// stop ends the gateway; its state stays.
func (g *gateway) stop() {
	for len(g.ends) > 0 {
		last := g.ends[len(g.ends)-1]
		g.ends = g.ends[:len(g.ends)-1]
		last()
	}
}

// restart ends the gateway and starts it anew at the same address.
func (g *gateway) restart() {
	listen := g.Address[len("ws://"):]
	g.stop()
	g.person = identity.Authority{}
	g.start(listen)
}

// Close ends the gateway and removes its state.
func (g *gateway) Close() {
	g.stop()
	must(os.RemoveAll(g.home))
}

// approve is a signed-in person who approves a device: toolward devices approve.
func (g *gateway) approve(id string) {
	if !g.person.IsPerson() {
		if g.keeper.NeedsSetup() {
			must(g.keeper.SetUp(context.Background(), "test", g.keeper.SetupCode(), passphrase))
		}
		g.person = got(g.keeper.SignInForeground(context.Background(), passphrase))
	}
	_, err := g.pairings.Approve(context.Background(), g.person, id, nil)
	must(err)
}

// dial connects a program with a key of its own.
func (g *gateway) dial(name string, change ...func(*client.Options)) *client.Client {
	o := g.options(name)
	for _, f := range change {
		f(&o)
	}
	return got(client.Dial(context.Background(), o))
}

func (g *gateway) options(name string) client.Options {
	return client.Options{
		Address: g.Address, Token: secret, Name: name, Scopes: []string{client.ScopeApprovals, client.ScopeRead},
		Identity: got(client.LoadIdentity(filepath.Join(g.home, name+".pem"))),
	}
}

// desk connects a program through which a person answers.
func (g *gateway) desk(name string, change ...func(*client.Options)) *client.Client {
	first := g.dial(name, change...)
	g.approve(first.Device())
	must(first.Close())
	return g.dial(name, change...)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func got[T any](v T, err error) T {
	must(err)
	return v
}

// resolve answers as soon as an answer counts.
func resolve(ctx context.Context, c *client.Client, shown *client.Approval, r client.Response) error {
	for {
		err := c.Resolve(ctx, shown, r)
		var refused *client.Error
		if !errors.Is(err, client.ErrTooSoon) || !errors.As(err, &refused) {
			return err
		}
		time.Sleep(refused.RetryAfter)
	}
}
