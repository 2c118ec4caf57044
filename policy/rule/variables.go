package rule

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// variable is one thing that a condition can look at. A name with a dot is one name: that way a field that does not
// exist is found when the configuration is read.
type variable struct {
	name  string
	kind  *cel.Type
	value func(*Call) any // a value of the language, or what it can adapt
	words []string        // all values there are, if they are few: a misspelt one is found when the configuration is read
}

// Target is an element of facts.targets.
type Target struct {
	Path  string `cel:"path"`  // as the caller wrote it
	Real  string `cel:"real"`  // absolute, symbolic links resolved
	Op    string `cel:"op"`    // read, write, delete or move
	Place string `cel:"place"` // workspace, instructions, outside, protected, secret or self
	Kind  string `cel:"kind"`  // file, directory, missing, or what else it is
	Links int64  `cel:"links"` // names of the file
	Left  bool   `cel:"left"`  // a symbolic link led out of the workspace
}

var (
	text   = cel.StringType
	truth  = cel.BoolType
	number = cel.IntType
	texts  = cel.ListType(cel.StringType)
)

var (
	levelWords   = []string{"normal", "elevated", "lockdown"}
	placeWords   = []string{"", "workspace", "instructions", "outside", "protected", "secret", "self"}
	scopeWords   = []string{"", "self", "tree", "other"}
	browserWords = []string{"", "sandbox", "host", "node"}
	contextWords = []string{"", "main", "group", "cron", "hook", "subagent"}
	surfaceWords = []string{"agent", "mcp", "http", "node", "cron", "hook-adapter"}
)

// variables are all there are, but params.
var variables = []variable{
	{"level", text, func(c *Call) any { return types.String(c.level.String()) }, levelWords},
	{"tool", text, func(c *Call) any { return types.String(c.request.Tool.Name) }, nil},

	{"facts.action", text, func(c *Call) any { return types.String(c.action) }, nil},
	{"facts.place", text, func(c *Call) any { return types.String(c.strictestPlace()) }, placeWords},
	{"facts.targets", cel.ListType(cel.ObjectType("Target")), (*Call).targets, nil},
	{"facts.paths", texts, (*Call).paths, nil},
	{"facts.hosts", texts, func(c *Call) any { return textList(c.request.Facts.Hosts) }, nil},
	{"facts.urls", texts, func(c *Call) any { return textList(c.request.Facts.URLs) }, nil},
	{"facts.recipients", texts, func(c *Call) any { return textList(c.request.Facts.Recipients) }, nil},
	{"facts.target", text, func(c *Call) any { return types.String(c.request.Facts.TargetID) }, nil},
	{"facts.command", text, func(c *Call) any { return types.String(c.request.Facts.Command) }, nil},
	{"facts.outbound", texts, func(c *Call) any { return textList(c.request.Facts.Outbound) }, nil},
	{"facts.elevated", truth, func(c *Call) any { return types.Bool(c.request.Facts.Elevated) }, nil},
	{"facts.mutates", truth, func(c *Call) any { return types.Bool(c.request.Facts.Mutates) }, nil},
	{"facts.deletes", number, func(c *Call) any { return types.Int(c.request.Facts.Deletes) }, nil},
	{"facts.browser", text, func(c *Call) any { return types.String(c.request.Facts.BrowserOn) }, browserWords},
	{"facts.scope", text, func(c *Call) any { return types.String(c.request.Facts.Scope) }, scopeWords},

	{"caller.agent", text, func(c *Call) any { return types.String(c.request.Call.Caller.Agent) }, nil},
	{"caller.owner", truth, func(c *Call) any { return types.Bool(c.request.Call.Caller.Owner) }, nil},
	{"caller.depth", number, func(c *Call) any { return types.Int(c.request.Call.Caller.Depth) }, nil},
	{"caller.context", text, func(c *Call) any { return types.String(c.request.Call.Caller.Context) }, contextWords},
	{"caller.surface", text, func(c *Call) any { return types.String(c.request.Call.Surface) }, surfaceWords},
	{"caller.session", text, func(c *Call) any { return types.String(c.request.Call.Session) }, nil},
	{"caller.channel", text, func(c *Call) any { return types.String(c.request.Call.Caller.Channel) }, nil},
	{"caller.account", text, func(c *Call) any { return types.String(c.request.Call.Caller.Account) }, nil},
	{"caller.group", text, func(c *Call) any { return types.String(c.request.Call.Caller.Group) }, nil},
	{"caller.sender", text, func(c *Call) any { return types.String(c.request.Call.Caller.Sender) }, nil},
	{"caller.provider", text, func(c *Call) any { return types.String(c.request.Call.Caller.Provider) }, nil},
	{"caller.model", text, func(c *Call) any { return types.String(c.request.Call.Caller.Model) }, nil},
	{"caller.sandboxed", truth, func(c *Call) any { return types.Bool(c.request.Call.Caller.Sandboxed) }, nil},
	{"caller.host", text, func(c *Call) any { return types.String(c.request.Call.Host) }, nil},
	{"caller.workdir", text, func(c *Call) any { return types.String(c.request.Call.WorkDir) }, nil},
	{"caller.workspace", text, func(c *Call) any { return types.String(c.request.Call.Caller.Workspace) }, nil},
}

// paramsName is the variable that holds the canonical parameters.
const paramsName = "params"

// positions finds a variable by its name.
var positions = func() map[string]int {
	m := make(map[string]int, len(variables))
	for i, v := range variables {
		m[v.name] = i
	}
	return m
}()

func textList(list []string) any { return types.NewStringList(types.DefaultTypeAdapter, list) }
