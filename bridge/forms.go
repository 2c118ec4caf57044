package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/schema"
)

// native is a row of a client's table: what one of its own tools is in Toolward's words.
//
// args lists every argument of the tool, because an argument that nobody translated could change what the call
// does without anybody having looked at it: a call with one is judged as an unknown tool. Each is written
// "name:kind" or "name>ourName:kind", with "!" at the end if it is required. The kinds:
//
//	text number flag list object any   plain values
//	path                               a file that the call reads or writes
//	dir                                a directory; without it the working directory
//	command                            shell text that the call runs
//	url query                          what leaves the machine
//	target                             the agent or session that the call is aimed at
type native struct {
	tool   string // canonical name
	action string // constant action, shown with the parameters; "" if the tool has none
	args   string

	op       toolward.Op                                                     // what is done to paths; "" means read
	mutates  bool                                                            // changes state
	declared *toolward.Classification                                        // class of a tool that only touches the client
	look     func(*factsFinder, *toolward.Request, *toolward.Facts)          // further facts and findings
	posix    bool                                                            // a POSIX shell of the client runs its command
	machine  func(toolward.Params) bool                                      // the call asks for the machine, where commands are confined
	silent   bool                                                            // the client asks its person by itself: give no opinion
	diff     func(*factsFinder, *toolward.Request) (unified string, _ error) // what the call would change
}

// form is a compiled row.
type form struct {
	native native
	known  map[string]bool // native argument names
	args   []argument
	schema *schema.Schema
	tool   toolward.Tool // without Facts and Diff, which depend on the session's workspace
}

// argument is one argument of a row.
type argument struct{ native, name, kind string }

// clientTool is the canonical name of tools that only touch the client itself; its action says which.
const clientTool = "client"

// compile checks a row and builds its form.
func (n native) compile() (*form, error) {
	f := &form{native: n, known: map[string]bool{}}
	params := schema.Params{Aliases: map[string]string{}, Kinds: map[string]schema.Kind{}}
	properties, required := map[string]any{}, []string{}
	for _, word := range strings.Fields(n.args) {
		a, must, err := parseArgument(word)
		if err != nil {
			return nil, err
		}
		if n.action != "" && a.name == "action" {
			return nil, fmt.Errorf("argument %s hides the row's action", word)
		}
		f.known[a.native] = true
		f.args = append(f.args, a)
		if a.native != a.name {
			params.Aliases[a.native] = a.name
		}
		properties[a.name] = map[string]any{}
		if t := jsonTypes[a.kind]; t != "" {
			properties[a.name] = map[string]any{"type": t}
		}
		if k, special := schemaKinds[a.kind]; special {
			params.Kinds[a.name] = k
		}
		if must {
			required = append(required, a.name)
		}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil {
		return nil, err
	}
	if f.schema, err = schema.Compile(raw, schema.Options{Params: params}); err != nil {
		return nil, err
	}
	f.tool = toolward.Tool{Name: n.tool, Schema: raw, Decode: f.decode}
	if n.declared != nil {
		class := *n.declared
		f.tool.Declared = func(toolward.Params) toolward.Classification { return class }
	}
	return f, nil
}

var jsonTypes = map[string]string{
	"text": "string", "number": "number", "flag": "boolean", "list": "array", "object": "object", "any": "",
	"path": "string", "dir": "string", "command": "string", "url": "string", "query": "string", "target": "string",
}

var schemaKinds = map[string]schema.Kind{
	"path": schema.Path, "dir": schema.Path, "command": schema.Command, "url": schema.URL, "target": schema.Recipient,
}

func parseArgument(word string) (a argument, must bool, err error) {
	names, kind, ok := strings.Cut(word, ":")
	kind, must = strings.CutSuffix(kind, "!")
	if _, known := jsonTypes[kind]; !ok || !known {
		return a, false, fmt.Errorf("argument %q: unknown kind", word)
	}
	a = argument{native: names, name: names, kind: kind}
	if from, to, renamed := strings.Cut(names, ">"); renamed {
		a.native, a.name = from, to
	}
	if a.native == "" || a.name == "" {
		return a, false, fmt.Errorf("argument %q has no name", word)
	}
	return a, must, nil
}

// knows reports whether the row translates every argument of the call. Arguments that are no object are left to
// the decoder, which says what is wrong with them.
func (f *form) knows(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return true
	}
	for name := range object {
		if !f.known[name] {
			return false
		}
	}
	return true
}

// decode turns the client's arguments into parameters: renamed, checked, with the row's action.
func (f *form) decode(raw json.RawMessage) (toolward.Params, error) {
	v, err := f.schema.Decode(raw)
	if err != nil {
		return toolward.Params{}, invalid(err)
	}
	if f.native.action == "" {
		return toolward.NewParams(v.Canonical, v.Object), nil
	}
	v.Object["action"] = f.native.action
	canonical, err := schema.Canonical(v.Object)
	if err != nil {
		return toolward.Params{}, invalid(err)
	}
	return toolward.NewParams(canonical, v.Object), nil
}

// foreign is the form of a tool that no row describes: an MCP server's, or one of a newer client. Its arguments are
// taken exactly as they are, and its class is that of unknown tools.
func foreign(name, origin string, schema *schema.Schema) toolward.Tool {
	return toolward.Tool{
		Name: name, Schema: openSchema, Plugin: origin,
		Decode: func(raw json.RawMessage) (toolward.Params, error) {
			v, err := schema.Decode(raw)
			if err != nil {
				return toolward.Params{}, invalid(err)
			}
			return toolward.NewParams(v.Canonical, v.Object), nil
		},
	}
}

var openSchema = json.RawMessage(`{"type":"object","additionalProperties":true}`)

// invalid carries a decoding error to the model as what it is.
func invalid(err error) error {
	if e, ok := errors.AsType[*schema.Error](err); ok {
		return &toolward.InvalidArgs{Field: e.Field, Text: strings.TrimPrefix((&schema.Error{Problem: e.Problem, Want: e.Want}).Error(), "invalid arguments: ")}
	}
	return &toolward.InvalidArgs{Text: err.Error()}
}

// foreignName makes a client's tool name a normal one. It fails for names that could pass for another tool's.
func foreignName(prefix, name string) (string, bool) {
	name = prefix + strings.ToLower(name)
	if len(name) == 0 || len(name) > 128 {
		return "", false
	}
	for i, c := range []byte(name) {
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !plain && (i == 0 || !strings.ContainsRune("_.:/-", rune(c))) {
			return "", false
		}
	}
	return name, true
}
