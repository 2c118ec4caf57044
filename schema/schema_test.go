package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustCompile(t testing.TB, schema string, o Options) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(schema), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const sample = `{"type":"object","properties":{
	"path":{"type":"string"},"count":{"type":"integer","minimum":1},"mode":{"enum":["a","b"]},
	"tags":{"type":"array","items":{"type":"string"}},"opts":{"type":"object","properties":{"deep":{"type":"boolean"}}}},
	"required":["path"],"additionalProperties":false}`

func sampleOptions() Options {
	return Options{Params: Params{Kinds: map[string]Kind{"path": Path, "tags": Recipient}}}
}

func TestDecodeGivesOneCanonicalForm(t *testing.T) {
	s := mustCompile(t, `{"type":"object","additionalProperties":true}`, Options{Foreign: true})
	for _, c := range []struct{ name, in, want string }{
		{"white space and order", " {\"b\" : 1 ,\n\"a\":[ true , null ]}\t", `{"a":[true,null],"b":1}`},
		{"escapes", `{"a":"\u0041\/\"\\\n\u001f\u00e9"}`, `{"a":"A/\"\\\n\u001fé"}`},
		{"surrogate pair", `{"a":"\ud83d\ude00"}`, `{"a":"😀"}`},
		{"line separators stay", `{"a":"\u2028"}`, "{\"a\":\"\u2028\"}"},
		{"html stays", `{"a":"<&>"}`, `{"a":"<&>"}`},
		{"integer as written", `{"a":-9007199254740993,"b":123456789012345678901234567890,"c":-0}`, `{"a":-9007199254740993,"b":123456789012345678901234567890,"c":-0}`},
		{"other numbers shortest", `{"a":1.0,"b":1e3,"c":0.10,"d":1E-7,"e":1e21,"f":-0.0,"g":0.000001,"h":1.5e+300}`, `{"a":1,"b":1000,"c":0.1,"d":1e-7,"e":1e+21,"f":0,"g":0.000001,"h":1.5e+300}`},
		{"order by UTF-16", "{\"\uffff\":1,\"\U0001F600\":2,\"\u00e9\":3,\"z\":4,\"\":5}", "{\"\":5,\"z\":4,\"\u00e9\":3,\"\U0001F600\":2,\"\uffff\":1}"},
		{"escaped key", `{"\u0061":1}`, `{"a":1}`},
		{"empty", `{}`, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := s.Decode([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(v.Canonical)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	s := mustCompile(t, sample, sampleOptions())
	foreign := mustCompile(t, `{"type":"object","properties":{"path":{"type":"string"},"x":{}},"required":["path"],"patternProperties":{"^x-":{"type":"string"}}}`, Options{Foreign: true})
	open := mustCompile(t, `{"type":"object","properties":{"Path":{"type":"string"}},"additionalProperties":{"type":"string"}}`, Options{Foreign: true})
	for _, c := range []struct {
		name   string
		schema *Schema
		in     string
		want   Error
	}{
		{"nothing", s, ``, Error{Problem: "are not valid JSON: unexpected end at byte 0"}},
		{"no object", s, `[1]`, Error{Problem: "must be an object", Want: "object"}},
		{"null", s, `null`, Error{Problem: "must be an object", Want: "object"}},
		{"text after", s, `{"path":"a"} x`, Error{Problem: "are not valid JSON: text after the end of the value at byte 13"}},
		{"cut off", s, `{"path":"a"`, Error{Problem: "are not valid JSON: expected ',' or '}' at byte 11"}},
		{"trailing comma", s, `{"path":"a",}`, Error{Problem: "are not valid JSON: expected a property name at byte 12"}},
		{"byte order mark", s, "\ufeff{\"path\":\"a\"}", Error{Problem: "are not valid JSON: unexpected character at byte 0"}},
		{"bad UTF-8", s, "{\"path\":\"\xff\"}", Error{Problem: "are not valid UTF-8"}},
		{"UTF-8 surrogate", s, "{\"path\":\"\xed\xa0\x80\"}", Error{Problem: "are not valid UTF-8"}},
		{"lone high surrogate", s, `{"path":"\ud800"}`, Error{Problem: "are not valid JSON: lone surrogate in a string at byte 15"}},
		{"lone low surrogate", s, `{"path":"\udc00x"}`, Error{Problem: "are not valid JSON: lone surrogate in a string at byte 15"}},
		{"two high surrogates", s, `{"path":"\ud800\ud800"}`, Error{Problem: "are not valid JSON: lone surrogate in a string at byte 21"}},
		{"raw control character", s, "{\"path\":\"a\nb\"}", Error{Problem: "are not valid JSON: control character in a string at byte 10"}},
		{"leading zero", s, `{"path":"a","count":01}`, Error{Problem: "are not valid JSON: expected ',' or '}' at byte 21"}},
		{"number out of range", s, `{"path":"a","count":1e999}`, Error{Problem: "are not valid JSON: number out of range at byte 25"}},
		{"too deep", s, strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), Error{Problem: "are nested deeper than 64"}},
		{"too long", s, `{"path":"` + strings.Repeat("a", MaxBytes) + `"}`, Error{Problem: "are longer than 1048576 bytes"}},
		{"duplicate key", s, `{"path":"a","path":"a"}`, Error{Field: "path", Problem: "is given twice"}},
		{"duplicate key, other escape", s, `{"path":"a","p\u0061th":"b"}`, Error{Field: "path", Problem: "is given twice"}},
		{"duplicate key deep", s, `{"path":"a","opts":{"deep":true,"deep":false}}`, Error{Field: "opts.deep", Problem: "is given twice"}},
		{"prototype", s, `{"path":"a","__proto__":{}}`, Error{Field: "__proto__", Problem: "is not an allowed name"}},
		{"prototype deep", s, `{"path":"a","tags":[{"\u005f_proto__":1}]}`, Error{Field: "tags.__proto__", Problem: "is not an allowed name"}},
		{"other case", s, `{"path":"a","Path":"b"}`, Error{Field: "Path", Problem: `differs from "path" in case only`}},
		{"other case beyond ASCII", mustCompile(t, `{"properties":{"k":{}}}`, Options{Foreign: true}), "{\"\u212a\":1}", Error{Field: "\u212a", Problem: `differs from "k" in case only`}},
		{"other case where more is admitted", open, `{"path":"a"}`, Error{Field: "path", Problem: `differs from "Path" in case only`}},
		{"undeclared", s, `{"path":"a","evil":1}`, Error{Field: "evil", Problem: "is not a parameter of this tool"}},
		{"undeclared, foreign", foreign, `{"path":"a","evil":1}`, Error{Field: "evil", Problem: "is not a parameter of this tool"}},
		{"wrong type admitted by pattern", foreign, `{"path":"a","x-b":1}`, Error{Field: "x-b", Problem: "has the wrong type", Want: "string"}},
		{"missing", s, `{}`, Error{Field: "path", Problem: "is missing", Want: "string"}},
		{"blank path", s, `{"path":" \t"}`, Error{Field: "path", Problem: "must not be blank", Want: "string"}},
		{"blank path of a foreign tool", foreign, `{"path":""}`, Error{Field: "path", Problem: "must not be blank", Want: "string"}},
		{"NUL in path", s, `{"path":"a\u0000b"}`, Error{Field: "path", Problem: "contains a NUL character"}},
		{"NUL in a list", s, `{"path":"a","tags":["x","\u0000"]}`, Error{Field: "tags", Problem: "contains a NUL character"}},
		{"NUL in a foreign path", foreign, `{"path":"a\u0000"}`, Error{Field: "path", Problem: "contains a NUL character"}},
		{"wrong type", s, `{"path":1}`, Error{Field: "path", Problem: "has the wrong type", Want: "string"}},
		{"not whole", s, `{"path":"a","count":1.5}`, Error{Field: "count", Problem: "has the wrong type", Want: "integer"}},
		{"too small", s, `{"path":"a","count":0}`, Error{Field: "count", Problem: "is too small"}},
		{"not in the list", s, `{"path":"a","mode":"c"}`, Error{Field: "mode", Problem: "is not one of the values it may have", Want: `"a", "b"`}},
		{"wrong type deep", s, `{"path":"a","opts":{"deep":"no"}}`, Error{Field: "opts.deep", Problem: "has the wrong type", Want: "boolean"}},
		{"huge number", s, `{"path":"a","count":1` + strings.Repeat("0", 1024) + `}`, Error{Problem: "are not valid JSON: number of more than 1024 characters at byte 1045"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.schema.Decode([]byte(c.in))
			got, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %v, want an *Error", err)
			}
			if diff := cmp.Diff(c.want, *got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodeAdmits(t *testing.T) {
	for _, c := range []struct{ name, schema, in string }{
		{"pattern", `{"type":"object","patternProperties":{"^x-":{}}}`, `{"x-a":1}`},
		{"additional properties true", `{"type":"object","additionalProperties":true}`, `{"a":1}`},
		{"additional properties schema", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"a":1}`},
		{"unevaluated properties", `{"type":"object","unevaluatedProperties":{"type":"integer"}}`, `{"a":1}`},
		{"declared in a variant", `{"anyOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}`, `{"b":1}`},
		{"declared behind a reference", `{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{}}}}}`, `{"a":1}`},
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":2}`},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s"}}}`, `{"a":"x"}`},
		{"draft 2019-09 recursion", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}`, `{"a":{"a":{}}}`},
		{"64 levels", `{"type":"object","properties":{"a":{}}}`, strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64)},
		{"NUL in plain text", `{"properties":{"content":{"type":"string"}}}`, `{"content":"\u0000"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustCompile(t, c.schema, Options{Foreign: true})
			if _, err := s.Decode([]byte(c.in)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOwnToolsNeverAdmitMore(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"a":{}},"additionalProperties":true}`, Options{})
	if _, err := s.Decode([]byte(`{"b":1}`)); err == nil {
		t.Error("an undeclared property passed")
	}
}

func TestCompileRefuses(t *testing.T) {
	bomb := `{"$defs":{"d0":{}`
	for i := 1; i < 40; i++ {
		bomb += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i-1, i-1)
	}
	many := `{"properties":{`
	for i := range maxSchemas + 1 {
		many += fmt.Sprintf(`"p%d":{},`, i)
	}
	for _, c := range []struct{ name, schema, want string }{
		{"nothing", ``, "unexpected end"},
		{"boolean", `true`, "root must be an object, not a boolean"},
		{"string root", `{"type":"string"}`, "arguments are always an object"},
		{"malformed keyword", `{"type":"object","properties":[]}`, "properties"},
		{"network reference", `{"$ref":"http://evil.example/s.json"}`, "not allowed"},
		{"file reference", `{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "not allowed"},
		{"relative reference", `{"properties":{"a":{"$ref":"other.json"}}}`, "not allowed"},
		{"network metaschema", `{"$schema":"http://evil.example/meta"}`, "not allowed"},
		{"reference to nothing", `{"$ref":"#/$defs/none"}`, "none"},
		{"duplicate key", `{"type":"object","type":"object"}`, "given twice"},
		{"prototype", `{"properties":{"__proto__":{}}}`, "not an allowed name"},
		{"look-ahead", `{"properties":{"a":{"pattern":"(?=x)"}}}`, "regex"},
		{"too many subschemas", many + `"z":{}}}`, "subschemas"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(json.RawMessage(c.schema), Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something about %q", err, c.want)
			}
		})
	}
	t.Run("a bomb of references is refused when used", func(t *testing.T) {
		s := mustCompile(t, bomb+`},"$ref":"#/$defs/d39"}`, Options{Foreign: true})
		if _, err := s.Decode([]byte(`{}`)); err == nil {
			t.Error("passed")
		}
	})
	t.Run("so is branching recursion", func(t *testing.T) {
		s := mustCompile(t, `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, Options{Foreign: true})
		if _, err := s.Decode([]byte(strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat("}", 60))); err == nil {
			t.Error("passed")
		}
		if _, err := s.Decode([]byte(`{"a":{"a":{}}}`)); err != nil {
			t.Errorf("a small call is refused: %v", err)
		}
	})
	t.Run("and branching dynamic recursion", func(t *testing.T) {
		s := mustCompile(t, `{"$dynamicAnchor":"n","allOf":[{"properties":{"a":{"$dynamicRef":"#n"}}},{"properties":{"a":{"$dynamicRef":"#n"}}}]}`, Options{Foreign: true})
		if _, err := s.Decode([]byte(strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat("}", 60))); err == nil {
			t.Error("passed")
		}
	})
	t.Run("a pattern made to backtrack is harmless", func(t *testing.T) {
		s := mustCompile(t, `{"properties":{"a":{"type":"string","pattern":"^(a+)+$"}}}`, Options{})
		if _, err := s.Decode([]byte(`{"a":"` + strings.Repeat("a", 100_000) + `!"}`)); err == nil {
			t.Error("passed")
		}
	})
}

func TestErrorsNameTheSameParameterEveryTime(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}}}`, Options{})
	_, first := s.Decode([]byte(`{"a":1,"b":2,"c":3}`))
	for range 50 {
		if _, err := s.Decode([]byte(`{"c":3,"b":2,"a":1}`)); err.Error() != first.Error() {
			t.Fatalf("%v, then %v", first, err)
		}
	}
	if want := `invalid arguments: parameter "a" has the wrong type (expected string)`; first.Error() != want {
		t.Errorf("got %s, want %s", first, want)
	}
}

func TestErrorsMakeHostileNamesVisible(t *testing.T) {
	s := mustCompile(t, `{}`, Options{})
	_, err := s.Decode([]byte(`{"a\u202e\n` + strings.Repeat("x", 500) + `":1}`))
	if err == nil || strings.ContainsAny(err.Error(), "\n\u202e") || len(err.Error()) > 200 {
		t.Errorf("got %v", err)
	}
}

func TestCanonical(t *testing.T) {
	type point struct {
		Y float64 `json:"y"`
		X int     `json:"x"`
	}
	for _, c := range []struct {
		name string
		in   any
		want string
	}{
		{"struct", point{Y: 1.50, X: 2}, `{"x":2,"y":1.5}`},
		{"list of structs", []any{point{}, "<"}, `[{"x":0,"y":0},"<"]`},
		{"numbers", []any{1, int64(2), 3.0, json.Number("4.0"), json.Number("1e2")}, `[1,2,3,4,100]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Canonical(c.in)
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
	for name, bad := range map[string]any{
		"bad UTF-8": "\xff", "bad key": map[string]any{"\xff": 1}, "bad number": json.Number("1x"),
		"infinity": []any{json.Number("1e999")}, "channel": make(chan int),
	} {
		if out, err := AppendCanonical([]byte("kept"), bad); err == nil || string(out) != "kept" {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
	}
}
