package gateway

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/approval/socket"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy"
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
	d := &Gateway{home: o.Home, version: o.Version, log: o.Log, secrets: redact.New()}
	for _, part := range []func(context.Context, Options) error{
		d.openState, d.openPeople, d.openTools, d.openPlugins, d.openConfig, d.openTelemetry, d.openWatcher, d.openSandboxes, d.openGateway, d.openFaces,
	} {
		if err := part(ctx, o); err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// openState opens the database and the record. What a crash left without an outcome becomes "lost" here.
func (d *Gateway) openState(ctx context.Context, o Options) (err error) {
	if d.db, err = store.Open(ctx, o.Home, store.Options{
		OnSyncError: func(err error) { d.log.Error("state could not be synced to disk", "err", err) },
	}); err != nil {
		return err
	}
	d.home = d.db.Home()
	d.commands = allowlist.Open(d.home, allowlist.Options{Redact: d.secrets.String, Log: d.log})
	userHome, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("find the home directory: %w", err)
	}
	d.exec = command.NewCommands(d.commands, userHome, place.FoldsCase(d.home))
	key, _, err := audit.LoadKey(d.home)
	if err != nil {
		return err
	}
	records, err := d.db.Audit(ctx)
	if err != nil {
		return err
	}
	if err := d.openMachine(ctx, records); err != nil {
		return err
	}
	d.memory = store.NewConfiguration(d.db)
	settings, err := d.configurationAtStart(ctx, o)
	if err != nil {
		return err
	}
	d.atStart = settings.File
	d.audit, err = audit.Open(ctx, records, audit.Options{
		Key: key, Redact: d.secrets.String, Escape: display.Block,
		Selectors:     policy.Selectors(),
		Always:        d.atStart.TEG.Audit.Sync == "always",
		OnUnavailable: d.recordFails,
		OnAvailable:   d.recordWorks,
	})
	if err != nil {
		return err
	}
	d.events = newEventRecorder(context.WithoutCancel(ctx), d.audit, func(err error) { d.log.Error("record an event", "err", err) })
	return nil
}

// configurationAtStart is what will be in force when everything is open.
func (d *Gateway) configurationAtStart(ctx context.Context, o Options) (*config.Loaded, error) {
	if o.Configuration != nil {
		return config.Parse(config.FileName, o.Configuration)
	}
	settings, _, err := config.InForce(ctx, d.configPath(), d.memory)
	return settings, err
}

// openPeople opens who may answer, what waits, and what sessions have seen.
func (d *Gateway) openPeople(ctx context.Context, _ Options) (err error) {
	if d.people, err = identity.Open(ctx, identity.Options{Store: store.NewDevices(d.db), Log: d.log}); err != nil {
		return err
	}
	if d.passkeys, err = identity.OpenPasskeys(ctx, d.people, store.NewPasskeys(d.db)); err != nil {
		return err
	}
	key, err := d.deriveKey("device tokens")
	if err != nil {
		return err
	}
	if d.pairings, err = identity.OpenPairings(ctx, store.NewPaired(d.db), key); err != nil {
		return err
	}
	d.approver, err = approval.Open(ctx, approval.Options{
		Store: store.NewApprovals(d.db), Redact: d.secrets.String, Observe: d.recordApproval, Log: d.log,
		Outline: outlineOf, Remember: d.exec.Allow, Socket: socket.Prompter{Address: d.approvalSocket},
	})
	if err != nil {
		return err
	}
	d.sessions, err = session.New(session.Options{Store: store.NewSessions(d.db), OnChange: d.recordLevel, Log: d.log})
	return err
}

// approvalSocket is where another program shows questions, as exec-approvals.json says at this moment.
func (d *Gateway) approvalSocket() (path, token string) {
	s := d.commands.Current()
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

func (d *Gateway) openTools(ctx context.Context, o Options) (err error) {
	if d.places, err = NewTerritory(d.home); err != nil {
		return err
	}
	if d.toolbox, err = builtin.New(d.atStart.Builtin(), builtin.Deps{Places: d.places.Of, Commands: d.exec, Sandboxes: d, MayUse: d.mayUse, Log: d.log}); err != nil {
		return err
	}
	if err := d.openEgress(); err != nil {
		return err
	}
	d.tools = append(d.toolbox.Tools(), d.egress.Tool())
	for _, own := range o.Tools {
		// Two tools of one name: a call could be judged as the one and run as the other.
		if slices.ContainsFunc(d.tools, func(t *toolward.Tool) bool { return strings.EqualFold(t.Name, own.Name) }) {
			return fmt.Errorf("open gateway: there are two tools with the name %s", own.Name)
		}
		d.tools = append(d.tools, own)
	}
	return nil
}

func (d *Gateway) mayUse(caller toolward.Caller, tool string) bool {
	found, _ := d.policy.Snapshot().Find(caller, tool)
	return found != nil
}

// openTelemetry begins to count.
func (d *Gateway) openTelemetry(ctx context.Context, _ Options) (err error) {
	traces := d.atStart.Telemetry.Traces
	tools := map[string]bool{}
	for _, t := range d.tools {
		tools[t.Name] = true
	}
	for _, name := range slices.Concat(policy.CoreTools(), bridge.ToolNames()) {
		tools[name] = true
	}
	d.measured, err = telemetry.New(context.WithoutCancel(ctx), telemetry.Options{
		Version: d.version, Traces: traces, Pending: d.approver.Count, Known: func(name string) bool { return tools[name] },
	})
	if err == nil {
		count := func(e audit.Event) { d.measured.Event(string(e.Type), e.Data) }
		d.events.count.Store(&count)
	}
	return err
}

func (d *Gateway) openGateway(_ context.Context, o Options) (err error) {
	var approver toolward.Approver = d.approver
	if o.Approver != nil {
		approver = o.Approver
	}
	d.Gateway, err = toolward.New(toolward.Config{
		Policy: d.policy, Approver: approver, Auditor: d.measured.Recorder(d.audit), Sessions: d.sessions,
		Hooks: d.plugins, Watcher: d.watcher, Shadow: d.shadow, ObserveOnly: d.Observes(), Observer: d.measured, Log: d.log,
	})
	if d.Observes() {
		d.log.Warn("teg.shadow_mode (critical): " + ObserveWords)
		d.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "shadow mode: calls that would ask run"}})
	}
	return err
}
