package config

import (
	"strings"
	"testing"

	"github.com/toolward/toolward/policy"
)

// How long questions wait is checked where it stands.
func TestWaitsAreCheckedInTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a rule, too long": {
			"{\n  \"teg\": { \"rules\": [\n    { \"name\": \"n\", \"tool\": \"write\", \"when\": \"true\", \"then\": \"ask\", \"reason\": \"r\",\n      \"waitMs\": 604800001 } ] }\n}", "f:4:17: ",
		},
		"a rule that denies": {"{\"teg\": {\"rules\": [\n{\"name\": \"n\", \"tool\": \"write\", \"when\": \"true\", \"then\": \"deny\", \"reason\": \"r\", \"waitMs\": 5000}]}}", "f:2:"},
		"a tool, too short":  {"{\"teg\": {\"approval\": {\"waitMs\": {\n  \"write\": 999}}}}", "f:2:12: "},
		"a tool, in words":   {"{\"teg\": {\"approval\": {\"waitMs\": {\n  \"write\": \"7d\"}}}}", "f:2:12: "},
	} {
		if _, err := Parse("f", []byte(c.text), CheckPolicy(nil, policy.Surroundings{})); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want it at %s", name, err, c.want)
		}
	}
	const right = `{"teg": {"approval": {"waitMs": {"write": 604800000}}, "rules": [{"name": "n", "tool": "exec", "when": "true", "then": "ask", "reason": "r", "waitMs": 1000}]}}`
	if _, err := Parse("f", []byte(right), CheckPolicy(nil, policy.Surroundings{})); err != nil {
		t.Error(err)
	}
}
