package gateway

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/audit/anomaly"
	"github.com/toolward/toolward/audit/elsewhere"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/bridge/ticket"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/egress"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/mcp"
	"github.com/toolward/toolward/plugin"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/forward"
	"github.com/toolward/toolward/sandbox/light"
	"github.com/toolward/toolward/server"
	"github.com/toolward/toolward/server/protocol"
	"github.com/toolward/toolward/session"
	"github.com/toolward/toolward/store"
	"github.com/toolward/toolward/telemetry"
	"github.com/toolward/toolward/undo/kept"
)

// Gateway is every part of a running gateway, wired together. Calls go through the one of package toolward in it.
type Gateway struct {
	home     string
	person   *Person // nil: the gateway's own user
	version  string
	log      *slog.Logger
	memory   *remembered
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
	kept     *kept.Workspaces // nil if nothing is kept
	toolbox  *builtin.Toolbox
	light    *light.Light // nil: nothing is confined lightly
	tools    []*toolward.Tool
	registry *plugin.Registry // plug-ins that are compiled in
	plugins  *plugin.Runner
	policy   *policy.Live
	shadow   *shadowPolicy
	config   *config.Live
	*toolward.Gateway
	mcp       *mcp.Server
	hooks     *bridge.Handler
	tickets   func() *ticket.Office // of clients' confined commands; nil: clients run their commands themselves
	protocol  *protocol.Server
	wire      atomic.Pointer[protocol.Server] // the same, for whom it is there before or after
	elsewhere *elsewhere.Keeper               // of checkpoints of the record
	broken    string                          // how the record differed from what the last run left, at the start
	trouble   atomic.Pointer[string]          // what keeps calls from running; nil if nothing does
	server    *server.Server
	secrets   *redact.Redactor
	commands  *allowlist.Store       // exec-approvals.json
	authority *authority.Keys        // signs what loosens
	waiting   atomic.Pointer[string] // what of exec-approvals.json was last said to wait
	exec      *command.Commands      // judges commands by it and by the configuration
	events    *eventRecorder
	machine   fleet.Machine
	newHome   bool // nothing can be left in it of an earlier run
	engines   []sandbox.Engine
	sandboxes *fleet.Manager
	forwards  *forward.Forwards
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

	// Person is set for a gateway that has a user of its own.
	Person *Person

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

func (g *Gateway) configPath() string { return filepath.Join(g.home, config.FileName) }

// Observes reports whether this run lets calls through that would ask. It is read at start only: whoever changes the
// file of a running gateway does not take its protection away.
func (g *Gateway) Observes() bool { return g.atStart.TEG.Mode == config.ModeShadow }

// ObserveWords tell people that nothing protects them.
const ObserveWords = "shadow mode, no protection: calls that would wait for you run at once; only refusals hold. " +
	"To change that set teg.mode to enforce and restart"

func (g *Gateway) logError(what string, err error) {
	if err != nil {
		g.log.Error(what, "err", err)
	}
}

// deriveKey makes a key for one purpose from the key that signs the record. It survives restarts with it.
func (g *Gateway) deriveKey(purpose string) ([]byte, error) {
	key, _, err := audit.LoadKey(g.home)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, key.Seed(), nil, "toolward "+purpose, 32)
}
