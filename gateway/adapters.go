package gateway

import (
	"context"
	"net/http"
	"sync"

	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/mcp"
	"github.com/toolward/toolward/server"
	"github.com/toolward/toolward/server/door"
)

// openAdapters makes everything that turns outside traffic into calls, and the two doors.
func (g *Gateway) openAdapters(ctx context.Context, o Options) (err error) {
	if !o.Doors {
		return nil
	}
	settings := g.config.Current().File
	stateKey, err := g.deriveKey("mcp request state")
	if err != nil {
		return err
	}
	g.mcp, err = mcp.NewServer(mcp.Config{
		Gateway: g.Gateway, Policy: g.policy, StateKey: stateKey, Version: g.version, Log: g.log,
		ApprovalURL: g.approvalURL, Withdraw: g.approver.Withdraw,
		MaxMessage: settings.Limits.MessageBytes, MaxCalls: settings.Limits.CallsPerSession,
	})
	if err != nil {
		return err
	}
	layout, err := g.places.Layout()
	if err != nil {
		return err
	}
	if g.person == nil {
		g.tickets = sync.OnceValue(g.openTickets)
	}
	g.hooks, err = bridge.NewHandler(bridge.Config{
		Gateway: g.Gateway, Sessions: g.sessions, Layout: layout, Attended: settings.Bridge.Attended, Log: g.log,
		Redact: g.secrets.Clean, Places: g.places.Of, EnforceText: settings.Bridge.Enforces(),
		Command: g.toolbox.ClientCommand, Started: g.toolbox.RecordUse,
		ByTicket: builtin.ByTicket, Confines: g.runsForClients, Tickets: g.tickets,
	})
	if err != nil {
		return err
	}
	records, err := g.db.Audit(ctx)
	if err != nil {
		return err
	}
	streams, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.streams = cancel
	listen := o.Listen
	if listen == "" {
		listen = settings.Server.Listen
	}
	if err := g.openProtocol(ctx, settings, listen, records); err != nil {
		return err
	}
	public, err := door.ParsePublicOrigin(settings.Server.PublicOrigin)
	if err != nil {
		return err
	}
	trusted, err := door.ParseProxies(settings.Gateway.TrustedProxies)
	if err != nil {
		return err
	}
	g.server, err = server.Open(server.Options{
		Home: g.home, Socket: g.person.socket(), Listen: listen, Hosts: settings.Server.Hosts,
		Public: public, Proxies: door.Proxies{Trusted: trusted, RealIPFallback: settings.Gateway.AllowRealIPFallback},
		Passkeys: g.passkeys,
		People:   g.people, Approvals: g.approver,
		Gateway: g.Gateway, Policy: g.policyInForce, Desk: g.desk, Sandboxes: g.sandboxes,
		MCP:         g.mcp.Handler(g.authenticate),
		MCPStream:   g.fromAgent(g.mcp.StdioHandler(streams, g.welcome)),
		Hooks:       g.fromAgent(g.hooks),
		Runs:        g.fromAgent(http.HandlerFunc(g.serveRun)),
		Metrics:     g.measured.Handler(),
		WebSocket:   g.protocol,
		Invoke:      g.protocol.Tools(),
		Ready:       g.protocol.Ready,
		ObserveOnly: g.Observes(),
		Notices:     g.notices,
		Version:     g.version, Stop: o.Stop, Log: g.log,
	})
	if err != nil {
		return err
	}
	return nil
}

func (g *Gateway) approvalURL(id string) string { return g.server.ConsoleURL() + "/approvals/" + id }

// fromAgent notes every process that comes through an adapter of agents, before anything else: from then on nothing that
// descends from it can use a terminal's sign-in. It stops an agent that was started from a signed-in terminal.
func (g *Gateway) fromAgent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer, ok := door.PeerOf(r.Context()); ok {
			if err := g.people.RegisterAgent(peer); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// authenticate recognizes the bearer token of an MCP client.
func (g *Gateway) authenticate(ctx context.Context, secret string, _ *http.Request) (mcp.Identity, error) {
	return g.mayServe(forMCP(g.people.Bearer(ctx, secret, g.places.CheckWorkspace)))
}

// welcome says as which agent a local MCP client speaks.
func (g *Gateway) welcome(_ *http.Request, hello mcp.Hello) (mcp.Identity, error) {
	configured := ""
	for _, agent := range g.config.Current().File.Agents.List {
		if agent.ID == hello.Agent && agent.Workspace != "" {
			configured = agent.Workspace
		}
	}
	return g.mayServe(forMCP(identity.Local(hello.Agent, configured, hello.Workspace, g.places.CheckWorkspace)))
}

func forMCP(who identity.Speaker, err error) (mcp.Identity, error) {
	if err != nil {
		return mcp.Identity{}, err
	}
	return mcp.Identity{Agent: who.Agent, Workspace: who.Workspace, Owner: who.Owner, TokenID: who.TokenID}, nil
}
