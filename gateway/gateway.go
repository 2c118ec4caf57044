package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/approval/socket"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/audit/anomaly"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/egress"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/mcp"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/plugin"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/server"
	"github.com/toolward/toolward/server/protocol"
	"github.com/toolward/toolward/session"
	"github.com/toolward/toolward/store"
	"github.com/toolward/toolward/telemetry"
)

// Gateway is every part of a running gateway, wired together. Calls go through the one of package toolward in it.
type Gateway struct {
	home     string
	version  string
	log      *slog.Logger
	memory   *store.Configuration
	atStart  config.File // in force at start; what needs a restart to change is read from here
	db       *store.DB
	audit    *audit.Log
	people   *identity.Keeper
	passkeys *identity.Passkeys
	pairings *identity.Pairings
	desk     *desk.Desk // what people may do
	approver *approval.Manager
	sessions *session.Tracker
	watcher  *anomaly.Watcher
	warned   warned
	places   *Territory
	toolbox  *builtin.Toolbox
	tools    []*toolward.Tool
	registry *plugin.Registry // plug-ins that are compiled in
	plugins  *plugin.Runner
	policy   *policy.Live
	shadow   *shadowPolicy
	config   *config.Live
	*toolward.Gateway
	mcp       *mcp.Server
	hooks     *bridge.Handler
	protocol  *protocol.Server
	wire      atomic.Pointer[protocol.Server] // the same, for whom it is there before or after
	trouble   atomic.Pointer[string]          // what keeps calls from running; nil if nothing does
	server    *server.Server
	secrets   *redact.Redactor
	commands  *allowlist.Store  // exec-approvals.json
	exec      *command.Commands // judges commands by it and by the configuration
	events    *eventRecorder
	machine   fleet.Machine
	newHome   bool // nothing can be left in it of an earlier run
	engines   []sandbox.Engine
	sandboxes *fleet.Manager
	egress    *egress.Proxies
	measured  *telemetry.Telemetry
	streams   context.CancelFunc // ends the streams of local MCP clients
}

// Options says what a gateway is opened with. All but Home may be left out: such a gateway opens no door, and asks people who
// cannot be reached, so that every call that would ask is refused.
type Options struct {
	Home    string // the state directory; it is made if it is not there
	Version string // of the program
	Log     *slog.Logger

	// Doors are the console, the API, the gateway protocol, MCP and the socket of the hooks.
	Doors  bool
	Listen string // with Doors: overrides server.listen of the configuration
	Stop   func() // with Doors: ends the program, when a person asks for it

	// Tools are there besides those that Toolward ships. The configuration classifies them like any other.
	Tools []*toolward.Tool
	// Approver answers in the place of people.
	Approver toolward.Approver
	// Configuration is in force, from beginning to end, in the place of the file in the home.
	Configuration []byte
}

// check fills in what may be left out.
func (o *Options) check() error {
	if o.Home == "" {
		return errors.New("open gateway: it has no home")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Stop == nil {
		o.Stop = func() {}
	}
	return nil
}

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

func (d *Gateway) configPath() string { return filepath.Join(d.home, config.FileName) }

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

// Observes reports whether this run lets calls through that would ask. It is read at start only: whoever changes the
// file of a running gateway does not take its protection away.
func (d *Gateway) Observes() bool { return d.atStart.TEG.Mode == config.ModeShadow }

const ObserveWords = "shadow mode, no protection: calls that would wait for you run at once; only refusals hold. " +
	"To change that set teg.mode to enforce and restart"

// Serve answers until the context ends or a door fails.
func (d *Gateway) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 2)
	if d.server != nil {
		go func() { failed <- d.server.Serve() }()
	}
	go func() {
		if err := d.config.Watch(ctx); err != nil {
			d.log.Error("the configuration file is not watched: changes wait for a restart", "err", err)
		}
	}()
	go d.shadow.follow(ctx)
	go d.retain(ctx)
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// retain deletes old records once a day, under a signed seal.
func (d *Gateway) retain(ctx context.Context) {
	ticker := time.NewTicker(24 * time.Hour)
	defer ticker.Stop()
	for {
		age := time.Duration(d.config.Current().File.TEG.Audit.RetainDays) * 24 * time.Hour
		if n, err := d.audit.Retain(ctx, age); err != nil && ctx.Err() == nil {
			d.log.Error("old records could not be deleted", "err", err)
		} else if n > 0 {
			d.log.Info("old records deleted", "count", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Close ends everything that was opened. The order matters: first the approver, so that waiting calls are refused
// while their questions stay pending for after the restart; then whatever makes calls; then what records them.
func (d *Gateway) Close() {
	if d.approver != nil {
		d.approver.Close()
	}
	if d.streams != nil {
		d.streams()
	}
	if d.mcp != nil {
		d.mcp.Close()
	}
	if d.protocol != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		d.logError("close connections", d.protocol.Close(ctx))
	}
	if d.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		d.logError("close doors", d.server.Close(ctx))
	}
	if d.hooks != nil {
		d.hooks.Close(context.Background())
	}
	if d.toolbox != nil {
		d.logError("end commands", d.toolbox.Close())
	}
	d.closeSandboxes()
	if d.plugins != nil {
		d.plugins.Close()
	}
	if d.commands != nil {
		d.commands.Close()
	}
	if d.events != nil {
		d.events.close()
	}
	if d.audit != nil {
		d.audit.Close()
	}
	if d.measured != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := d.measured.Close(ctx); err != nil {
			d.log.Debug("the last spans were not exported", "err", err)
		}
	}
	if d.db != nil {
		d.logError("close state", d.db.Close())
	}
}

func (d *Gateway) logError(what string, err error) {
	if err != nil {
		d.log.Error(what, "err", err)
	}
}
