package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/approval/socket"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/authority/signed"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/session"
	"github.com/toolward/toolward/store"
	"github.com/toolward/toolward/telemetry"
)

// Open opens the state and wires all parts. Nothing listens before Serve; a failure leaves nothing open.
func Open(ctx context.Context, o Options) (*Gateway, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	secrets := redact.New()
	// Errors quote what failed: a header, a command, what a plug-in or another server said.
	d := &Gateway{home: o.Home, person: o.Person, version: o.Version, log: slog.New(secrets.Log(o.Log.Handler())), secrets: secrets}
	for _, part := range []func(context.Context, Options) error{
		d.openState, d.openPeople, d.openTools, d.openPlugins, d.openConfig, d.openTelemetry, d.openWatcher, d.openSandboxes, d.openUndo, d.openGateway, d.openAdapters,
	} {
		if err := part(ctx, o); err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// openState opens the database and the record. What a crash left without an outcome becomes "lost" here.
func (g *Gateway) openState(ctx context.Context, o Options) (err error) {
	if g.db, err = store.Open(ctx, o.Home, store.Options{
		OnSyncError: func(err error) { g.log.Error("state could not be synced to disk", "err", err) },
	}); err != nil {
		return err
	}
	g.home = g.db.Home()
	g.authority = authority.Open(g.home, g.authorityNews)
	g.commands = allowlist.Open(g.home, allowlist.Options{Ledger: g.authority.About(allowlist.FileName), Redact: g.secrets.String, Log: g.log})
	userHome, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("find the home directory: %w", err)
	}
	g.exec = command.NewCommands(g.commands, userHome, place.FoldsCase(g.home))
	records, err := g.db.Audit(ctx)
	if err != nil {
		return err
	}
	if g.person != nil {
		g.runsHere()
	} else if err := g.openMachine(ctx, records); err != nil {
		return err
	}
	// Before anything that was signed counts.
	g.authority.Compare(ctx, func(ctx context.Context, f audit.Filter) ([]audit.Record, error) { return audit.Query(ctx, records, f) })
	g.memory = &remembered{rows: store.NewConfiguration(g.db), keys: g.authority}
	settings, err := g.configurationAtStart(ctx, o)
	if err != nil {
		return err
	}
	g.atStart = settings.File
	// The key is made directly before the log begins: it says from then on that a log has begun.
	key, first, err := audit.LoadKey(g.home)
	if err != nil {
		return err
	}
	g.openElsewhere()
	g.audit, err = audit.Open(ctx, records, audit.Options{
		Key: key, First: first, Redact: g.secrets.String, Escape: display.Block,
		Selectors:     policy.Selectors(),
		Always:        g.atStart.TEG.Audit.Sync == "always",
		OnUnavailable: g.recordFails,
		OnAvailable:   g.recordWorks,
		OnBroken:      g.recordBroken,
		OnSeal:        g.elsewhere.Keep,
	})
	if err != nil {
		return err
	}
	g.events = newEventRecorder(context.WithoutCancel(ctx), g.audit, func(err error) { g.log.Error("record an event", "err", err) })
	g.authorityAtStart()
	return nil
}

// configurationAtStart is what will be in force when everything is open.
func (g *Gateway) configurationAtStart(ctx context.Context, o Options) (*config.Loaded, error) {
	if o.Configuration != nil {
		return config.Parse(config.FileName, o.Configuration)
	}
	settings, _, err := config.InForce(ctx, g.configPath(), g.memory)
	return settings, err
}

// openPeople opens who may answer, what waits, and what sessions have seen.
func (g *Gateway) openPeople(ctx context.Context, _ Options) (err error) {
	people := store.NewDevices(g.db)
	if _, set, err := people.Verifier(ctx); err != nil {
		return err
	} else if !set {
		g.authority.Unset()
	}
	if g.people, err = identity.Open(ctx, identity.Options{Store: signed.NewPeople(people, g.authority), Key: homeKey{g}, Clients: g.person.clients(), Log: g.log}); err != nil {
		return err
	}
	if g.passkeys, err = identity.OpenPasskeys(ctx, g.people, signed.NewPasskeys(store.NewPasskeys(g.db), g.authority)); err != nil {
		return err
	}
	key, err := g.deriveKey("device tokens")
	if err != nil {
		return err
	}
	if g.pairings, err = identity.OpenPairings(ctx, signed.NewDevices(store.NewPaired(g.db), g.authority), key); err != nil {
		return err
	}
	g.approver, err = approval.Open(ctx, approval.Options{
		Store: signed.NewAnswers(store.NewApprovals(g.db), g.authority), Redact: g.secrets.String, Observe: g.recordApproval, Log: g.log,
		Outline: outlineOf, Remember: g.allowAlways, Socket: socket.Prompter{Address: g.approvalSocket},
	})
	if err != nil {
		return err
	}
	g.rowsAtStart()
	g.sessions, err = session.New(session.Options{Store: store.NewSessions(g.db), OnChange: g.recordLevel, Log: g.log})
	return err
}

// approvalSocket is where another program shows questions, as exec-approvals.json says at this moment.
func (g *Gateway) approvalSocket() (path, token string) {
	s := g.commands.Current()
	if s.Corrupt != nil || !s.Exists {
		return "", ""
	}
	return s.File.Socket.Path, string(s.File.Socket.Token)
}

// outlineOf is what the command of a call would do, as it was judged.
func outlineOf(r *toolward.Request) *display.Outline {
	if assessment := builtin.Assessment(r); assessment != nil {
		return assessment.Outline()
	}
	return nil
}

func (g *Gateway) openTools(ctx context.Context, o Options) (err error) {
	if g.places, err = NewTerritory(g.home); err != nil {
		return err
	}
	if g.person == nil {
		g.openLight()
	}
	if g.toolbox, err = builtin.New(g.atStart.Builtin(), builtin.Deps{Places: g.places.Of, Commands: g.exec, Sandboxes: g, Light: Confiner(g.light), Kept: g.person == nil && g.atStart.Undo.Keeps(), ByTicket: g.issuesTickets, Secret: g.holdsSecret, MayUse: g.mayUse, Log: g.log}); err != nil {
		return err
	}
	if err := g.openEgress(); err != nil {
		return err
	}
	if g.person == nil {
		g.tools = append(g.toolbox.Tools(), g.egress.Tool())
	}
	for _, own := range o.Tools {
		// Two tools of one name: a call could be judged as the one and run as the other.
		if slices.ContainsFunc(g.tools, func(t *toolward.Tool) bool { return strings.EqualFold(t.Name, own.Name) }) {
			return fmt.Errorf("open gateway: there are two tools with the name %s", own.Name)
		}
		g.tools = append(g.tools, own)
	}
	return nil
}

func (g *Gateway) mayUse(caller toolward.Caller, tool string) bool {
	found, _ := g.policy.Snapshot().Find(caller, tool)
	return found != nil
}

// openTelemetry begins to count.
func (g *Gateway) openTelemetry(ctx context.Context, _ Options) (err error) {
	traces := g.atStart.Telemetry.Traces
	tools := map[string]bool{}
	for _, t := range g.tools {
		tools[t.Name] = true
	}
	for _, name := range slices.Concat(visible.CoreTools(), bridge.ToolNames()) {
		tools[name] = true
	}
	g.measured, err = telemetry.New(context.WithoutCancel(ctx), telemetry.Options{
		Version: g.version, Traces: traces, Pending: g.approver.Count, Known: func(name string) bool { return tools[name] },
	})
	if err == nil {
		count := func(e audit.Event) { g.measured.Event(string(e.Type), e.Data) }
		g.events.count.Store(&count)
	}
	return err
}

func (g *Gateway) openGateway(_ context.Context, o Options) (err error) {
	var approver toolward.Approver = g.approver
	if o.Approver != nil {
		approver = o.Approver
	}
	g.Gateway, err = toolward.New(toolward.Config{
		Policy: g.policy, Approver: approver, Auditor: g.measured.Recorder(g.audit), Sessions: g.sessions,
		Hooks: g.plugins, Watcher: g.watcher, Shadow: g.shadow, ObserveOnly: g.Observes(), Observer: g.measured, Keeper: g.keeper(), Hider: g.secrets,
		Log: g.log,
	})
	if g.Observes() {
		g.log.Warn("teg.shadow_mode (critical): " + ObserveWords)
		g.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "shadow mode: calls that would ask run"}})
	}
	return err
}
