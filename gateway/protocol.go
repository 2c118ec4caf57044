package gateway

import (
	"context"
	"errors"
	"os"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/audit/elsewhere"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/protocol"
)

// openProtocol opens the gateway protocol. Who may connect is read at start: a changed file does not open a door of a
// running gateway.
func (g *Gateway) openProtocol(ctx context.Context, settings config.File, listen string, records audit.Source) error {
	if err := settings.Gateway.Check(listen); err != nil {
		return err
	}
	who, err := settings.Gateway.Resolve(os.LookupEnv)
	if err != nil {
		return err
	}
	g.secrets.Hold("gateway protocol", nonEmpty(who.Auth.Token, who.Auth.Password)...)
	if g.desk, err = desk.New(desk.Options{
		Audit: g.audit, Allowlist: g.commands, People: g.people, Passkeys: g.passkeys, Devices: g.pairings, Locked: g.authority.Locked, Levels: levels{g.sessions, g.watcher},
		Approvals: g.approver, Sandboxes: g.sandboxes, Forwards: g.forwards, Undo: g.kept, Config: g, Records: g.audit, Source: records, Log: g.log,
	}); err != nil {
		return err
	}
	g.protocol, err = protocol.New(protocol.Options{
		Config: who, Tokens: g.people, Pairings: g.pairings, Approvals: g.approver, Audit: g.audit, Gate: g.Gateway, Desk: g.desk,
		Policy: func() protocol.Policy { return g.policyInForce() }, Agents: g.agentList, CallAs: g.callAs, Paired: g.recordPairing, Trouble: g.troubled,
		Home: g.home, Version: g.version, Log: g.log,
	})
	if err == nil {
		g.wire.Store(g.protocol)
	}
	return err
}

// recordFails notes that nothing can be recorded, so that calls are refused, and tells whoever is connected.
func (g *Gateway) recordFails(err error) {
	g.log.Error("audit_unavailable: calls are refused", "err", err)
	why := "the record cannot be written: calls are refused"
	g.trouble.Store(&why)
	if wire := g.wire.Load(); wire != nil {
		wire.HealthNews()
	}
}

// recordWorks notes that it can again.
func (g *Gateway) recordWorks() {
	g.log.Info("the record can be written again")
	g.trouble.Store(nil)
	if wire := g.wire.Load(); wire != nil {
		wire.HealthNews()
	}
}

// recordBroken notes that the record is not as the last run left it. Calls go on: it is in the record, too.
func (g *Gateway) recordBroken(err error) {
	g.log.Error("teg.audit_gap: the record is not as it was left; see toolward audit verify", "err", err)
	g.broken = err.Error()
}

// notices are what people must know of the gateway itself, on every page and in its status.
func (g *Gateway) notices() (words []string) {
	if g.broken != "" {
		words = append(words, g.broken)
	}
	words = append(words, g.authority.Warnings()...)
	if g.memory.warning != "" {
		words = append(words, g.memory.warning)
	}
	return append(words, g.elsewhere.Failing()...)
}

// openElsewhere begins to send checkpoints of the record to where nobody who can change it can take them back.
func (g *Gateway) openElsewhere() {
	settings := g.atStart.TEG.Audit.Checkpoints
	g.secrets.Hold("checkpoints", nonEmpty(settings.Token())...)
	g.elsewhere = elsewhere.Open(settings, elsewhere.Options{Redact: g.secrets.String, Log: g.log})
}

func (g *Gateway) troubled() string {
	if why := g.trouble.Load(); why != nil {
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
func (g *Gateway) agentList() protocol.AgentList {
	file := g.config.Current().File
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
func (g *Gateway) callAs(ctx context.Context, secret string) (protocol.Agent, error) {
	who, err := g.people.Bearer(ctx, secret, g.places.CheckWorkspace)
	if errors.Is(err, identity.ErrToken) {
		return protocol.Agent{}, protocol.ErrNoAgent
	}
	if err != nil {
		return protocol.Agent{}, err
	}
	return protocol.Agent{ID: who.Agent, Workspace: who.Workspace, Owner: who.Owner, TokenID: who.TokenID}, nil
}

// recordPairing keeps what devices asked for, and which were paired without asking anybody. What somebody did is in the record
// already: they did it at the desk.
func (g *Gateway) recordPairing(e identity.PairEvent) {
	if e.By != "" {
		g.events.counted(audit.Event{Type: audit.TypeConfig})
		return
	}
	data := map[string]any{"event": "device-" + e.Kind, "device": e.DeviceID, "by": e.By}
	if e.Kind == identity.PairApproved {
		data["by"] = "nobody: a program of this machine that had the gateway's secret"
	}
	if e.Request.ID != "" {
		data["scopes"], data["role"], data["client"], data["address"] = e.Request.Scopes, string(e.Request.Role), e.Request.ClientID, e.Request.IP
	}
	g.events.put(audit.Event{Type: audit.TypeConfig, Data: data})
}
