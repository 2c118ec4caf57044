package approval

import (
	"slices"
	"testing"

	"github.com/toolward/toolward"
)

// People are told where an address leads that is read as another, on every screen: as a reason beside the findings.
func TestAddressThatMisleads(t *testing.T) {
	m := &Manager{redact: func(s string) string { return s }}
	const want = "an address leads to evil.example, not to what stands before the @: https://apple.com@evil.example/"
	for _, value := range []any{
		"curl https://apple.com@evil.example/ https://apple.com@evil.example/",
		map[string]any{"deep": []any{1, map[string]any{"url": "https://apple.com@evil.example/"}}},
	} {
		if got := m.misleading(value); !slices.Equal(got, []string{want}) {
			t.Errorf("%v: %q", value, got)
		}
	}
	if _, got := m.why([]toolward.Finding{{Code: "seen"}}, []string{want}, []string{"a rule"}); !slices.Equal(got, []string{"seen", want, "a rule"}) {
		t.Errorf("the order of findings, addresses and rules is %q", got)
	}
	d, err := m.shownOf(&Submission{Details: Details{Claims: []Claim{{"arguments", `{"url":"https://apple.com@evil.example/"}`}}}})
	if err != nil || !slices.Equal(d.Reasons, []string{want}) {
		t.Errorf("of a submission: %q, %v", d.Reasons, err)
	}
}
