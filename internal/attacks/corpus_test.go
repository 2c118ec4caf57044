package attacks

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vectorFile is the name of the corpus, here and in the directory that TOOLWARD_VECTORS names.
const vectorFile = "attacks.json"

// attack is one case. Setup, attempt and check are open objects: what a judge does not understand of them it must
// refuse to judge.
type attack struct {
	ID, Class, Source, Surface, Level, Want, Why string
	Setup, Attempt, Check                        fields
	Control                                      bool
}

// fields is an object of the corpus, unpacked.
type fields map[string]any

// unsupported is the error of a judge that meets something it does not implement.
type unsupported struct{ what string }

func (e unsupported) Error() string { return e.what }

// only refuses every field but the named ones.
func (f fields) only(what string, names ...string) error {
	for name := range f {
		if !slices.Contains(names, name) {
			return unsupported{fmt.Sprintf("%s with %q", what, name)}
		}
	}
	return nil
}

func (f fields) text(name string) string { s, _ := f[name].(string); return s }
func (f fields) flag(name string) bool   { b, _ := f[name].(bool); return b }
func (f fields) has(name string) bool    { _, ok := f[name]; return ok }
func (f fields) object(name string) fields {
	o, _ := f[name].(map[string]any)
	return o
}

// texts is a list or object of texts.
func (f fields) list(name string) []string {
	var out []string
	list, _ := f[name].([]any)
	for _, v := range list {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// steps are the operations of a case.
func (f fields) steps(name string) []fields {
	var out []fields
	list, _ := f[name].([]any)
	for _, v := range list {
		o, _ := v.(map[string]any)
		out = append(out, o)
	}
	return out
}

// loadAttacks reads the corpus of this package and that of TOOLWARD_VECTORS. An id that stands in both is one case.
func loadAttacks(t *testing.T) []*attack {
	t.Helper()
	files := []string{filepath.Join("testdata", "vectors", vectorFile)}
	if dir := os.Getenv("TOOLWARD_VECTORS"); dir != "" {
		files = append(files, filepath.Join(dir, vectorFile))
	}
	var all []*attack
	known := map[string]bool{}
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if i > 0 && errors.Is(err, os.ErrNotExist) {
			continue
		}
		must(t, err)
		var doc struct{ Cases []*attack }
		must(t, json.Unmarshal(raw, &doc))
		for _, c := range doc.Cases {
			if known[c.ID] {
				continue
			}
			known[c.ID] = true
			c.Setup, c.Attempt = unpackFields(c.Setup), unpackFields(c.Attempt)
			all = append(all, c)
		}
	}
	return all
}

func unpackFields(f fields) fields {
	o, _ := unpack(map[string]any(f), "").(map[string]any)
	return o
}

// unpack writes packed values out: {"$rle": [text, [unit, n], …]}, {"$repeat": [value, n]}, {"$props": n}. key is the
// name that the value stands under.
func unpack(v any, key string) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = unpack(v[i], "")
		}
	case map[string]any:
		switch {
		case v["$rle"] != nil:
			return unpackText(v["$rle"])
		case v["$repeat"] != nil:
			pair, _ := v["$repeat"].([]any)
			n, _ := pair[1].(float64)
			return slices.Repeat([]any{unpack(pair[0], "")}, int(n))
		case v["$props"] != nil:
			n, _ := v["$props"].(float64)
			return manyTexts(int(n), key == "properties")
		}
		for name := range v {
			v[name] = unpack(v[name], name)
		}
	}
	return v
}

func unpackText(runs any) string {
	var b strings.Builder
	list, _ := runs.([]any)
	for _, run := range list {
		switch run := run.(type) {
		case string:
			b.WriteString(run)
		case []any:
			unit, _ := run[0].(string)
			n, _ := run[1].(float64)
			b.WriteString(strings.Repeat(unit, int(n)))
		}
	}
	return b.String()
}

// manyTexts is an object of n texts, or of n schemas of texts.
func manyTexts(n int, schemas bool) map[string]any {
	o := make(map[string]any, n)
	for i := range n {
		o[fmt.Sprintf("p%d", i)] = "x"
		if schemas {
			o[fmt.Sprintf("p%d", i)] = map[string]any{"type": "string"}
		}
	}
	return o
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
