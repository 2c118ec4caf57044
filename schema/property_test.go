package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// anyJSON draws a JSON value as this package decodes it.
func anyJSON(depth int) *rapid.Generator[any] {
	number := rapid.Custom(func(t *rapid.T) any {
		if rapid.Bool().Draw(t, "whole") {
			return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})`).Draw(t, "n"))
		}
		if rapid.Bool().Draw(t, "small") {
			return json.Number(rapid.SampledFrom([]string{"-3", "-2", "-1", "0", "1", "2", "3", "0.5"}).Draw(t, "s"))
		}
		return json.Number(formatFloat(rapid.Float64().Draw(t, "f")))
	})
	text := rapid.Map(rapid.String(), func(s string) any { return s })
	simple := []*rapid.Generator[any]{rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any](false), text, number}
	if depth == 0 {
		return rapid.OneOf(simple...)
	}
	list := rapid.Map(rapid.SliceOfN(anyJSON(depth-1), 0, 4), func(l []any) any { return l })
	return rapid.OneOf(append(simple, list, rapid.Map(anyObject(depth-1), func(m map[string]any) any { return m }))...)
}

func anyObject(depth int) *rapid.Generator[map[string]any] {
	name := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "c", "path", "\uffff", "\U0001F600"}), rapid.String()).
		Filter(func(s string) bool { return s != "__proto__" })
	return rapid.MapOfN(name, anyJSON(depth), 0, 5)
}

func TestCanonicalFormIsAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := anyJSON(3).Draw(t, "value")
		loose, err := json.MarshalIndent(value, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		once, err := Canonicalize(loose)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := Canonicalize(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s became %s, %v", once, twice, err)
		}
		back, err := parse(once)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(value, back); diff != "" {
			t.Fatalf("the value changed (-before +after)\n%s", diff)
		}
	})
}

// TestQuickAgreesWithTheFullValidator: whatever the quick way accepts, the full validator accepts too.
func TestQuickAgreesWithTheFullValidator(t *testing.T) {
	accepted, valid := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		raw, err := Canonical(plainSchema(2).Draw(t, "schema"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := Compile(raw, Options{})
		if err != nil {
			t.Skip(err)
		}
		if s.quick == nil {
			t.Fatalf("%s is not recognised as plain", raw)
		}
		args := any(anyObject(2).Draw(t, "args"))
		err = s.root.Validate(args)
		if err == nil {
			valid++
		}
		if !s.quick.accepts(args) {
			return
		}
		accepted++
		if err != nil {
			t.Fatalf("schema %s, arguments %v: the quick way accepts what the validator refuses: %v", raw, args, err)
		}
	})
	if valid == 0 || accepted*2 < valid {
		t.Errorf("the quick way accepted %d of %d valid arguments", accepted, valid)
	}
}

// plainSchema draws a schema of the keywords that quick understands.
func plainSchema(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		s := map[string]any{}
		maybe := func(name string, v any) {
			if rapid.Bool().Draw(t, name) {
				s[name] = v
			}
		}
		types := []any{"object", "string", "integer", "number", "array", "boolean", "null"}
		if depth < 2 {
			maybe("type", rapid.SampledFrom(types).Draw(t, "type"))
			maybe("minLength", 1)
			maybe("maxLength", 3)
			maybe("pattern", "^[a-z]*$")
			maybe("minimum", rapid.IntRange(-3, 3).Draw(t, "min"))
			maybe("maximum", rapid.IntRange(-3, 3).Draw(t, "max"))
			maybe("exclusiveMinimum", rapid.IntRange(-3, 3).Draw(t, "exmin"))
			maybe("exclusiveMaximum", rapid.IntRange(-3, 3).Draw(t, "exmax"))
			maybe("minItems", 1)
			maybe("maxItems", 2)
			if rapid.IntRange(0, 4).Draw(t, "enum") == 0 {
				s["enum"] = []any{"a", 1, nil}
			}
		}
		if depth == 0 {
			return s
		}
		maybe("properties", map[string]any{"a": plainSchema(depth-1).Draw(t, "a"), "b": plainSchema(depth-1).Draw(t, "b")})
		maybe("required", []any{"a"})
		maybe("additionalProperties", rapid.OneOf(rapid.Just[any](true), rapid.Just[any](false), plainSchema(depth-1)).Draw(t, "more"))
		maybe("anyOf", []any{plainSchema(depth-1).Draw(t, "first"), plainSchema(depth-1).Draw(t, "second")})
		maybe("items", plainSchema(depth-1).Draw(t, "items"))
		return s
	})
}

// TestQuickKnowsEveryKeyword fails when the validator learns a keyword: plain must then learn it too, or quick
// would accept what the new keyword refuses.
func TestQuickKnowsEveryKeyword(t *testing.T) {
	var got []string
	for field := range reflect.TypeFor[jsonschema.Schema]().Fields() {
		if field.IsExported() {
			got = append(got, field.Name)
		}
	}
	want := []string{
		"DraftVersion", "Location", "Bool", "ID", "Ref", "Anchor", "RecursiveRef", "RecursiveAnchor", "DynamicRef",
		"DynamicAnchor", "Types", "Enum", "Const", "Not", "AllOf", "AnyOf", "OneOf", "If", "Then", "Else", "Format",
		"MaxProperties", "MinProperties", "Required", "PropertyNames", "Properties", "PatternProperties",
		"AdditionalProperties", "Dependencies", "DependentRequired", "DependentSchemas", "UnevaluatedProperties",
		"MinItems", "MaxItems", "UniqueItems", "Contains", "MinContains", "MaxContains", "Items", "AdditionalItems",
		"PrefixItems", "Items2020", "UnevaluatedItems", "MinLength", "MaxLength", "Pattern", "ContentEncoding",
		"ContentMediaType", "ContentSchema", "Maximum", "Minimum", "ExclusiveMaximum", "ExclusiveMinimum", "MultipleOf",
		"Extensions", "Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keywords (-known +now)\n%s", diff)
	}
}
