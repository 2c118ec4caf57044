package rule

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// variable is one thing that a condition can look at. A name with a dot is one name: that way a field that does not
// exist is found when the configuration is read.
type variable struct {
	name  string
	text  func(*Call) string   // of a text
	list  func(*Call) []string // of a list of texts
	kind  *cel.Type            // of anything else
	other func(*Call) any
	words []string // all values there are, if they are few: a misspelt one is found when the configuration is read
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

// celType is the type of the variable in the language.
func (v *variable) celType() *cel.Type {
	switch {
	case v.text != nil:
		return cel.StringType
	case v.list != nil:
		return cel.ListType(cel.StringType)
	}
	return v.kind
}

// value is the variable as the language takes it.
func (v *variable) value(c *Call) any {
	switch {
	case v.text != nil:
		return types.String(v.text(c))
	case v.list != nil:
		return types.NewStringList(types.DefaultTypeAdapter, v.list(c))
	}
	return v.other(c)
}

var (
	levelWords   = []string{"normal", "elevated", "lockdown"}
	placeWords   = []string{"", "workspace", "instructions", "outside", "protected", "secret", "self"}
	scopeWords   = []string{"", "self", "tree", "other"}
	browserWords = []string{"", "sandbox", "host", "node"}
	contextWords = []string{"", "main", "group", "cron", "hook", "subagent"}
	surfaceWords = []string{"agent", "mcp", "http", "node", "cron", "hook-adapter", "sandbox"}
)

// variables are all there are, but params.
var variables = []variable{
	{name: "level", text: func(c *Call) string { return c.level.String() }, words: levelWords},
	{name: "tool", text: func(c *Call) string { return c.request.Tool.Name }},

	{name: "facts.action", text: func(c *Call) string { return c.action }},
	{name: "facts.place", text: func(c *Call) string { return c.strictestPlace() }, words: placeWords},
	{name: "facts.targets", kind: cel.ListType(cel.ObjectType("Target")), other: (*Call).targets},
	{name: "facts.paths", list: (*Call).paths},
	{name: "facts.hosts", list: func(c *Call) []string { return c.request.Facts.Hosts }},
	{name: "facts.urls", list: func(c *Call) []string { return c.request.Facts.URLs }},
	{name: "facts.recipients", list: func(c *Call) []string { return c.request.Facts.Recipients }},
	{name: "facts.target", text: func(c *Call) string { return c.request.Facts.TargetID }},
	{name: "facts.command", text: func(c *Call) string { return c.request.Facts.Command }},
	{name: "facts.outbound", list: func(c *Call) []string { return c.request.Facts.Outbound }},
	{name: "facts.elevated", kind: cel.BoolType, other: func(c *Call) any { return types.Bool(c.request.Facts.Elevated) }},
	{name: "facts.mutates", kind: cel.BoolType, other: func(c *Call) any { return types.Bool(c.request.Facts.Mutates) }},
	{name: "facts.deletes", kind: cel.IntType, other: func(c *Call) any { return types.Int(c.request.Facts.Deletes) }},
	{name: "facts.browser", text: func(c *Call) string { return c.request.Facts.BrowserOn }, words: browserWords},
	{name: "facts.scope", text: func(c *Call) string { return c.request.Facts.Scope }, words: scopeWords},

	{name: "caller.agent", text: func(c *Call) string { return c.request.Call.Caller.Agent }},
	{name: "caller.owner", kind: cel.BoolType, other: func(c *Call) any { return types.Bool(c.request.Call.Caller.Owner) }},
	{name: "caller.depth", kind: cel.IntType, other: func(c *Call) any { return types.Int(c.request.Call.Caller.Depth) }},
	{name: "caller.context", text: func(c *Call) string { return c.request.Call.Caller.Context }, words: contextWords},
	{name: "caller.surface", text: func(c *Call) string { return string(c.request.Call.Surface) }, words: surfaceWords},
	{name: "caller.session", text: func(c *Call) string { return string(c.request.Call.Session) }},
	{name: "caller.channel", text: func(c *Call) string { return c.request.Call.Caller.Channel }},
	{name: "caller.account", text: func(c *Call) string { return c.request.Call.Caller.Account }},
	{name: "caller.group", text: func(c *Call) string { return c.request.Call.Caller.Group }},
	{name: "caller.sender", text: func(c *Call) string { return c.request.Call.Caller.Sender }},
	{name: "caller.provider", text: func(c *Call) string { return c.request.Call.Caller.Provider }},
	{name: "caller.model", text: func(c *Call) string { return c.request.Call.Caller.Model }},
	{name: "caller.sandboxed", kind: cel.BoolType, other: func(c *Call) any { return types.Bool(c.request.Call.Caller.Sandboxed) }},
	{name: "caller.host", text: func(c *Call) string { return string(c.request.Call.Host) }},
	{name: "caller.workdir", text: func(c *Call) string { return c.request.Call.WorkDir }},
	{name: "caller.workspace", text: func(c *Call) string { return c.request.Call.Caller.Workspace }},
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
