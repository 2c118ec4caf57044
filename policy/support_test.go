package policy

import (
	"encoding/json"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/visible"
)

// coreTools registers a stand-in for each of the 25 core tools, and list, search and whatsapp_login.
func coreTools() []*toolward.Tool {
	schemas := map[string]string{
		"read":  `{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["path"]}`,
		"write": `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`,
		"edit":  `{"type":"object","properties":{"path":{"type":"string"},"oldText":{"type":"string"},"newText":{"type":"string"}},"required":["path","oldText","newText"]}`,
		"exec":  `{"type":"object","properties":{"command":{"type":"string"},"workdir":{"type":"string"}},"required":["command"]}`,
	}
	var tools []*toolward.Tool
	for _, name := range append(visible.CoreTools(), "list", "search", "whatsapp_login") {
		text := schemas[name]
		if text == "" {
			text = `{"type":"object","properties":{"action":{"type":"string"},"path":{"type":"string"},"url":{"type":"string"}}}`
		}
		tools = append(tools, &toolward.Tool{Name: name, Schema: json.RawMessage(text)})
	}
	return tools
}

func compile(t testing.TB, c Config, tools ...*toolward.Tool) *Snapshot {
	t.Helper()
	s, _, err := Compile(c, tools)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
