package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolward/toolward/internal/gatetest"
)

func TestSchemaVectors(t *testing.T) {
	gatetest.Run(t, "policy.json", "schema", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Provider string
			Schema   json.RawMessage
		}
		gatetest.Decode(t, input, &in)
		out, err := Prepare(in.Provider, in.Schema)
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return map[string]any{"schema": out}
	})
}

func TestPrepare(t *testing.T) {
	const empty = `{"properties":{},"type":"object"}`
	for _, c := range []struct{ name, provider, schema, want string }{
		{"absent", "openai", ``, empty},
		{"null", "openai", `null`, empty},
		{"list", "openai", `[]`, empty},
		{"true", "google", `true`, empty},
		{"empty", "openai", `{}`, empty},
		{"another type", "openai", `{"type":"string","minLength":1}`, empty},
		{"object or null", "openai", `{"type":["object","null"]}`, `{"type":["object","null"]}`},
		{"union beside an excluding type", "openai", `{"type":"array","anyOf":[{"properties":{"a":{}}}]}`, empty},
		{
			"all three unions", "openai", `{"required":["r"],"properties":{"r":{}},
			"anyOf":[{"properties":{"a":{}},"required":["a","x"]},{"properties":{"x":{}},"required":["x"]}],
			"oneOf":[{"properties":{"o":{}},"required":["o","x"]}],
			"allOf":[{"properties":{"l":{}},"required":["l","r"]},{"type":"string","required":["never"]}]}`,
			`{"additionalProperties":true,"properties":{"a":{},"l":{},"o":{},"r":{},"x":{}},"required":["r","l","x","o"],"type":"object"}`,
		},
		{
			"definitions and closedness stay", "openai", `{"title":"T","$schema":"s","additionalProperties":false,"definitions":{"D":{}},"$defs":{"E":{}},
			"oneOf":[{"properties":{"a":{"$ref":"#/$defs/E"}}}]}`,
			`{"$defs":{"E":{}},"additionalProperties":false,"definitions":{"D":{}},"properties":{"a":{"$ref":"#/$defs/E"}},"title":"T","type":"object"}`,
		},
		{
			"variants by reference", "openai", `{"$defs":{"A":{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},
			"B":{"$ref":"#/$defs/C"},"C":{"properties":{"k":{"const":"b"}},"required":["k"]},"L":{"$ref":"#/$defs/L"}},
			"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]}`,
			`{"$defs":{"A":{"properties":{"k":{"const":"a"}},"required":["k"],"type":"object"},"B":{"$ref":"#/$defs/C"},` +
				`"C":{"properties":{"k":{"const":"b"}},"required":["k"]},"L":{"$ref":"#/$defs/L"}},"additionalProperties":true,` +
				`"properties":{"k":{"enum":["a","b"],"type":"string"}},"required":["k"],"type":"object"}`,
		},
		{
			"values of three kinds", "openai", `{"anyOf":[{"properties":{"v":{"enum":["a","b"],"title":"first"}}},
			{"properties":{"v":{"anyOf":[{"const":"b"},{"oneOf":[{"const":"c"}]}],"title":"second","description":"d","default":"c"}}}]}`,
			`{"additionalProperties":true,"properties":{"v":{"default":"c","description":"d","enum":["a","b","c"],"title":"first","type":"string"}},"type":"object"}`,
		},
		{
			"values of mixed types have none", "openai", `{"anyOf":[{"properties":{"v":{"const":1}}},{"properties":{"v":{"const":"1"}}}]}`,
			`{"additionalProperties":true,"properties":{"v":{"enum":[1,"1"]}},"type":"object"}`,
		},
		{
			"numbers", "openai", `{"anyOf":[{"properties":{"v":{"const":1}}},{"properties":{"v":{"enum":[2,1]}}}]}`,
			`{"additionalProperties":true,"properties":{"v":{"enum":[1,2],"type":"number"}},"type":"object"}`,
		},
		{
			"without values the first stays", "openai", `{"anyOf":[{"properties":{"v":{"type":"string"}}},{"properties":{"v":{"type":"number"}}}]}`,
			`{"additionalProperties":true,"properties":{"v":{"type":"string"}},"type":"object"}`,
		},
		{
			"Anthropic on Google keeps keywords", "google-vertex-Anthropic", `{"properties":{"a":{"minLength":1}}}`,
			`{"properties":{"a":{"minLength":1}},"type":"object"}`,
		},
		{"Gemini in capitals", "GEMINI-CLI", `{"properties":{"a":{"minLength":1}}}`, `{"properties":{"a":{}},"type":"object"}`},
		{
			"names are no keywords", "google", `{"properties":{"pattern":{"type":"string"},"$ref":{"type":"string"},"format":{"pattern":"x"}}}`,
			`{"properties":{"$ref":{"type":"string"},"format":{},"pattern":{"type":"string"}},"type":"object"}`,
		},
		{
			"several types", "google", `{"properties":{"a":{"type":["string","number","null"]},"b":{"type":["null"]}}}`,
			`{"properties":{"a":{"type":["string","number"]},"b":{}},"type":"object"}`,
		},
		{
			"lists of schemas", "google", `{"properties":{"a":{"items":[{"const":1},{"minimum":1}]},"b":{"allOf":[{"minimum":1,"type":"number"}]}}}`,
			`{"properties":{"a":{"items":[{"enum":[1]},{}]},"b":{"allOf":[{"type":"number"}]}},"type":"object"}`,
		},
		{
			"escaped names of definitions", "google", `{"$defs":{"a/b":{"type":"string"},"c~d":{"type":"number"}},
			"properties":{"a":{"$ref":"#/$defs/a~1b"},"b":{"$ref":"#/$defs/c~0d"},"c":{"$ref":"#/$defs/none","default":1}}}`,
			`{"properties":{"a":{"type":"string"},"b":{"type":"number"},"c":{"default":1}},"type":"object"}`,
		},
		{
			"literals of two types", "google", `{"properties":{"a":{"oneOf":[{"const":"x","type":"string"},{"const":1,"type":"number"}],"title":"t"}}}`,
			`{"properties":{"a":{"title":"t","type":"string"}},"type":"object"}`,
		},
		{
			"one left keeps its keywords", "google", `{"properties":{"a":{"anyOf":[{"type":"object","properties":{"x":{"type":"string"}},"title":"in"},{"const":null}],"title":"out"}}}`,
			`{"properties":{"a":{"properties":{"x":{"type":"string"}},"title":"out","type":"object"}},"type":"object"}`,
		},
		{
			"root by reference", "google", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"x":{"type":"string","format":"uri"}}}}}`,
			`{"properties":{"x":{"type":"string"}},"type":"object"}`,
		},
		{
			"mutual cycle", "google", `{"$defs":{"A":{"properties":{"b":{"$ref":"#/$defs/B"}}},"B":{"properties":{"a":{"$ref":"#/$defs/A"}}}},"properties":{"a":{"$ref":"#/$defs/A"}}}`,
			`{"properties":{"a":{"properties":{"b":{"properties":{"a":{}}}}}},"type":"object"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := Prepare(c.provider, json.RawMessage(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(out)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrepareRefusesHostileSchemas(t *testing.T) {
	bomb := strings.Builder{}
	chain := strings.Builder{}
	for i := range 100 {
		fmt.Fprintf(&bomb, `"D%d":{"type":"object","properties":{"l":{"$ref":"#/$defs/D%d"},"r":{"$ref":"#/$defs/D%d"}}},`, i, i+1, i+1)
		fmt.Fprintf(&chain, `"D%d":{"items":{"$ref":"#/$defs/D%d"}},`, i, i+1)
	}
	long := strings.Repeat("x", 100_000)
	for name, schema := range map[string]string{
		"no JSON":          `{`,
		"a key twice":      `{"type":"object","type":"string"}`,
		"nested too deep":  strings.Repeat(`{"items":`, 70) + `{}` + strings.Repeat(`}`, 70),
		"too long":         `{"description":"` + strings.Repeat("x", MaxBytes) + `"}`,
		"doubling":         `{"$defs":{` + bomb.String() + `"D100":{}},"properties":{"a":{"$ref":"#/$defs/D0"}}}`,
		"deepening":        `{"$defs":{` + chain.String() + `"D100":{}},"properties":{"a":{"$ref":"#/$defs/D0"}}}`,
		"a text, repeated": `{"$defs":{"L":{"description":"` + long + `"}},"properties":{"a":{"items":[` + strings.Repeat(`{"$ref":"#/$defs/L"},`, 50) + `{}]}}}`,
		"doubling unions": `{"$defs":{` + strings.NewReplacer(`"properties"`, `"anyOf"`, `{"l":`, `[`, `,"r":`, `,`, `}}},`, `}]},`).Replace(bomb.String()) +
			`"D100":{}},"properties":{"a":{"$ref":"#/$defs/D0"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := Prepare("google", json.RawMessage(schema)); err == nil {
				t.Errorf("prepared as %.200s", out)
			} else {
				t.Log(err)
			}
		})
	}
}

// TestPrepareProperties: the result is stable, deterministic, and an object at the root without unions; what Gemini
// gets has none of the refused keywords anywhere that is a schema.
func TestPrepareProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, err := Canonical(unionSchema(3).Draw(t, "schema"))
		if err != nil {
			t.Fatal(err)
		}
		for _, provider := range []string{"openai", "google"} {
			once, err := Prepare(provider, raw)
			if err != nil {
				continue
			}
			twice, err := Prepare(provider, once)
			if err != nil || string(once) != string(twice) {
				t.Fatalf("%s: %s became %s, then %s, %v", provider, raw, once, twice, err)
			}
			document, err := parse(once)
			if err != nil {
				t.Fatal(err)
			}
			root := document.(map[string]any)
			for _, union := range unionKeywords {
				if _, has := root[union]; has || root["type"] != "object" {
					t.Fatalf("%s: the root is %s", provider, once)
				}
			}
			if provider == "google" {
				noRefusedKeywords(t, document)
			}
		}
	})
}

func noRefusedKeywords(t *rapid.T, v any) {
	node, ok := v.(map[string]any)
	if !ok {
		return
	}
	for keyword := range node {
		if refusedByGemini[keyword] || keyword == "anyOf" || keyword == "oneOf" || keyword == "const" {
			t.Fatalf("%v has %s", node, keyword)
		}
	}
	properties, _ := node["properties"].(map[string]any)
	for _, property := range properties {
		noRefusedKeywords(t, property)
	}
	noRefusedKeywords(t, node["items"])
	all, _ := node["allOf"].([]any)
	for _, each := range all {
		noRefusedKeywords(t, each)
	}
}

// unionSchema draws schemas of the keywords that preparation knows, references that lead in circles among them.
func unionSchema(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		s := map[string]any{"$defs": map[string]any{}}
		for _, name := range []string{"A", "B"} {
			s["$defs"].(map[string]any)[name] = schemaNode(depth-1).Draw(t, name)
		}
		for keyword, v := range schemaNode(depth).Draw(t, "root") {
			s[keyword] = v
		}
		if t, typed := s["type"]; typed && t != "object" {
			delete(s, "type")
		}
		delete(s, "$ref")
		return s
	})
}

func schemaNode(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		s := map[string]any{}
		if rapid.Bool().Draw(t, "typed") {
			s["type"] = rapid.SampledFrom([]any{"object", "string", "number", "null", []any{"string", "null"}}).Draw(t, "type")
		}
		for _, keyword := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"const", "minLength", "title", "$id", "required"}), 0, 3, rapid.ID[string]).Draw(t, "simple") {
			s[keyword] = map[string]any{"const": "c", "minLength": 1, "title": "t", "$id": "i", "required": []any{"a"}}[keyword]
		}
		if depth <= 0 {
			return s
		}
		if rapid.IntRange(0, 3).Draw(t, "ref") == 0 {
			s["$ref"] = rapid.SampledFrom([]string{"#/$defs/A", "#/$defs/B", "#/$defs/C", "x.json"}).Draw(t, "to")
		}
		for _, union := range rapid.SliceOfNDistinct(rapid.SampledFrom(unionKeywords[:]), 0, 2, rapid.ID[string]).Draw(t, "unions") {
			list := []any{}
			for _, v := range rapid.SliceOfN(schemaNode(depth-1), 0, 3).Draw(t, union) {
				list = append(list, v)
			}
			s[union] = list
		}
		if rapid.Bool().Draw(t, "has properties") {
			properties := map[string]any{}
			for name, v := range rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "pattern"}), schemaNode(depth-1), 0, 3).Draw(t, "properties") {
				properties[name] = v
			}
			s["properties"] = properties
		}
		return s
	})
}

func TestCache(t *testing.T) {
	var c Cache
	raw := json.RawMessage(`{"properties":{"a":{"minLength":1}}}`)
	first, err := c.Prepare("google", raw)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Prepare("gemini", raw)
	if err != nil || &first[0] != &again[0] {
		t.Errorf("made anew: %v", err)
	}
	other, err := c.Prepare("openai", raw)
	if err != nil || string(other) == string(first) {
		t.Errorf("openai got %s, %v", other, err)
	}
	if _, err := c.Prepare("openai", json.RawMessage(`{`)); err == nil {
		t.Error("no error")
	}
	if _, err := c.Prepare("openai", json.RawMessage(`{`)); err == nil {
		t.Error("no error from memory")
	}
	for i := range maxCached + 10 {
		if _, err := c.Prepare("openai", json.RawMessage(fmt.Sprintf(`{"title":"%d"}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.made) != maxCached || len(c.order) != maxCached {
		t.Errorf("%d kept", len(c.made))
	}
	huge := strings.Repeat("x", MaxBytes/2)
	for i := range 100 {
		if _, err := c.Prepare("openai", json.RawMessage(fmt.Sprintf(`{"title":"%d%s"}`, i, huge))); err != nil {
			t.Fatal(err)
		}
	}
	if c.bytes > maxCachedBytes {
		t.Errorf("%d bytes kept", c.bytes)
	}
}

func BenchmarkPrepareCached(b *testing.B) {
	var c Cache
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Prepare("google", json.RawMessage(benchSchema)); err != nil {
			b.Fatal(err)
		}
	}
}
