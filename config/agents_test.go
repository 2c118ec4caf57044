package config

import (
	"strings"
	"testing"
)

func TestDefaultAgent(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "main",
		`{"agents": {"list": [{"id": "a"}, {"id": "b"}]}}`:                                       "a",
		`{"agents": {"list": [{"id": "a"}, {"id": "main"}]}}`:                                    "main",
		`{"agents": {"list": [{"id": "main"}, {"id": "b", "default": true}, {"id": "c"}]}}`:      "b",
		`{"agents": {"list": [{"id": "a", "default": false}, {"id": "main", "default": true}]}}`: "main",
	} {
		loaded, err := Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := loaded.File.DefaultAgent(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	_, err := Parse("f", []byte(`{"agents": {"list": [{"id": "a", "default": true}, {"id": "b"}, {"id": "c", "default": true}]}}`))
	if err == nil || !strings.Contains(err.Error(), "agents.list[2].default") {
		t.Errorf("two default agents: %v", err)
	}
}
