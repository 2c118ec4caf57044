package attacks

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/gateparts"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/mcp"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/session"
	"github.com/toolward/toolward/store"
)

// world is a gateway of real parts on a tree of its own. The corpus speaks of /ws, /home/dev and /outside; they are
// mapped into a temporary directory.
type world struct {
	t         *testing.T
	root      string
	stateDir  string
	watch     stopwatch
	config    map[string]any // the configuration file
	db        *store.DB
	parts     *gateparts.Parts
	log       *audit.Log
	approver  *approval.Manager
	presence  *approval.Presence // of op1
	sessions  *session.Tracker
	toolbox   *builtin.Toolbox
	allowlist *allowlist.Store // exec-approvals.json
	ledger    gatetest.Ledger  // what people accepted of it
	commands  *command.Commands
	upstreams *mcp.Upstreams
	policy    *policy.Live
	gateway   *toolward.Gateway
	hooks     toolward.Hooks
	foldCase  bool     // of the file system
	environ   []string // of the gateway, besides the usual
	plugins   []string // names of tools that plug-ins bring
	own       []string // Toolward's own programs
	engines   []sandbox.Engine
	sandboxes *fleet.Manager // nil without engines
	reached   sync.Map       // names of tools that ran, but for those of the toolbox
}

// op1 is the person who may answer: signed in, with the passphrase, once for all cases.
var op1 = sync.OnceValues(func() (identity.Authority, error) {
	ctx := context.Background()
	home, err := os.MkdirTemp("", "toolward-attacks")
	if err != nil {
		return identity.Authority{}, err
	}
	defer os.RemoveAll(home)
	db, err := store.Open(ctx, home, store.Options{})
	if err != nil {
		return identity.Authority{}, err
	}
	defer db.Close()
	keeper, err := identity.Open(ctx, identity.Options{Store: store.NewDevices(db)})
	if err != nil {
		return identity.Authority{}, err
	}
	const passphrase = "correct horse battery staple"
	if err := keeper.SetUp(ctx, "test", keeper.SetupCode(), passphrase); err != nil {
		return identity.Authority{}, err
	}
	return keeper.SignInForeground(ctx, passphrase)
})

// newWorld builds the tree of the corpus and opens the gateway over it; change comes before anything else.
func newWorld(t *testing.T, change ...func(*world)) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	w := &world{t: t, root: root, stateDir: root + "/home/dev/.toolward", config: map[string]any{}}
	for _, f := range change {
		f(w)
	}
	for name, content := range map[string]string{
		"/ws/README.md": "readme", "/ws/src/main.go": "package main", "/ws/deploy.sh": "#!/bin/sh\necho deploy\n",
		"/outside/secret": "SECRET", "/home/dev/.profile": "", "/tmp/evil/x": "",
	} {
		must(t, os.MkdirAll(filepath.Dir(root+name), 0o755))
		must(t, os.WriteFile(root+name, []byte(content), 0o755))
	}
	w.open()
	t.Cleanup(w.close)
	return w
}

// open opens the state and wires the parts, as the daemon does; after close it is a restart.
func (w *world) open() {
	t, ctx := w.t, context.Background()
	t.Helper()
	var err error
	secrets := redact.New()
	w.allowlist = allowlist.Open(w.stateDir, allowlist.Options{Ledger: &w.ledger, Redact: secrets.String})
	w.commands = command.NewCommands(w.allowlist, w.at("/home/dev"), w.foldCase)
	w.parts, err = gateparts.Open(ctx, gateparts.Options{
		Home: w.stateDir, Redact: secrets.String, Escape: display.Block,
		Approvals: func(o *approval.Options) { o.Outline, o.Remember = outlineOf, w.commands.Allow },
	})
	must(t, err)
	w.db, w.log, w.approver, w.sessions = w.parts.DB, w.parts.Audit, w.parts.Approvals, w.parts.Levels
	w.attend()
	places, err := place.New(place.Layout{
		Workspace: w.at("/ws"), Home: w.at("/home/dev"), StateDir: w.stateDir, ConfigFile: filepath.Join(w.stateDir, config.FileName),
		Own: w.own, FoldCase: w.foldCase,
	})
	must(t, err)
	deps := builtin.Deps{
		Places:   func(toolward.Caller) (*place.Classifier, error) { return places, nil },
		Commands: w.commands,
		Environ:  append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + w.at("/home/dev")}, w.environ...),
	}
	if len(w.engines) > 0 {
		w.openSandboxes()
		deps.Sandboxes = w
	}
	w.toolbox, err = builtin.New(builtin.Config{}, deps)
	must(t, err)
	w.policy = &policy.Live{}
	w.upstreams, err = mcp.OpenUpstreams(ctx, mcp.UpstreamOptions{
		Store: store.NewUpstreams(w.db), CheckName: visible.CheckName, Changed: func() {
			if w.upstreams != nil {
				w.compile()
			}
		},
	})
	must(t, err)
	w.compile()
	w.gateway, err = w.parts.Gate(w.policy, func(c *toolward.Config) { c.Hooks = w.hooks })
	must(t, err)
}

func outlineOf(r *toolward.Request) *display.Outline {
	if assessment := builtin.Assessment(r); assessment != nil {
		return assessment.Outline()
	}
	return nil
}

// withPrograms puts the programs of the corpus, and those that its approvals speak of, on the search path of commands,
// as people install programs. None of them does anything.
func withPrograms(w *world) {
	known, err := corpusWorld()
	must(w.t, err)
	dir := w.root + "/usr/bin"
	must(w.t, os.MkdirAll(dir, 0o755))
	for _, name := range append(sorted(known.World.Bins), "tsx", "deploy.sh") {
		must(w.t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/true\n"), 0o755))
	}
	w.environ = append(w.environ, "PATH="+dir)
	w.set([]any{dir}, "tools", "exec", "safeBinTrustedDirs")
}

// withToolward puts Toolward's own program beside the others.
func withToolward(w *world) {
	program := w.root + "/usr/bin/toolward"
	must(w.t, os.WriteFile(program, []byte("#!/bin/true\n"), 0o755))
	w.own = append(w.own, program)
}

// attend puts op1 in front of a console.
func (w *world) attend() {
	person, err := op1()
	must(w.t, err)
	w.presence, err = w.approver.Attach(approval.Approver{Name: "console", By: person, Connection: "console"})
	must(w.t, err)
}

func (w *world) close() {
	w.approver.Close()
	if err := w.toolbox.Close(); err != nil {
		w.t.Error(err)
	}
	if w.sandboxes != nil {
		w.closeSandboxes()
	}
	w.allowlist.Close()
	if err := w.parts.Close(); err != nil {
		w.t.Error(err)
	}
}

// at maps a path of the corpus into the tree. Other paths, and relative ones, stay as they are.
func (w *world) at(path string) string {
	for _, top := range []string{"/ws", "/home/dev", "/outside", "/data", "/tmp/evil", "/var/run"} {
		if path == top || strings.HasPrefix(path, top+"/") {
			return w.root + path
		}
	}
	return path
}

// compile puts the configuration in force, as the daemon does with a changed file.
func (w *world) compile() {
	w.t.Helper()
	loaded, err := w.load()
	must(w.t, err)
	rules := loaded.File.Policy()
	if w.sandboxes != nil {
		w.sandboxes.Configure(w.sandboxSettings(loaded))
		rules.Around.Confined = w.confined
	}
	snapshot, _, err := policy.Compile(rules, w.tools())
	must(w.t, err)
	_, err = w.commands.Configure(loaded.File.Commands())
	must(w.t, err)
	w.policy.Swap(snapshot)
}

// load checks the configuration as the file that it would be.
func (w *world) load() (*config.Loaded, error) {
	source, err := json.Marshal(w.config)
	if err != nil {
		return nil, err
	}
	return config.Parse(config.FileName, source, config.CheckPolicy(w.tools(), policy.Surroundings{}), config.CheckSandbox(w.sandboxAround()))
}

// set changes the configuration: value under a path of keys.
func (w *world) set(value any, path ...string) {
	at := w.config
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[path[len(path)-1]] = value
}

// tools are those that Toolward ships, stand-ins for core tools that do not exist yet, and those of foreign servers.
func (w *world) tools() []*toolward.Tool {
	tools := w.toolbox.Tools()
	there := map[string]bool{}
	for _, t := range tools {
		there[t.Name] = true
	}
	for _, name := range append(visible.CoreTools(), "whatsapp_login") {
		if !there[name] {
			tools = append(tools, w.standIn(name, ""))
		}
	}
	for _, name := range w.plugins {
		tools = append(tools, w.standIn(name, "plug"))
	}
	return append(tools, w.upstreams.Tools()...)
}

// standIn is a tool that only notes that it ran. Without one a call would be refused because the tool is missing, which
// proves nothing about the policy.
func (w *world) standIn(name, plugin string) *toolward.Tool {
	return &toolward.Tool{
		Name: name, Plugin: plugin,
		Schema: json.RawMessage(`{"type":"object","properties":{"action":{"type":"string"},"patch":{},"raw":{},"task":{},"message":{},"sessionKey":{}}}`),
		Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
			w.reached.Store(name, true)
			return toolward.TextResult("ran"), nil
		},
	}
}

// find is how a caller sees a tool.
func (w *world) find(caller toolward.Caller, tool string) *toolward.Tool {
	found, _ := w.policy.Snapshot().Find(caller, tool)
	return found
}

// registered is the tool of a name, whoever sees it.
func (w *world) registered(name string) *toolward.Tool {
	for _, t := range w.tools() {
		if t.Name == visible.NormalizeName(name) {
			return t
		}
	}
	return nil
}

// main is the agent of the corpus, acting for the owner.
func (w *world) main(sessionName string) (toolward.Caller, toolward.SessionKey) {
	key := toolward.SessionKey("agent:main:" + sessionName)
	return toolward.Caller{
		Agent: "main", Owner: true, Context: "main", Client: "test", Workspace: w.at("/ws"), Connection: "agent main", Session: key,
	}, key
}

// newCall makes a call that does not wait for people.
func (w *world) newCall(caller toolward.Caller, tool string, args any) toolward.Call {
	raw, err := json.Marshal(args)
	must(w.t, err)
	if args == nil {
		raw = json.RawMessage(`{}`)
	}
	return toolward.Call{
		ID: tool, Tool: tool, Arguments: raw, Caller: caller, Session: caller.Session, Surface: toolward.SurfaceAgent,
		WorkDir: w.at("/ws"), Host: toolward.HostGateway, Detach: true,
	}
}

// admission is what became of a call.
type admission struct {
	answer   answer
	approval string // of a question that waits
	pass     *toolward.Pass
	err      error
}

func (a admission) why() string {
	if a.err == nil {
		return "admitted"
	}
	text := a.err.Error()
	var r *toolward.Refusal
	if errors.As(a.err, &r) {
		text = string(r.Code) + ": " + text
		for _, reason := range r.Reasons {
			text += "; " + reason.Layer + ": " + reason.Text
		}
	}
	return text
}

// admit sends a call through the gateway and takes the time.
func (w *world) admit(call toolward.Call) (a admission) {
	w.watch.time(func() { a.pass, a.err = w.gateway.Admit(context.Background(), call) })
	var pending *toolward.Pending
	switch {
	case a.err == nil:
		a.answer = allowed
	case errors.As(a.err, &pending):
		a.answer, a.approval = asked, pending.ID
	default:
		a.answer = denied
	}
	return a
}

// outcome is an admission as the judgment of a case.
func (w *world) outcome(a admission) outcome {
	return outcome{answer: a.answer, why: a.why(), took: w.watch.longest}
}

// setupOnly refuses settings of a case that are not understood.
func setupOnly(c *attack, names ...string) error { return c.Setup.only("setup", names...) }

// minimalArgs are arguments that a schema accepts: what it requires, each of its type.
func minimalArgs(schema json.RawMessage) map[string]any {
	var s struct {
		Required   []string
		Properties map[string]struct{ Type any }
	}
	_ = json.Unmarshal(schema, &s) // our own schemas
	args := map[string]any{}
	for _, name := range s.Required {
		switch s.Properties[name].Type {
		case "array":
			args[name] = []any{}
		case "integer", "number":
			args[name] = 1
		case "boolean":
			args[name] = true
		default:
			args[name] = "README.md"
		}
	}
	return args
}

// sorted lists keys in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
