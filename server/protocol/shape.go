package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolward/toolward/schema"
	"github.com/toolward/toolward/server/door"
)

// shape is the form of parameters: what the schema checks, and how the documentation writes it.
type shape struct {
	json map[string]any
	text string
}

// field is one parameter.
type field struct {
	name     string
	of       shape
	required bool
}

func need(name string, of shape) field { return field{name, of, true} }
func may(name string, of shape) field  { return field{name, of, false} }

// object is a closed object: a field that is not listed is refused, so that a client that means something which this
// server does not know is told so, instead of being misunderstood.
func object(fields ...field) shape {
	properties, required, texts := map[string]any{}, []string{}, []string{}
	for _, f := range fields {
		properties[f.name] = f.of.json
		text := f.name
		if f.required {
			required = append(required, f.name)
		} else {
			text += "?"
		}
		if f.of.text != "" {
			text += " " + f.of.text
		}
		texts = append(texts, text)
	}
	json := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		json["required"] = required
	}
	return shape{json, "{" + strings.Join(texts, ", ") + "}"}
}

// text is a text of at most the given length; "0" is no limit.
func text(longest int) shape { return textOfLength(0, longest) }

// name is a text that is not empty.
func name(longest int) shape { return textOfLength(1, longest) }

func textOfLength(least, most int) shape {
	s := map[string]any{"type": "string"}
	if least > 0 {
		s["minLength"] = least
	}
	if most > 0 {
		s["maxLength"] = most
	}
	return shape{s, "s"}
}

func whole(least int) shape {
	return shape{map[string]any{"type": "integer", "minimum": least}, "i"}
}

func wholeUpTo(least, most int) shape {
	return shape{map[string]any{"type": "integer", "minimum": least, "maximum": most}, fmt.Sprintf("i ≤%d", most)}
}

func boolean() shape { return shape{map[string]any{"type": "boolean"}, "b"} }

func anything() shape { return shape{map[string]any{}, "any"} }

func list(of shape, most int) shape {
	return shape{map[string]any{"type": "array", "items": of.json, "maxItems": most}, of.text + "[]"}
}

func someOf(of shape, most int) shape {
	s := list(of, most)
	s.json["minItems"] = 1
	return s
}

func oneOf(words ...string) shape {
	return shape{map[string]any{"enum": words}, strings.Join(words, "\\|")}
}

// mapOf is an object with names that the client chooses.
func mapOf(of shape, most int) shape {
	return shape{map[string]any{
		"type": "object", "additionalProperties": of.json, "maxProperties": most, "propertyNames": map[string]any{"minLength": 1},
	}, "{" + of.text + "}"}
}

func anyObject() shape { return shape{map[string]any{"type": "object"}, "{}"} }

// orNull lets a client write null for a parameter that it leaves out.
func orNull(of shape) shape {
	return shape{map[string]any{"anyOf": []any{of.json, map[string]any{"type": "null"}}}, of.text}
}

func either(a, b shape) shape {
	return shape{map[string]any{"anyOf": []any{a.json, b.json}}, a.text + "\\|" + b.text}
}

// compile prepares the check. A table with a wrong shape must not start.
func (s shape) compile() (*schema.Schema, error) {
	raw, err := json.Marshal(s.json)
	if err != nil {
		return nil, err
	}
	return schema.Compile(raw, schema.Options{})
}

// readParams checks parameters against their shape and reads them.
func readParams(method string, check *schema.Schema, raw json.RawMessage, into any) *Error {
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	value, err := check.Decode(raw)
	if err != nil {
		return wrongParams(method, err)
	}
	if err := json.Unmarshal(value.Canonical, into); err != nil {
		return wrongParams(method, err)
	}
	return nil
}

func wrongParams(method string, err error) *Error {
	text := "they cannot be read"
	var wrong *schema.Error
	if errors.As(err, &wrong) {
		text = wrong.Problem
		if wrong.Field != "" {
			text = door.QuoteShort(wrong.Field) + " " + strings.TrimSuffix(text, " of this tool")
		}
		if wrong.Want != "" {
			text += " (expected " + wrong.Want + ")"
		}
	}
	return invalid("invalid %s params: %s", method, text)
}
