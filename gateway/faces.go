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

// openFaces makes everything that turns outside traffic into calls, and the two doors.
func (d *Gateway) openFaces(ctx context.Context, o Options) (err error) {
	if !o.Doors {
		return nil
	}
	settings := d.config.Current().File
	stateKey, err := d.deriveKey("mcp request state")
	if err != nil {
		return err
	}
	d.mcp, err = mcp.NewServer(mcp.Config{
		Gateway: d.Gateway, Policy: d.policy, StateKey: stateKey, Version: d.version, Log: d.log,
		ApprovalURL: d.approvalURL, Withdraw: d.approver.Withdraw,
		MaxMessage: settings.Limits.MessageBytes, MaxCalls: settings.Limits.CallsPerSession,
	})
	if err != nil {
		return err
	}
	layout := place.Layout{
		Home: d.places.Home, StateDir: d.home, ConfigFile: d.configPath(),
		Own: append(ownPrograms(), settings.Plugins.Files()...), FoldCase: place.FoldsCase(d.home),
	}
	if layout, err = layout.Canonical(); err != nil {
		return err
	}
	d.hooks, err = bridge.NewHandler(bridge.Config{
		Gateway: d.Gateway, Sessions: d.sessions, Layout: layout, Attended: settings.Bridge.Attended, Log: d.log,
		Redact: d.secrets.Clean, Places: d.places.Of, EnforceText: settings.Bridge.EnforceText,
		Command: d.toolbox.ClientCommand, Started: d.toolbox.RecordUse,
	})
	if err != nil {
		return err
	}
	records, err := d.db.Audit(ctx)
	if err != nil {
		return err
	}
	streams, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.streams = cancel
	listen := o.Listen
	if listen == "" {
		listen = settings.Server.Listen
	}
	if err := d.openProtocol(ctx, settings, listen); err != nil {
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
	d.server, err = server.Open(server.Options{
		Home: d.home, Listen: listen, Hosts: settings.Server.Hosts,
		Public: public, Proxies: door.Proxies{Trusted: trusted, RealIPFallback: settings.Gateway.AllowRealIPFallback},
		Passkeys: d.passkeys,
		People:   d.people, Approvals: d.approver, Audit: d.audit, Records: records, Levels: levels{d.sessions, d.watcher},
		Gateway: d.Gateway, Policy: d.policyInForce, Desk: d.desk, Sandboxes: d.sandboxes,
		MCP:         d.mcp.Handler(d.authenticate),
		MCPStream:   d.fromAgent(d.mcp.StdioHandler(streams, d.welcome)),
		Hooks:       d.fromAgent(d.hooks),
		Metrics:     d.measured.Handler(),
		WebSocket:   d.protocol,
		Invoke:      d.protocol.Tools(),
		Ready:       d.protocol.Ready,
		ObserveOnly: d.Observes(),
		Version:     d.version, Stop: o.Stop, Log: d.log,
	})
	if err != nil {
		return err
	}
	return nil
}

func (d *Gateway) approvalURL(id string) string { return d.server.ConsoleURL() + "/approvals/" + id }

// fromAgent notes every process that comes through a face of agents, before anything else: from then on nothing that
// descends from it can use a terminal's sign-in. It stops an agent that was started from a signed-in terminal.
func (d *Gateway) fromAgent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer, ok := door.PeerOf(r.Context()); ok {
			d.people.RegisterAgent(peer)
		}
		next.ServeHTTP(w, r)
	})
}

// authenticate recognizes the bearer token of an MCP client.
func (d *Gateway) authenticate(ctx context.Context, secret string, _ *http.Request) (mcp.Identity, error) {
	token, err := d.people.Token(ctx, secret)
	if err != nil {
		return mcp.Identity{}, err
	}
	workspace, err := d.places.CheckWorkspace(token.Workspace)
	if err != nil {
		return mcp.Identity{}, err
	}
	return mcp.Identity{Agent: token.Agent, Workspace: workspace, Owner: token.Owner, TokenID: token.ID}, nil
}

// welcome decides as which agent a local client may speak, and with which workspace: the configured one if there is
// one, else the directory that the client names.
func (d *Gateway) welcome(_ *http.Request, hello mcp.Hello) (mcp.Identity, error) {
	if err := identity.CheckAgent(hello.Agent); err != nil {
		return mcp.Identity{}, err
	}
	dir := hello.Workspace
	for _, agent := range d.config.Current().File.Agents.List {
		if agent.ID == hello.Agent && agent.Workspace != "" {
			dir = agent.Workspace
		}
	}
	if dir == "" {
		return mcp.Identity{}, fmt.Errorf("agent %s has no workspace: name one with --workspace, or in the configuration", hello.Agent)
	}
	workspace, err := d.places.CheckWorkspace(dir)
	if err != nil {
		return mcp.Identity{}, err
	}
	return mcp.Identity{Agent: hello.Agent, Workspace: workspace}, nil
}
