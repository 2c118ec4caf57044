package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Prepare rewrites a tool's JSON Schema into the form that a model provider accepts, in canonical JSON. The result
// is for the model's eyes only: rewriting loosens, so arguments are always validated against the original, by the
// [Schema] that [Compile] made of it.
//
// Every provider gets an object at the root, without unions. Google's models also get a schema without the keywords
// they refuse; see [clean]. An absent schema is an object without properties.
//
// It fails for text that is not JSON as [Schema.Decode] wants it, and for a schema that grows out of bounds when its
// references are written out. A tool whose schema cannot be prepared must not be shown.
func Prepare(provider string, original json.RawMessage) (json.RawMessage, error) {
	return prepare(dialectOf(provider), original)
}

// dialect is what a provider understands of JSON Schema.
type dialect uint8

const (
	standard dialect = iota // whatever JSON Schema has, with an object at the root
	gemini                  // the subset of Google's models
)

// dialectOf tells the dialect by the provider's name. Anthropic's models take all of JSON Schema, also when Google
// serves them.
func dialectOf(provider string) dialect {
	name := strings.ToLower(provider)
	if (strings.Contains(name, "google") || strings.Contains(name, "gemini")) && !strings.Contains(name, "anthropic") {
		return gemini
	}
	return standard
}

func prepare(d dialect, original json.RawMessage) (json.RawMessage, error) {
	document := any(nil)
	if len(original) > 0 {
		var err error
		if document, err = parse(original); err != nil {
			return nil, fmt.Errorf("prepare schema: %w", asSchemaError(err))
		}
	}
	root := objectRoot(document)
	if d == gemini {
		var err error
		if root, err = clean(root); err != nil {
			return nil, fmt.Errorf("prepare schema: %w", err)
		}
	}
	out, err := Canonical(root)
	if err != nil {
		return nil, fmt.Errorf("prepare schema: %w", err)
	}
	if len(out) > MaxBytes {
		return nil, fmt.Errorf("prepare schema: the result is longer than %d bytes", MaxBytes)
	}
	return out, nil
}

// objectRoot gives the document an object at the root. The document itself stays as it is.
func objectRoot(document any) map[string]any {
	root, ok := document.(map[string]any)
	if !ok || !mayBeObject(root) {
		return map[string]any{"type": "object", "properties": map[string]any{}}
	}
	for _, union := range unionKeywords {
		if _, has := root[union]; has {
			return flatten(root)
		}
	}
	out := maps.Clone(root)
	if _, has := out["type"]; !has {
		out["type"] = "object"
	}
	if _, has := out["properties"]; !has && out["type"] == "object" {
		out["properties"] = map[string]any{}
	}
	return out
}

// mayBeObject reports whether the type of a schema, if it has one, includes objects.
func mayBeObject(s map[string]any) bool {
	switch t := s["type"].(type) {
	case nil:
		return true
	case []any:
		return slices.Contains(t, any("object"))
	default:
		return t == "object"
	}
}

// unionKeywords are what providers refuse at the root, in the order in which they are merged.
var unionKeywords = [...]string{"anyOf", "oneOf", "allOf"}

// flatten merges the variants at the root into one object: whatever one of them allows is allowed, only what all of
// them require is required. Nothing of it guards anything; it only tells the model what to write.
func flatten(root map[string]any) map[string]any {
	out := map[string]any{"type": "object", "additionalProperties": true}
	for _, keep := range [...]string{"title", "description", "additionalProperties", "$defs", "definitions"} {
		if v, has := root[keep]; has {
			out[keep] = v
		}
	}
	properties := map[string]any{}
	mergeProperties(properties, root)
	variants := map[string][]map[string]any{}
	for _, union := range unionKeywords {
		variants[union] = objectVariants(root, root[union])
		for _, variant := range variants[union] {
			mergeProperties(properties, variant)
		}
	}
	out["properties"] = properties

	required := namesIn(root["required"])
	for _, variant := range variants["allOf"] {
		required = append(required, namesIn(variant["required"])...)
	}
	required = append(required, requiredByAll(variants["anyOf"])...)
	required = append(required, requiredByAll(variants["oneOf"])...)
	if required = distinctNames(required); len(required) > 0 {
		out["required"] = required
	}
	return out
}

// objectVariants are the variants of a union that an object can match. A variant that refers to a definition stands
// for that definition; generators of schemas write unions of objects that way.
func objectVariants(root map[string]any, union any) []map[string]any {
	list, _ := union.([]any)
	variants := make([]map[string]any, 0, len(list))
	for _, v := range list {
		variant, ok := v.(map[string]any)
		for hops := 0; ok && hops < MaxDepth; hops++ {
			ref, isRef := variant["$ref"].(string)
			if !isRef {
				break
			}
			next, found := lookup(root, ref)
			if !found {
				break
			}
			variant, ok = next.(map[string]any)
		}
		if !ok {
			continue
		}
		if t, typed := variant["type"]; !typed || t == "object" {
			variants = append(variants, variant)
		}
	}
	return variants
}

func mergeProperties(into, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for name, incoming := range properties {
		if existing, twice := into[name]; twice {
			incoming = mergeProperty(existing, incoming)
		}
		into[name] = incoming
	}
}

// mergeProperty joins two schemas of one property. Values are united, so that the model sees every action that any
// variant knows; otherwise the first schema stays.
func mergeProperty(first, second any) any {
	a, b := values(first), values(second)
	if len(a)+len(b) == 0 {
		return first
	}
	all := distinct(append(slices.Clip(a), b...))
	merged := map[string]any{"enum": all}
	copyAbout(merged, second)
	copyAbout(merged, first) // first seen wins
	if t := commonType(all); t != "" {
		merged["type"] = t
	}
	return merged
}

// values are the literals that a schema names: its enum, its const, or those of the variants of its unions.
func values(schema any) []any {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if enum, ok := s["enum"].([]any); ok {
		return enum
	}
	if v, has := s["const"]; has {
		return []any{v}
	}
	var all []any
	for _, union := range [...]string{"anyOf", "oneOf"} {
		list, _ := s[union].([]any)
		for _, variant := range list {
			all = append(all, values(variant)...)
		}
	}
	return all
}

// commonType is string, number or boolean if all values are of that type, else "".
func commonType(all []any) string {
	common := ""
	for i, v := range all {
		t := ""
		switch v.(type) {
		case string:
			t = "string"
		case json.Number:
			t = "number"
		case bool:
			t = "boolean"
		}
		if t == "" || i > 0 && t != common {
			return ""
		}
		common = t
	}
	return common
}

// aboutKeywords tell the model about a value and restrict nothing.
var aboutKeywords = [...]string{"title", "description", "default"}

// copyAbout copies what schema says about itself over what is there.
func copyAbout(to map[string]any, schema any) {
	s, _ := schema.(map[string]any)
	for _, keyword := range aboutKeywords {
		if v, has := s[keyword]; has {
			to[keyword] = v
		}
	}
}

// requiredByAll are the names that every one of the variants requires, in the order of the first.
func requiredByAll(variants []map[string]any) []any {
	counts := map[any]int{}
	for _, variant := range variants {
		for _, name := range distinctNames(namesIn(variant["required"])) {
			counts[name]++
		}
	}
	if len(variants) == 0 {
		return nil
	}
	return slices.DeleteFunc(namesIn(variants[0]["required"]), func(name any) bool { return counts[name] < len(variants) })
}

// namesIn copies the strings of a list.
func namesIn(list any) []any {
	all, _ := list.([]any)
	names := make([]any, 0, len(all))
	for _, v := range all {
		if _, ok := v.(string); ok {
			names = append(names, v)
		}
	}
	return names
}

func distinctNames(names []any) []any {
	seen := make(map[any]bool, len(names))
	return slices.DeleteFunc(names, func(name any) bool {
		twice := seen[name]
		seen[name] = true
		return twice
	})
}

// distinct drops values that are equal as JSON to an earlier one.
func distinct(all []any) []any {
	seen := make(map[string]bool, len(all))
	out := make([]any, 0, len(all))
	for _, v := range all {
		key, err := Canonical(v)
		if err != nil || seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		out = append(out, v)
	}
	return out
}
