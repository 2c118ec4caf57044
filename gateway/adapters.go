package gateway

import (
	"context"
	"fmt"
	"net/http"

	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/mcp"
	"github.com/toolward/toolward/place"
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
	layout := place.Layout{
		Home: g.places.Home, StateDir: g.home, ConfigFile: g.configPath(),
		Own: append(ownPrograms(), settings.Plugins.Files()...), FoldCase: place.FoldsCase(g.home),
	}
	if layout, err = layout.Canonical(); err != nil {
		return err
	}
	g.hooks, err = bridge.NewHandler(bridge.Config{
		Gateway: g.Gateway, Sessions: g.sessions, Layout: layout, Attended: settings.Bridge.Attended, Log: g.log,
		Redact: g.secrets.Clean, Places: g.places.Of, EnforceText: settings.Bridge.EnforceText,
		Command: g.toolbox.ClientCommand, Started: g.toolbox.RecordUse,
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
		Home: g.home, Listen: listen, Hosts: settings.Server.Hosts,
		Public: public, Proxies: door.Proxies{Trusted: trusted, RealIPFallback: settings.Gateway.AllowRealIPFallback},
		Passkeys: g.passkeys,
		People:   g.people, Approvals: g.approver, Audit: g.audit, Levels: levels{g.sessions, g.watcher},
		Gateway: g.Gateway, Policy: g.policyInForce, Desk: g.desk, Sandboxes: g.sandboxes,
		MCP:         g.mcp.Handler(g.authenticate),
		MCPStream:   g.fromAgent(g.mcp.StdioHandler(streams, g.welcome)),
		Hooks:       g.fromAgent(g.hooks),
		Metrics:     g.measured.Handler(),
		WebSocket:   g.protocol,
		Invoke:      g.protocol.Tools(),
		Ready:       g.protocol.Ready,
		ObserveOnly: g.Observes(),
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
			g.people.RegisterAgent(peer)
		}
		next.ServeHTTP(w, r)
	})
}

// authenticate recognizes the bearer token of an MCP client.
func (g *Gateway) authenticate(ctx context.Context, secret string, _ *http.Request) (mcp.Identity, error) {
	token, err := g.people.Token(ctx, secret)
	if err != nil {
		return mcp.Identity{}, err
	}
	workspace, err := g.places.CheckWorkspace(token.Workspace)
	if err != nil {
		return mcp.Identity{}, err
	}
	return mcp.Identity{Agent: token.Agent, Workspace: workspace, Owner: token.Owner, TokenID: token.ID}, nil
}

// welcome decides as which agent a local client may speak, and with which workspace: the configured one if there is
// one, else the directory that the client names.
func (g *Gateway) welcome(_ *http.Request, hello mcp.Hello) (mcp.Identity, error) {
	if err := identity.CheckAgent(hello.Agent); err != nil {
		return mcp.Identity{}, err
	}
	dir := hello.Workspace
	for _, agent := range g.config.Current().File.Agents.List {
		if agent.ID == hello.Agent && agent.Workspace != "" {
			dir = agent.Workspace
		}
	}
	if dir == "" {
		return mcp.Identity{}, fmt.Errorf("agent %s has no workspace: name one with --workspace, or in the configuration", hello.Agent)
	}
	workspace, err := g.places.CheckWorkspace(dir)
	if err != nil {
		return mcp.Identity{}, err
	}
	return mcp.Identity{Agent: hello.Agent, Workspace: workspace}, nil
}
