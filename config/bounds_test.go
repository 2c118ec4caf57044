package config

import (
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// Every bounded key and every key of a few words exists, in the schema and for the program.
func TestBoundsNameRealKeys(t *testing.T) {
	schema, err := jsonschema.For[File](nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(key string) {
		s := schema
		for _, part := range SplitKey(key) {
			if s = s.Properties[part]; s == nil {
				t.Errorf("%s is not a key of the file", key)
				return
			}
		}
	}
	for key := range bounds() {
		check(key)
	}
	for key, list := range words {
		check(key)
		for _, word := range list {
			source, err := Set(nil, key, word)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse("f", source); err != nil {
				t.Errorf("%s: the schema offers %v, the program says %v", key, word, err)
			}
		}
	}
}

func TestRangesHoldAtBothEnds(t *testing.T) {
	for key, b := range bounds() {
		for value, want := range map[int64]bool{b.least: true, b.most: true, b.least - 1: false, b.most + 1: false, 0: b.least <= 0} {
			source, err := Set(nil, key, value)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse("f", source)
			if (err == nil) != want {
				t.Errorf("%s = %d: %v", key, value, err)
			}
			if err != nil && (!strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "to ")) {
				t.Errorf("%s = %d: the error names no key or range: %v", key, value, err)
			}
		}
	}
}
