package gateway

import (
	"context"
	"errors"
	"os"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/protocol"
)

// openProtocol opens the gateway protocol. Who may connect is read at start: a changed file does not open a door of a
// running gateway.
func (d *Gateway) openProtocol(ctx context.Context, settings config.File, listen string) error {
	if err := settings.Gateway.Check(listen); err != nil {
		return err
	}
	who, err := settings.Gateway.Resolve(os.LookupEnv)
	if err != nil {
		return err
	}
	d.secrets.Hold(nonEmpty(who.Auth.Token, who.Auth.Password)...)
	if d.desk, err = desk.New(desk.Options{
		Audit: d.audit, Allowlist: d.commands, People: d.people, Passkeys: d.passkeys, Devices: d.pairings, Levels: levels{d.sessions, d.watcher},
		Approvals: d.approver, Sandboxes: d.sandboxes, Config: d, Log: d.log,
	}); err != nil {
		return err
	}
	d.protocol, err = protocol.New(protocol.Options{
		Config: who, Tokens: d.people, Pairings: d.pairings, Approvals: d.approver, Audit: d.audit, Gate: d.Gateway, Desk: d.desk,
		Policy: func() protocol.Policy { return d.policyInForce() }, Agents: d.agentList, CallAs: d.callAs, Paired: d.recordPairing, Trouble: d.troubled,
		Home: d.home, Version: d.version, Log: d.log,
	})
	if err == nil {
		d.wire.Store(d.protocol)
	}
	return err
}

// recordFails notes that nothing can be recorded, so that calls are refused, and tells whoever is connected.
func (d *Gateway) recordFails(err error) {
	d.log.Error("audit_unavailable: calls are refused", "err", err)
	why := "the record cannot be written: calls are refused"
	d.trouble.Store(&why)
	if wire := d.wire.Load(); wire != nil {
		wire.HealthNews()
	}
}

// recordWorks notes that it can again.
func (d *Gateway) recordWorks() {
	d.log.Info("the record can be written again")
	d.trouble.Store(nil)
	if wire := d.wire.Load(); wire != nil {
		wire.HealthNews()
	}
}

func (d *Gateway) troubled() string {
	if why := d.trouble.Load(); why != nil {
		return *why
	}
	return ""
}

func nonEmpty(list ...string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// agentList is the agents of the configuration.
func (d *Gateway) agentList() protocol.AgentList {
	file := d.config.Current().File
	list := protocol.AgentList{Default: file.DefaultAgent()}
	for _, a := range file.Agents.List {
		list.All = append(list.All, protocol.Agent{ID: a.ID, Workspace: a.Workspace})
	}
	if len(list.All) == 0 {
		list.All = []protocol.Agent{{ID: list.Default}}
	}
	return list
}

// callAs recognizes the token of an agent that calls over HTTP.
func (d *Gateway) callAs(ctx context.Context, secret string) (protocol.Agent, error) {
	token, err := d.people.Token(ctx, secret)
	if errors.Is(err, identity.ErrToken) {
		return protocol.Agent{}, protocol.ErrNoAgent
	}
	if err != nil {
		return protocol.Agent{}, err
	}
	workspace, err := d.places.CheckWorkspace(token.Workspace)
	if err != nil {
		return protocol.Agent{}, err
	}
	return protocol.Agent{ID: token.Agent, Workspace: workspace, Owner: token.Owner, TokenID: token.ID}, nil
}

// recordPairing keeps what devices asked for, and which were paired without asking anybody. What somebody did is in the record
// already: they did it at the desk.
func (d *Gateway) recordPairing(e identity.PairEvent) {
	if e.By != "" {
		d.events.counted(audit.Event{Type: audit.TypeConfig})
		return
	}
	data := map[string]any{"event": "device-" + e.Kind, "device": e.DeviceID, "by": e.By}
	if e.Kind == identity.PairApproved {
		data["by"] = "nobody: a program of this machine that had the gateway's secret"
	}
	if e.Request.ID != "" {
		data["scopes"], data["role"], data["client"], data["address"] = e.Request.Scopes, string(e.Request.Role), e.Request.ClientID, e.Request.IP
	}
	d.events.put(audit.Event{Type: audit.TypeConfig, Data: data})
}
