package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// errGrows is how a schema ends that is small as it stands and enormous when its references are written out.
var errGrows = errors.New("its references grow out of bounds when they are written out")

// refusedByGemini are keywords for which Google's API refuses a whole request, with every other tool in it. They are
// removed as keywords only; properties of these names stay.
var refusedByGemini = map[string]bool{
	"patternProperties": true, "additionalProperties": true, "$schema": true, "$id": true, "$ref": true, "$defs": true,
	"definitions": true, "examples": true, "minLength": true, "maxLength": true, "minimum": true, "maximum": true,
	"multipleOf": true, "pattern": true, "format": true, "minItems": true, "maxItems": true, "uniqueItems": true,
	"minProperties": true, "maxProperties": true,
}

// clean rewrites a schema for Google's models: refused keywords go, const becomes enum, null is no type of its own,
// local references are written out, and unions become one schema.
func clean(root map[string]any) (map[string]any, error) {
	c := cleaner{root: root, left: MaxBytes}
	out, err := c.schema(root, 0)
	if err != nil {
		return nil, err
	}
	object, ok := out.(map[string]any)
	if !ok {
		// The root refers to a definition that is no object.
		return objectRoot(nil), nil
	}
	return objectRoot(object), nil
}

// cleaner works through one document. A hundred definitions that each refer twice to the next one are a kilobyte
// that would be written out as 2^100 schemas; so what has been written is counted in bytes, and nesting too.
type cleaner struct {
	root  map[string]any
	scope []map[string]any // schemas around the present one that have definitions of their own
	path  []string         // references that are being written out
	left  int              // bytes that may still be written
}

func (c *cleaner) spend(bytes int) error {
	if c.left -= bytes; c.left < 0 {
		return errGrows
	}
	return nil
}

func (c *cleaner) schema(v any, depth int) (any, error) {
	node, ok := v.(map[string]any)
	if !ok {
		return v, c.spend(weight(v))
	}
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested deeper than %d when references are written out", MaxDepth)
	}
	if err := c.spend(2); err != nil {
		return nil, err
	}
	if definitionsOf(node) {
		c.scope = append(c.scope, node)
		defer func() { c.scope = c.scope[:len(c.scope)-1] }()
	}
	if ref, ok := node["$ref"].(string); ok {
		return c.reference(node, ref, depth)
	}
	if one, done, err := c.unions(node, depth); done || err != nil {
		return one, err
	}
	return c.keywords(node, depth)
}

// reference writes out what a schema refers to. What describes the place that refers stays; a reference out of the
// document leaves only that, and a cycle leaves nothing.
func (c *cleaner) reference(node map[string]any, ref string, depth int) (any, error) {
	if slices.Contains(c.path, ref) {
		return map[string]any{}, nil
	}
	out := map[string]any{}
	if target, found := c.find(ref); found {
		c.path = append(c.path, ref)
		cleaned, err := c.schema(target, depth+1)
		c.path = c.path[:len(c.path)-1]
		if err != nil {
			return nil, err
		}
		object, ok := cleaned.(map[string]any)
		if !ok {
			return cleaned, nil
		}
		out = object
	}
	return out, c.about(out, node)
}

func (c *cleaner) about(out, node map[string]any) error {
	copyAbout(out, node)
	for _, keyword := range aboutKeywords {
		if v, has := node[keyword]; has {
			if err := c.spend(len(keyword) + weight(v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unions turns anyOf and oneOf into one schema, because Google's API refuses them in many places; done is false if
// there is none.
func (c *cleaner) unions(node map[string]any, depth int) (out any, done bool, err error) {
	var first []any
	for _, union := range [...]string{"anyOf", "oneOf"} {
		list, ok := node[union].([]any)
		if !ok {
			continue
		}
		variants, err := c.variants(list, depth)
		if err != nil {
			return nil, false, err
		}
		if one, simple := c.simple(variants); simple {
			return one, true, c.about(one, node)
		}
		if !done {
			first, done = variants, true
		}
	}
	if !done {
		return nil, false, nil
	}
	one := map[string]any{}
	if t := typeOfUnion(first); t != nil {
		one["type"] = t
	}
	return one, true, c.about(one, node)
}

// variants cleans the variants of a union and drops those that are null.
func (c *cleaner) variants(list []any, depth int) ([]any, error) {
	out := make([]any, 0, len(list))
	for _, v := range list {
		if isNull(v) {
			continue
		}
		cleaned, err := c.schema(v, depth+1)
		if err != nil {
			return nil, err
		}
		if !isNull(cleaned) {
			out = append(out, cleaned)
		}
	}
	return out, nil
}

// isNull reports whether a schema accepts null and nothing else.
func isNull(v any) bool {
	s, ok := v.(map[string]any)
	if !ok {
		return false
	}
	if literal, has := s["const"]; has {
		return literal == nil
	}
	if enum, ok := s["enum"].([]any); ok && len(enum) == 1 {
		return enum[0] == nil
	}
	if types, ok := s["type"].([]any); ok {
		return len(types) == 1 && types[0] == "null"
	}
	return s["type"] == "null"
}

// simple answers for a union that one schema can say: literals of one type, or a single variant.
func (c *cleaner) simple(variants []any) (map[string]any, bool) {
	if t, literals := literalsOf(variants); len(literals) > 0 {
		return map[string]any{"type": t, "enum": literals}, true
	}
	if len(variants) != 1 {
		return nil, false
	}
	only, ok := variants[0].(map[string]any)
	return only, ok
}

// literalsOf returns the values of a union whose variants are all single literals of one type.
func literalsOf(variants []any) (typ string, literals []any) {
	for i, v := range variants {
		s, _ := v.(map[string]any)
		enum, _ := s["enum"].([]any) // const has become enum already
		if len(enum) != 1 {
			return "", nil
		}
		t, declared := s["type"].(string)
		if !declared {
			t = commonType(enum)
		}
		if t == "" || i > 0 && t != typ {
			return "", nil
		}
		typ = t
		literals = append(literals, enum[0])
	}
	return typ, distinct(literals)
}

// typeOfUnion is the type that all typed variants share, else that of the first variant; nil if it has none.
func typeOfUnion(variants []any) any {
	var types []any
	for _, v := range variants {
		if s, ok := v.(map[string]any); ok {
			if t, ok := s["type"].(string); ok && !slices.Contains(types, any(t)) {
				types = append(types, t)
			}
		}
	}
	if len(types) == 1 {
		return types[0]
	}
	if len(variants) == 0 {
		return nil
	}
	first, _ := variants[0].(map[string]any)
	return first["type"]
}

// keywords cleans a schema that is neither a reference nor a union.
func (c *cleaner) keywords(node map[string]any, depth int) (any, error) {
	out := make(map[string]any, len(node))
	for keyword, v := range node {
		if err := c.spend(len(keyword) + 4); err != nil {
			return nil, err
		}
		if refusedByGemini[keyword] {
			continue
		}
		var err error
		switch keyword {
		case "const":
			out["enum"] = []any{v}
			err = c.spend(weight(v))
		case "enum":
			if _, both := node["const"]; !both {
				out["enum"] = v
			}
			err = c.spend(weight(v))
		case "type":
			if t := withoutNull(v); t != nil {
				out["type"] = t
			}
			err = c.spend(weight(v))
		case "properties":
			out[keyword], err = c.properties(v, depth+1)
		case "items", "allOf", "anyOf", "oneOf":
			out[keyword], err = c.oneOrMany(v, depth+1)
		default:
			out[keyword] = v
			err = c.spend(weight(v))
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *cleaner) properties(v any, depth int) (any, error) {
	properties, ok := v.(map[string]any)
	if !ok {
		return v, c.spend(weight(v))
	}
	out := make(map[string]any, len(properties))
	for name, property := range properties {
		if err := c.spend(len(name) + 4); err != nil {
			return nil, err
		}
		cleaned, err := c.schema(property, depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = cleaned
	}
	return out, nil
}

func (c *cleaner) oneOrMany(v any, depth int) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return c.schema(v, depth)
	}
	out := make([]any, len(list))
	for i, s := range list {
		cleaned, err := c.schema(s, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = cleaned
	}
	return out, nil
}

// withoutNull drops null from a list of types; a single type left is written as such, none left is nil.
func withoutNull(t any) any {
	types, ok := t.([]any)
	if !ok {
		return t
	}
	left := make([]any, 0, len(types))
	for _, name := range types {
		if name != "null" {
			left = append(left, name)
		}
	}
	switch len(left) {
	case 0:
		return nil
	case 1:
		return left[0]
	}
	return left
}

// find looks a reference up in the document, then in the schemas around the present one, the nearest first.
func (c *cleaner) find(ref string) (any, bool) {
	if v, found := lookup(c.root, ref); found {
		return v, true
	}
	for _, around := range slices.Backward(c.scope) {
		if v, found := lookup(around, ref); found {
			return v, true
		}
	}
	return nil, false
}

func definitionsOf(node map[string]any) bool {
	_, defs := node["$defs"]
	_, definitions := node["definitions"]
	return defs || definitions
}

// pointerEscapes are the escapes of a JSON pointer.
var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// lookup resolves "#/$defs/x" and "#/definitions/x", and what lies below, within schema. Nothing else is followed:
// no file and no network is ever read for a schema.
func lookup(schema map[string]any, ref string) (any, bool) {
	pointer, local := strings.CutPrefix(ref, "#/")
	if !local {
		return nil, false
	}
	segments := strings.Split(pointer, "/")
	if len(segments) < 2 || segments[0] != "$defs" && segments[0] != "definitions" {
		return nil, false
	}
	at := any(schema)
	for _, segment := range segments {
		object, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		next, found := object[pointerEscapes.Replace(segment)]
		if !found {
			plain, err := url.PathUnescape(segment)
			if err != nil {
				return nil, false
			}
			if next, found = object[pointerEscapes.Replace(plain)]; !found {
				return nil, false
			}
		}
		at = next
	}
	return at, true
}

// weight is about how many bytes a value takes in JSON. It counts at most what was in the document.
func weight(v any) int {
	switch v := v.(type) {
	case string:
		return len(v) + 2
	case json.Number:
		return len(v)
	case []any:
		n := 2
		for _, e := range v {
			n += 1 + weight(e)
		}
		return n
	case map[string]any:
		n := 2
		for name, e := range v {
			n += len(name) + 4 + weight(e)
		}
		return n
	}
	return 5
}
