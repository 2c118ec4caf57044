package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/toolward/toolward/internal/gatetest"
)

// fileSchemas are the parameters of the file tools, as a tool would declare them.
var fileSchemas = map[string]string{
	"read": `{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer"},"limit":{"type":"integer"}},
		"required":["path"],"additionalProperties":false}`,
	"write": `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},
		"required":["path","content"],"additionalProperties":false}`,
	"edit": `{"type":"object","properties":{"path":{"type":"string"},"oldText":{"type":"string"},"newText":{"type":"string"},
		"replaceAll":{"type":"boolean"}},"required":["path","oldText","newText"],"additionalProperties":false}`,
}

func fileSchema(t testing.TB, tool string) *Schema {
	t.Helper()
	params, known := FileParams(tool)
	text := `{"type":"object","additionalProperties":true}`
	if known {
		text = fileSchemas[tool]
	}
	s, err := Compile(json.RawMessage(text), Options{Params: params, Foreign: !known})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParamAliasVectors(t *testing.T) {
	gatetest.Run(t, "policy.json", "paramAlias", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Tool   string
			Params json.RawMessage
		}
		gatetest.Decode(t, input, &in)
		var packed struct {
			Raw *string `json:"__raw"`
		}
		if json.Unmarshal(in.Params, &packed) == nil && packed.Raw != nil {
			in.Params = []byte(*packed.Raw)
		}
		v, err := fileSchema(t, in.Tool).Decode(in.Params)
		if err != nil {
			t.Log(err)
			return map[string]any{"error": "invalid_args"}
		}
		return map[string]any{"params": json.RawMessage(v.Canonical)}
	})
}

func TestDigestVectors(t *testing.T) {
	gatetest.Run(t, "policy.json", "digest", func(t *testing.T, input json.RawMessage) any {
		canonical, err := Canonicalize(input)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(canonical)
		return map[string]any{"digest": hex.EncodeToString(sum[:])}
	})
}
