package schema

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// FuzzDecode: whatever Decode lets through is valid JSON, a fixed point, and what encoding/json reads too.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"path":"a","content":"x"}`, `{"file_path":"a","content":[{"type":"text","text":"he"},"llo"]}`,
		`{"path":"a","path":"b"}`, `{"path":"\ud83d\ude00\u0000"}`, `{"path":"\ud800"}`, `{"n":[1,-0,1.0,1e3,1e-7,1e400]}`,
		`{"a":{"b":[[[{}]]]}}`, "{\"\xff\":1}", `{"__proto__":1}`, `{"Path":1}`, ` {"a" : null } `, `{"a":tru}`, `"`, `{"\u`,
		"{\"\uffff\":1,\"\U0001F600\":2}",
	} {
		f.Add([]byte(seed))
	}
	open, err := Compile(json.RawMessage(`{"type":"object","additionalProperties":true}`), Options{Foreign: true})
	if err != nil {
		f.Fatal(err)
	}
	schemas := []*Schema{open, fileSchema(f, "write"), fileSchema(f, "edit")}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, s := range schemas {
			v, err := s.Decode(raw)
			if err != nil {
				continue
			}
			if !json.Valid(raw) || !json.Valid(v.Canonical) || !utf8.Valid(v.Canonical) {
				t.Fatalf("%q is not JSON but became %q", raw, v.Canonical)
			}
			again, err := s.Decode(v.Canonical)
			if err != nil || !bytes.Equal(v.Canonical, again.Canonical) {
				t.Fatalf("%q became %q, %v", v.Canonical, again.Canonical, err)
			}
			decoder := json.NewDecoder(bytes.NewReader(v.Canonical))
			decoder.UseNumber()
			var other map[string]any
			if err := decoder.Decode(&other); err != nil {
				t.Fatal(err)
			}
			if same, err := Canonical(other); err != nil || !bytes.Equal(same, v.Canonical) {
				t.Fatalf("encoding/json reads %q as %q", v.Canonical, same)
			}
		}
	})
}
