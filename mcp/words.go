package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/schema"
)

// words makes the texts of a foreign server's definition safe to show to a model and to people: the one would obey
// what the other does not see. It collects what is odd about them.
type words struct{ odd []string }

// show makes one text visible and bounds it.
func (w *words) show(what, text string) string {
	shown := display.Show(text, display.Options{Lines: true, Limit: maxDescription})
	switch out := shown.String(); {
	case shown.Cut > 0:
		w.note(fmt.Sprintf("%s is %d characters too long and is not shown whole", what, shown.Cut))
		return out
	case out != text:
		w.note(what + " has characters that hide, move or push away text; they are shown as ⟦…⟧")
		return out
	}
	return text
}

// note keeps a remark, a few of them: one is enough to look closer.
func (w *words) note(remark string) {
	const most = 16
	if len(w.odd) < most {
		w.odd = append(w.odd, remark)
	}
}

// schema makes the texts inside a schema visible and leaves everything else as it is. It refuses names of parameters
// that people cannot read, and more of them than anybody can.
func (w *words) schema(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, errors.New("the tool has no inputSchema")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("inputSchema: %w", err)
	}
	if root, ok := document.(map[string]any); ok && root["type"] != nil && root["type"] != "object" {
		return nil, errors.New(`inputSchema: the type at its root is not "object", as MCP wants it`)
	}
	changed, err := w.walk(document)
	if err != nil {
		return nil, fmt.Errorf("inputSchema: %w", err)
	}
	if !changed {
		return raw, nil
	}
	return schema.Canonical(document)
}

// walk goes through a schema. What stands under const, enum, default and examples is data and is left alone.
func (w *words) walk(node any) (changed bool, err error) {
	each := func(v any) {
		if err == nil {
			var c bool
			c, err = w.walk(v)
			changed = changed || c
		}
	}
	switch node := node.(type) {
	case []any:
		for _, v := range node {
			each(v)
		}
	case map[string]any:
		for key, v := range node {
			switch key {
			case "title", "description", "$comment":
				if text, ok := v.(string); ok {
					node[key] = w.show("the "+key+" of a parameter", text)
					changed = changed || node[key] != text
				}
			case "const", "enum", "default", "examples":
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
				named, ok := v.(map[string]any)
				if !ok {
					continue // the compiler refuses it
				}
				if err = checkParameters(named); err != nil {
					return changed, err
				}
				for _, sub := range named {
					each(sub)
				}
			default:
				each(v)
			}
		}
	}
	return changed, err
}

func checkParameters(named map[string]any) error {
	if len(named) > maxParameters {
		return fmt.Errorf("%d parameters in one object, at most %d are taken", len(named), maxParameters)
	}
	for name := range named {
		if display.HasInvisible(name) {
			return fmt.Errorf("the name %+q has characters that cannot be seen", short(name))
		}
	}
	return nil
}
