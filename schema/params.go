package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Kind says what a parameter names, as far as that changes how its text is checked.
type Kind uint8

// The kinds of parameters. NUL is refused in all but plain ones: the operating system ends a name there, so the
// checked name and the used name would differ.
const (
	Plain Kind = iota
	Path
	Command
	URL
	Recipient
)

// Params declares how a tool's parameters are brought to one spelling, and which of them need care. It is applied
// before anything else looks at a call, because a checker and a tool that read two spellings of one parameter
// could look at two different paths.
type Params struct {
	Aliases    map[string]string // other spelling → canonical name; both with different values is refused
	Text       []string          // canonical names whose value may come as a list of text blocks and is joined
	Required   []string          // canonical names that must be there as texts that are not blank
	MayBeEmpty []string          // those of Required that may be empty or blank
	Kinds      map[string]Kind   // canonical names of paths, commands, URLs and recipients, at the top level
}

// FileParams declares the parameters of the file tools "read", "write" and "edit"; false for every other tool.
func FileParams(tool string) (Params, bool) {
	p := Params{
		Aliases:  map[string]string{"file_path": "path"},
		Required: []string{"path"},
		Kinds:    map[string]Kind{"path": Path},
	}
	switch tool {
	case "read":
	case "write":
		p.Text = []string{"content"}
		p.Required = append(p.Required, "content")
		p.MayBeEmpty = []string{"content"}
	case "edit":
		p.Aliases["old_string"] = "oldText"
		p.Aliases["new_string"] = "newText"
		p.Text = []string{"oldText", "newText"}
		p.Required = append(p.Required, "oldText", "newText")
		p.MayBeEmpty = []string{"newText"}
	default:
		return Params{}, false
	}
	return p, true
}

// canonicalize rewrites the arguments in place.
func (p *Params) canonicalize(args map[string]any) error {
	for other, name := range p.Aliases {
		v, ok := args[other]
		if !ok {
			continue
		}
		if err := p.merge(args, name, v); err != nil {
			return err
		}
		delete(args, other)
	}
	for _, name := range p.Text {
		v, ok := args[name]
		if !ok {
			continue
		}
		text, err := joinText(name, v)
		if err != nil {
			return err
		}
		args[name] = text
	}
	return p.required(args)
}

// merge moves the value of another spelling to its canonical name.
func (p *Params) merge(args map[string]any, name string, v any) error {
	old, both := args[name]
	if !both {
		args[name] = v
		return nil
	}
	if slices.Contains(p.Text, name) {
		var err error
		if v, err = joinText(name, v); err != nil {
			return err
		}
		if old, err = joinText(name, old); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(old, v) {
		return &Error{Field: name, Problem: "is given in two spellings with different values"}
	}
	return nil
}

func (p *Params) required(args map[string]any) error {
	for _, name := range p.Required {
		v, ok := args[name]
		if !ok {
			return &Error{Field: name, Problem: "is missing", Want: "string"}
		}
		text, ok := v.(string)
		if !ok {
			return &Error{Field: name, Problem: "has the wrong type", Want: "string"}
		}
		if strings.TrimSpace(text) == "" && !slices.Contains(p.MayBeEmpty, name) {
			return &Error{Field: name, Problem: "must not be blank", Want: "string"}
		}
	}
	return nil
}

// maxBlockDepth is how deep blocks of text may be nested.
const maxBlockDepth = 6

// joinText gives the text of a string, a block or a list of blocks. A block is a string, or an object with its
// text under "text", "content", "parts" or, if its type or kind says text, "value". A block without text is
// refused: dropping it silently would write something else than what was sent. Values that are no blocks at all
// are returned as they are; the schema refuses them with the right words.
func joinText(name string, v any) (any, error) {
	switch v.(type) {
	case []any, map[string]any:
		b, ok := appendBlocks(nil, v, 0)
		if !ok {
			return nil, &Error{Field: name, Problem: "has a block without text", Want: "string"}
		}
		return string(b), nil
	}
	return v, nil
}

func appendBlocks(b []byte, v any, depth int) ([]byte, bool) {
	if depth > maxBlockDepth {
		return nil, false
	}
	switch v := v.(type) {
	case string:
		return append(b, v...), true
	case []any:
		if len(v) == 0 {
			return nil, false
		}
		for _, e := range v {
			var ok bool
			if b, ok = appendBlocks(b, e, depth+1); !ok {
				return nil, false
			}
		}
		return b, true
	case map[string]any:
		text, ok := blockText(v)
		if !ok {
			return nil, false
		}
		return appendBlocks(b, text, depth)
	}
	return nil, false
}

// blockText finds what holds the text of one block.
func blockText(block map[string]any) (any, bool) {
	if text, ok := block["text"].(string); ok {
		return text, true
	}
	switch content := block["content"].(type) {
	case string, []any:
		return content, true
	}
	if parts, ok := block["parts"].([]any); ok {
		return parts, true
	}
	text, ok := block["value"].(string)
	typ, _ := block["type"].(string)
	kind, _ := block["kind"].(string)
	return text, ok && (strings.Contains(strings.ToLower(typ), "text") || strings.EqualFold(kind, "text"))
}

// Shown returns the schema as a model may see it: every other spelling stands beside its canonical name, and
// neither is required, because the schema cannot say "one of the two". Validation never uses it.
func (p *Params) Shown(original json.RawMessage) (json.RawMessage, error) {
	if len(p.Aliases) == 0 {
		return original, nil
	}
	v, err := parse(original)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	root, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("schema: the root is not an object")
	}
	properties, ok := root["properties"].(map[string]any)
	if !ok {
		return original, nil
	}
	for other, name := range p.Aliases {
		if declared, ok := properties[name]; ok {
			properties[other] = declared
		}
	}
	if required, ok := root["required"].([]any); ok {
		required = slices.DeleteFunc(required, func(v any) bool {
			name, _ := v.(string)
			return p.hasAlias(name)
		})
		root["required"] = required
		if len(required) == 0 {
			delete(root, "required")
		}
	}
	return Canonical(root)
}

func (p *Params) hasAlias(name string) bool {
	for _, canonical := range p.Aliases {
		if canonical == name {
			return true
		}
	}
	return false
}
