package bridge

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// FuzzRewriteStrings: whatever a client sends, a copy has its shape; only string values differ, and only as told.
func FuzzRewriteStrings(f *testing.F) {
	for _, seed := range []string{
		`{"stdout":"a","n":1e3,"list":["a",{"a":"\u00e9a"},null,true],"e":{},"f":[]}`, `"a"`, ` [ "a" , "b\\" ] `, `{"a":{"a":"\"a"}}`, `-1.5E+3`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		same, changed, err := rewriteStrings(raw, func(_, v string) (string, bool) { return v, false })
		if !json.Valid(raw) {
			if err == nil {
				t.Fatal("took what is not JSON")
			}
			return
		}
		if err != nil || changed || !bytes.Equal(same, raw) {
			t.Fatalf("a copy of %q is %q (changed %t, %v)", raw, same, changed, err)
		}
		out, _, err := rewriteStrings(raw, func(_, v string) (string, bool) {
			return strings.ReplaceAll(v, "a", "é\""), strings.Contains(v, "a")
		})
		if err != nil {
			t.Fatal(err)
		}
		var before, after any
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q became %q: %v", raw, out, err)
		}
		if err := json.Unmarshal(raw, &before); err != nil {
			t.Fatal(err)
		}
		if want := replaced(before); !reflect.DeepEqual(want, after) {
			t.Fatalf("%q became %q", raw, out)
		}
	})
}

func replaced(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "a", "é\"")
	case []any:
		for i := range v {
			v[i] = replaced(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = replaced(v[k])
		}
	}
	return v
}
