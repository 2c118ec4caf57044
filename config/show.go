package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Leaf is one setting in force and where it comes from.
type Leaf struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source"` // file or default
}

// Show lists every setting in force, by key, with its source.
func (l *Loaded) Show() ([]Leaf, error) {
	effective, err := leavesOf(l.File)
	if err != nil {
		return nil, err
	}
	given, err := leavesOf(l.given)
	if err != nil {
		return nil, err
	}
	leaves := make([]Leaf, 0, len(effective))
	for _, key := range slices.Sorted(maps.Keys(effective)) {
		source := "default"
		if _, ok := given[key]; ok {
			source = "file"
		}
		leaves = append(leaves, Leaf{key, effective[key], source})
	}
	return leaves, nil
}

func leavesOf(f File) (map[string]any, error) {
	raw, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("show configuration: %w", err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("show configuration: %w", err)
	}
	leaves := map[string]any{}
	flatten(tree, "", leaves)
	return leaves, nil
}

func flatten(v any, key string, into map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		for name, elem := range v {
			flatten(elem, JoinKey(key, name), into)
		}
	case []any:
		if len(v) > 0 {
			if _, ok := v[0].(map[string]any); ok {
				for i, elem := range v {
					flatten(elem, fmt.Sprintf("%s[%d]", key, i), into)
				}
				return
			}
		}
		into[key] = v
	default:
		into[key] = v
	}
}

// Schema is the JSON Schema of the configuration file, for editors.
func Schema() ([]byte, error) {
	schema, err := jsonschema.For[File](nil)
	if err != nil {
		return nil, fmt.Errorf("configuration schema: %w", err)
	}
	schema.Schema = "https://json-schema.org/draft/2020-12/schema"
	schema.Title = "Toolward configuration (toolward.jsonc)"
	optional(schema)
	describe(schema)
	return json.MarshalIndent(schema, "", "  ")
}

// optional drops every "required": all keys have defaults, or are checked with a better message.
func optional(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.Required = nil
	for _, p := range s.Properties {
		optional(p)
	}
	optional(s.Items)
	optional(s.AdditionalProperties)
}

// Get returns what stands at key in source, as JSON; nil if nothing does.
func Get(source []byte, key string) (json.RawMessage, error) {
	document, err := ParseText(bytes.TrimSpace(source))
	if len(bytes.TrimSpace(source)) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look into configuration: %w", err)
	}
	at := &document
	for _, part := range SplitKey(key) {
		if at = member(at, part); at == nil {
			return nil, nil
		}
	}
	value := at.Clone()
	value.Standardize()
	return value.Pack(), nil
}

// Set returns source with the setting at key changed to value. Comments, order and formatting of the rest stay;
// missing parents are made. Lists are addressed by number.
func Set(source []byte, key string, value any) ([]byte, error) {
	if len(strings.TrimSpace(string(source))) == 0 {
		source = []byte("{}\n")
	}
	document, err := ParseText(bytes.TrimSuffix(source, []byte("\n")))
	if err != nil {
		return nil, fmt.Errorf("edit configuration: %w", err)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("edit configuration: %s: %w", key, err)
	}
	parts := SplitKey(key)
	var patch []map[string]any
	pointer := ""
	at := &document
	for i, part := range parts {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
		if at != nil {
			at = member(at, part)
		}
		switch {
		case i == len(parts)-1:
			patch = append(patch, map[string]any{"op": "add", "path": pointer, "value": json.RawMessage(encoded)})
		case at == nil:
			patch = append(patch, map[string]any{"op": "add", "path": pointer, "value": struct{}{}})
		}
	}
	operations, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("edit configuration: %s: %w", key, err)
	}
	if err := document.Patch(operations); err != nil {
		return nil, fmt.Errorf("edit configuration: %s: %w", key, err)
	}
	document.Format()
	return document.Pack(), nil
}
