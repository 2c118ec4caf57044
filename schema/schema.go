package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Options say how arguments are read beyond what the JSON Schema says.
type Options struct {
	// Params brings the parameters to one spelling and names those that need care.
	Params Params

	// Foreign is set for tools of MCP servers and plug-ins. For them a property that the schema does not declare
	// passes if the schema admits it expressly, by additionalProperties, unevaluatedProperties or
	// patternProperties; for Toolward's own tools it never does. Foreign tools also get kinds of parameters by
	// their usual names, because their authors declare none.
	Foreign bool
}

// Schema checks the arguments of one tool. It is immutable and may be used concurrently.
type Schema struct {
	root     *jsonschema.Schema
	quick    *quick // accepts most valid arguments without the full validator; nil if the schema is not that simple
	declared declared
	options  Options
	guarded  []string // names of parameters that must not contain NUL, sorted
	required []string // guarded paths that the schema requires, sorted
	bound    bound
}

// Value is a set of arguments in canonical form.
type Value struct {
	Canonical []byte         // canonical JSON of Object
	Object    map[string]any // numbers are json.Number
}

// resource is the address that a schema has while it is compiled.
const resource = "toolward:///schema"

// Compile prepares a tool's JSON Schema, drafts 4 to 2020-12. It fails, with the reason in words, for a schema that
// is malformed, can never accept an object, refers to anything outside itself, or is made to be expensive.
func Compile(raw json.RawMessage, o Options) (s *Schema, err error) {
	// The schema may come from a hostile MCP server. A panic in the compiler must not take the gate down; a tool
	// whose schema cannot be compiled does not exist.
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("schema: compiler failed: %v", r)
		}
	}()
	document, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", asSchemaError(err))
	}
	object, ok := document.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("schema: the root must be an object, not %s", typeName(document))
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(resource, object); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	root, err := c.Compile(resource)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if root.Types != nil && !root.Types.IsEmpty() && !slices.Contains(root.Types.ToStrings(), "object") {
		return nil, fmt.Errorf("schema: the root has type %s; arguments are always an object", root.Types)
	}
	s = &Schema{root: root, options: o, declared: declaredBy(root)}
	if s.bound, err = newBound(root); err != nil {
		return nil, err
	}
	s.quick = newQuick(root)
	s.guard()
	return s, nil
}

// noLoader refuses every reference out of the schema: a server could otherwise make the gate read a file or reach
// a host of its choice.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %q: references to files and networks are not allowed", url)
}

// asSchemaError lets a complaint about a schema not read as one about arguments.
func asSchemaError(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		text := e.Problem
		if e.Field != "" {
			text = quoteName(e.Field) + " " + text
		}
		return errors.New(text)
	}
	return err
}

// Decode reads the arguments of one call. Every refusal is an [*Error].
func (s *Schema) Decode(raw []byte) (Value, error) {
	v, err := parse(raw)
	if err != nil {
		return Value{}, err
	}
	args, ok := v.(map[string]any)
	if !ok {
		return Value{}, &Error{Problem: "must be an object", Want: "object"}
	}
	if err := s.names(args); err != nil {
		return Value{}, err
	}
	if err := s.options.Params.canonicalize(args); err != nil {
		return Value{}, err
	}
	if err := s.texts(args); err != nil {
		return Value{}, err
	}
	if err := s.validate(args); err != nil {
		return Value{}, err
	}
	canonical, err := AppendCanonical(make([]byte, 0, len(raw)+16), args)
	if err != nil {
		return Value{}, &Error{Problem: "cannot be encoded"}
	}
	return Value{Canonical: canonical, Object: args}, nil
}

// names refuses parameters that the schema does not declare, and those that differ from a declared one in case
// only: readers in many languages ignore case and would take what the gate never looked at.
func (s *Schema) names(args map[string]any) error {
	var wrong []string
	for name := range args {
		if _, alias := s.options.Params.Aliases[name]; !alias && !s.declared.names[name] {
			wrong = append(wrong, name)
		}
	}
	slices.Sort(wrong)
	for _, name := range wrong {
		if other, ok := s.sameButCase(name); ok {
			return &Error{Field: name, Problem: fmt.Sprintf("differs from %q in case only", other)}
		}
		if !s.options.Foreign || !s.declared.admits(name) {
			return &Error{Field: name, Problem: "is not a parameter of this tool"}
		}
	}
	return nil
}

func (s *Schema) sameButCase(name string) (string, bool) {
	for declared := range s.declared.names {
		if strings.EqualFold(declared, name) {
			return declared, true
		}
	}
	for other := range s.options.Params.Aliases {
		if strings.EqualFold(other, name) {
			return other, true
		}
	}
	return "", false
}

// texts refuses NUL in names of things and blank required paths.
func (s *Schema) texts(args map[string]any) error {
	for _, name := range s.guarded {
		if v, ok := args[name]; ok && hasNUL(v) {
			return &Error{Field: name, Problem: "contains a NUL character"}
		}
	}
	for _, name := range s.required {
		if text, ok := args[name].(string); ok && strings.TrimSpace(text) == "" {
			return &Error{Field: name, Problem: "must not be blank", Want: "string"}
		}
	}
	return nil
}

func hasNUL(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.IndexByte(v, 0) >= 0
	case []any:
		return slices.ContainsFunc(v, hasNUL)
	case map[string]any:
		for name, e := range v {
			if strings.IndexByte(name, 0) >= 0 || hasNUL(e) {
				return true
			}
		}
	}
	return false
}

// guard finds the parameters that texts looks at.
func (s *Schema) guard() {
	kinds := maps.Clone(s.options.Params.Kinds)
	if s.options.Foreign {
		if kinds == nil {
			kinds = map[string]Kind{}
		}
		for name := range s.declared.names {
			if kind := usualKind(name); kind != Plain && kinds[name] == Plain {
				kinds[name] = kind
			}
		}
	}
	for name, kind := range kinds {
		if kind == Plain {
			continue
		}
		s.guarded = append(s.guarded, name)
		if kind == Path && slices.Contains(s.root.Required, name) {
			s.required = append(s.required, name)
		}
	}
	slices.Sort(s.guarded)
	slices.Sort(s.required)
}

// usualKind tells from a foreign tool's parameter name what it probably holds. A wrong guess only means that NUL
// and a blank path are refused where they would have been let through.
func usualKind(name string) Kind {
	switch strings.Map(lettersOnly, strings.ToLower(name)) {
	case "path", "paths", "file", "files", "filename", "filepath", "dir", "directory", "cwd", "workdir",
		"source", "destination", "src", "dst":
		return Path
	case "command", "cmd", "commands", "args", "argv":
		return Command
	case "url", "urls", "uri", "uris", "href", "endpoint", "host", "hostname":
		return URL
	case "to", "cc", "bcc", "recipient", "recipients", "channel", "email":
		return Recipient
	}
	return Plain
}

func lettersOnly(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "an array"
	}
	return "an object"
}
