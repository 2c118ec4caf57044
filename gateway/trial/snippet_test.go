package trial

import (
	"encoding/json"
	"testing"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/policy"
)

// A rule is printed to be pasted. The name of a file in it must neither steer the terminal nor show itself as another.
func TestRuleSnippetShowsWhatItHolds(t *testing.T) {
	rule := policy.Rule{Name: "suggested-1", When: "t.real in [\"/ws/\u202egpj.exe\", \"/ws/\u009b2J\", \"/ws/\U000e0041ü\"]"}
	snippet, err := Snippet(&rule)
	if err != nil {
		t.Fatal(err)
	}
	if display.HasInvisible(snippet) {
		t.Errorf("%+q holds what nobody sees", snippet)
	}
	var again policy.Rule
	if err := json.Unmarshal([]byte(snippet), &again); err != nil || again != rule {
		t.Errorf("%s is read as %+v, %v", snippet, again, err)
	}
}
