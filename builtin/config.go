package builtin

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/binding"
	"github.com/toolward/toolward/envname"
	"github.com/toolward/toolward/place"
)

// Config holds the limits and settings of the tools. The zero value of a field means its default; see
// [Config.Defaults].
type Config struct {
	ReadLines      int `json:"readLines,omitempty"`       // lines that read shows at once
	ReadLineChars  int `json:"readLineChars,omitempty"`   // characters of one line that read and search show
	ReadBytes      int `json:"readBytes,omitempty"`       // bytes that read shows at once
	ReadScanBytes  int `json:"readScanBytes,omitempty"`   // bytes that read looks through to find an offset
	ImageBytes     int `json:"imageBytes,omitempty"`      // size of an image that read shows
	FileBytes      int `json:"fileBytes,omitempty"`       // size of a file that write, edit, apply_patch and search work on
	PatchFiles     int `json:"patchFiles,omitempty"`      // files in one patch
	Edits          int `json:"edits,omitempty"`           // replacements in one edit
	ListEntries    int `json:"listEntries,omitempty"`     // entries that list shows
	ListDepth      int `json:"listDepth,omitempty"`       // levels that list goes down
	SearchMatches  int `json:"searchMatches,omitempty"`   // matching lines or files that search shows
	SearchFiles    int `json:"searchFiles,omitempty"`     // directory entries that search and list look at
	SearchChars    int `json:"searchChars,omitempty"`     // characters of a whole search result
	OutputChars    int `json:"outputChars,omitempty"`     // characters of a command's output that are kept
	UnreadChars    int `json:"unreadChars,omitempty"`     // characters of new output that one poll shows
	ResultChars    int `json:"resultChars,omitempty"`     // characters of output in the result of exec
	Commands       int `json:"commands,omitempty"`        // commands of one agent running at once
	CommandsTotal  int `json:"commandsTotal,omitempty"`   // commands of all agents running at once
	FinishedKept   int `json:"finishedKept,omitempty"`    // finished background commands that are kept
	FinishedBytes  int `json:"finishedBytes,omitempty"`   // bytes of their output that are kept
	FinishedMins   int `json:"finishedMinutes,omitempty"` // minutes that a finished background command is kept
	TimeoutSecs    int `json:"timeoutSeconds,omitempty"`  // time-out of a command that names none
	MaxTimeoutSecs int `json:"maxTimeoutSeconds,omitempty"`
	KillGraceMs    int `json:"killGraceMs,omitempty"` // between asking a command to end and ending it
	YieldMs        int `json:"yieldMs,omitempty"`     // after which a command that still runs goes to the background

	Shell           string   `json:"-"`                         // tools.exec.shell: absolute path of the shell; default bash, else sh
	PathPrepend     []string `json:"-"`                         // tools.exec.pathPrepend: directories put in front of PATH
	EnforceText     bool     `json:"-"`                         // bridge.enforceText: clients run what was judged
	PassEnvironment []string `json:"passEnvironment,omitempty"` // further variables that commands inherit
	NoBackground    bool     `json:"noBackground,omitempty"`    // commands never go to the background
	SessionScope    bool     `json:"sessionScope,omitempty"`    // background commands belong to one session, not to the agent
}

// Limit is one row of the table of limits: a key of [Config] with its default and its range.
type Limit struct {
	Key                  string
	Default, Least, Most int
}

// Limits is the table of limits.
func Limits() []Limit {
	table := (&Config{}).limits()
	rows := make([]Limit, len(table))
	for i, l := range table {
		rows[i] = l.Limit
	}
	return rows
}

// setting is a limit together with its value in a configuration.
type setting struct {
	value *int
	Limit
}

func (c *Config) limits() []setting {
	return []setting{
		{&c.ReadLines, Limit{"readLines", 2000, 1, 100_000}},
		{&c.ReadLineChars, Limit{"readLineChars", 2000, 80, 100_000}},
		{&c.ReadBytes, Limit{"readBytes", 128 << 10, 1 << 10, 8 << 20}},
		{&c.PatchFiles, Limit{"patchFiles", 100, 1, 1000}},
		{&c.Edits, Limit{"edits", 200, 1, 10_000}},
		{&c.ListEntries, Limit{"listEntries", 1000, 1, 100_000}},
		{&c.ListDepth, Limit{"listDepth", 10, 1, 64}},
		{&c.SearchMatches, Limit{"searchMatches", 500, 1, 100_000}},
		{&c.SearchFiles, Limit{"searchFiles", 200_000, 100, 10_000_000}},
		{&c.SearchChars, Limit{"searchChars", 60_000, 1000, 1_000_000}},
		{&c.OutputChars, Limit{"outputChars", 200_000, 1000, 200_000}},
		{&c.UnreadChars, Limit{"unreadChars", 30_000, 1000, 200_000}},
		{&c.ResultChars, Limit{"resultChars", 40_000, 1000, 200_000}},
		{&c.Commands, Limit{"commands", 16, 1, 1000}},
		{&c.CommandsTotal, Limit{"commandsTotal", 64, 1, 4000}},
		{&c.FinishedKept, Limit{"finishedKept", 50, 1, 1000}},
		{&c.FinishedBytes, Limit{"finishedBytes", 8 << 20, 1 << 20, 256 << 20}},
		{&c.FinishedMins, Limit{"finishedMinutes", 30, 1, 180}},
		{&c.TimeoutSecs, Limit{"timeoutSeconds", 1800, 1, 7 * 86_400}},
		{&c.MaxTimeoutSecs, Limit{"maxTimeoutSeconds", 86_400, 1, 7 * 86_400}},
		{&c.KillGraceMs, Limit{"killGraceMs", 2000, 10, 60_000}},
		{&c.YieldMs, Limit{"yieldMs", 10_000, 10, 120_000}},
		{&c.ReadScanBytes, Limit{"readScanBytes", 64 << 20, 1 << 20, 1 << 30}},
		{&c.ImageBytes, Limit{"imageBytes", 4 << 20, 1 << 10, 16 << 20}},
		{&c.FileBytes, Limit{"fileBytes", 8 << 20, 1 << 10, 64 << 20}},
	}
}

// Defaults returns the configuration with every zero limit replaced by its default.
func (c Config) Defaults() Config {
	for _, l := range c.limits() {
		if *l.value == 0 {
			*l.value = l.Default
		}
	}
	return c
}

// Check reports every setting that is out of its range, with the range.
func (c Config) Check() error {
	c = c.Defaults()
	var wrong error
	for _, l := range c.limits() {
		if *l.value < l.Least || *l.value > l.Most {
			wrong = errors.Join(wrong, fmt.Errorf("%s is %d: use %d to %d", l.Key, *l.value, l.Least, l.Most))
		}
	}
	if c.Shell != "" && c.Shell[0] != '/' {
		wrong = errors.Join(wrong, fmt.Errorf("shell %q is not an absolute path", c.Shell))
	}
	for _, dir := range c.PathPrepend {
		// A relative entry would let a program in whatever directory a command runs in pass for a known one.
		if dir == "" || dir[0] != '/' {
			wrong = errors.Join(wrong, fmt.Errorf("pathPrepend: %q is not an absolute path", dir))
		}
	}
	for _, name := range c.PassEnvironment {
		if !envname.Portable(name) {
			wrong = errors.Join(wrong, fmt.Errorf("passEnvironment: %q is not a name of letters, digits and underscores", name))
		}
	}
	return wrong
}

// Deps is what the tools need from the rest of the gateway.
type Deps struct {
	// Places gives the classifier of a caller: workspace, home and roots. Required.
	Places func(toolward.Caller) (*place.Classifier, error)
	// Commands judges commands; *command.Commands does. Nil: nobody looks at them, and each one asks.
	Commands Commands
	// Sandboxes confines calls; nil: none is.
	Sandboxes Sandboxes
	// Light confines commands of this machine that nobody saw; nil: they run as they are.
	Light Confiner

	// Kept: what calls do to workspaces can be taken back.
	Kept bool
	// ByTicket reports whether a command of a client can be started here, in the place of the client's shell. Nil: none can.
	ByTicket func() bool
	// Secret reports whether a text holds a secret. Nil: each may, and nothing of a client's environment goes into a sandbox.
	Secret func(text string) bool
	// MayUse reports whether the caller sees another tool; exec asks it about process before it leaves a command in
	// the background. Nil: every caller sees every tool.
	MayUse func(caller toolward.Caller, tool string) bool
	// Environ is the gateway's own environment, "NAME=value"; nil means os.Environ().
	Environ []string
	// Log is optional.
	Log *slog.Logger
}

// Toolbox holds the tools and the commands that they have started.
type Toolbox struct {
	cfg      Config
	deps     Deps
	sessions *sessions
	shell    string // "": there is none
	rules    *command.Environment
	environ  map[string]string // what every command inherits
	binder   binding.Binder

	said struct { // which variables of its environment a session was told of
		mu sync.Mutex
		of map[toolward.SessionKey]map[string]bool
	}
}

// New makes the tools. It fails on settings out of range, without Places, and when the shell that is configured is none.
func New(cfg Config, deps Deps) (*Toolbox, error) {
	if deps.Places == nil {
		return nil, errors.New("builtin: the tools need to know the places of a caller")
	}
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("builtin: %w", err)
	}
	cfg = cfg.Defaults()
	shell, err := findShell(cfg.Shell)
	if err != nil && !errors.Is(err, errNoShell) {
		return nil, fmt.Errorf("builtin: %w", err)
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	rules := command.NewEnvironment(cfg.PassEnvironment)
	return &Toolbox{
		cfg: cfg, deps: deps, shell: shell, rules: rules,
		environ: rules.Inherited(deps.Environ, cfg.PathPrepend),
		sessions: newSessions(sessionLimits{
			running: cfg.Commands, runningTotal: cfg.CommandsTotal,
			finished: cfg.FinishedKept, finishedBytes: cfg.FinishedBytes,
			finishedFor:     time.Duration(cfg.FinishedMins) * time.Minute,
			afterStopWaitUp: time.Duration(cfg.KillGraceMs)*time.Millisecond + stuckAfter + time.Second,
		}),
	}, nil
}

// Tools returns the tools in the order of the documentation.
func (b *Toolbox) Tools() []*toolward.Tool {
	return []*toolward.Tool{
		b.readTool(), b.writeTool(), b.editTool(), b.patchTool(), b.listTool(), b.searchTool(), b.execTool(), b.processTool(),
	}
}

// Close ends every command that is still running and waits for it, a few seconds at most.
func (b *Toolbox) Close() error {
	b.sessions.close()
	return nil
}
