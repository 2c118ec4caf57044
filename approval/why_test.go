package approval

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/redact"
)

// What does not fit is counted, and it is never the worst: whoever fills a call with harmless oddities must not push out of
// sight what people are asked about.
func TestReasonsThatDoNotFitAreCounted(t *testing.T) {
	m := &Manager{redact: func(s string) string { return s }}
	list := func(n int, effect toolward.Effect, code string) (out []toolward.Finding) {
		for i := range n {
			out = append(out, toolward.Finding{Code: fmt.Sprint(code, i), Effect: effect})
		}
		return out
	}
	rules := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("rule", i))
		}
		return out
	}
	notes, asks := list(20, toolward.EffectNote, "note"), list(20, toolward.EffectAsk, "ask")
	for name, test := range map[string]struct {
		findings         []toolward.Finding
		addresses, rules []string
		want             []string // of the beginning
		last             string
		n                int
	}{
		"all fit":              {notes[:5], []string{"address"}, rules(9), []string{"note0", "note1"}, "rule8", 15},
		"one too many":         {notes[:5], []string{"address"}, rules(10), []string{"note0", "note1", "note2", "address", "rule0"}, "… and 2 more", 15},
		"the worst comes last": {append(slices.Clone(notes), toolward.Finding{Code: "path_escape", Effect: toolward.EffectAsk}), nil, rules(1), []string{"path_escape", "note0"}, "… and 8 more", 15},
		"refused before asked": {append(slices.Clone(asks[:1]), toolward.Finding{Code: "never", Effect: toolward.EffectDeny}), nil, nil, []string{"never", "ask0"}, "ask0", 2},
		"many that ask":        {asks, []string{"address"}, rules(1), []string{"ask0", "ask1"}, "… and 8 more", 15},
		"notes beside rules":   {notes, []string{"address"}, rules(12), []string{"note0", "address", "rule0"}, "… and 19 more", 15},
		"many rules":           {nil, nil, rules(30), []string{"rule0", "rule1"}, "… and 16 more", 15},
	} {
		t.Run(name, func(t *testing.T) {
			findings, got := m.why(test.findings, test.addresses, test.rules)
			if len(got) != test.n || !slices.Equal(got[:min(len(got), len(test.want))], test.want) || got[len(got)-1] != test.last {
				t.Errorf("%d: %q", len(got), got)
			}
			for i, f := range findings {
				if got[i] != f.Code {
					t.Errorf("finding %s stands at the reason %s", f.Code, got[i])
				}
			}
			if len(test.addresses) > 0 && !slices.Contains(got, "address") {
				t.Error("where the address leads is cut")
			}
		})
	}
	findings, _ := m.why(append(slices.Clone(notes[:1]), asks[:1]...), nil, nil)
	if findings[0].Code != "ask0" || notes[0].Code != "note0" {
		t.Error("the order is not that of a copy")
	}
}

// An offer to leave lockdown stands before the findings, which must not be taken for it.
func TestTheOfferOfAResetIsNoFinding(t *testing.T) {
	r := &Record{Request: &Details{
		Reasons: []string{offerReset, "path_escape: ../x", "a rule"}, Findings: []toolward.Finding{{Code: "path_escape", Detail: "../x"}},
	}}
	want := []Reason{{Text: offerReset}, {Text: "path_escape: ../x", Code: "path_escape", Seen: "../x"}, {Text: "a rule"}}
	if got := r.View().Reasons; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// What other programs say of a command, and the names of its environment, are on the screens like everything else.
func TestSecretsOfWhatSurroundsACommandAreHidden(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789"
	m := &Manager{redact: redact.Text}
	d, err := m.shownOf(&Submission{Details: Details{
		Tool: "exec", Command: "make", Exec: &ExecRequest{ResolvedPath: "/opt/" + secret + "/make", EnvKeys: []string{"A", secret}},
		Variables: []string{secret}, Findings: []toolward.Finding{{Code: "seen", Detail: secret}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	view := (&Record{Request: d}).View()
	if text := view.Text(); strings.Contains(text, secret) || !strings.Contains(text, "/opt/[hidden: ") {
		t.Errorf("%s", text)
	}
	if d.Variables = nil; strings.Contains((&Record{Request: d}).View().Text(), secret) {
		t.Error("the names of the environment show the secret")
	}
	for name, e := range map[string]*ExecRequest{
		"path": {ResolvedPath: "https://user:a;reboot@example.org/make"}, "name": {EnvKeys: []string{"https://user:$(reboot)@example.org"}},
	} {
		if _, err := m.shownOf(&Submission{Details: Details{Command: "make", Exec: e}}); err == nil {
			t.Errorf("%s: what hides syntax is shown", name)
		}
	}

	held := open(t, newMemory(), func(o *Options) { o.Redact = redact.Text })
	attach(t, held, alice)
	_, _ = held.Ask(t.Context(), question(func(r *toolward.Request, _ *toolward.Judgment) {
		env := map[string]any{"env": map[string]any{secret: "1"}}
		r.Facts.Command, r.Call.Detach, r.Params = "make", true, toolward.NewParams([]byte(`{"env":{"`+secret+`":"1"}}`), env)
	}))
	if got := only(t, held).View().Variables; len(got) != 1 || strings.Contains(got[0], secret) {
		t.Errorf("variables of a call: %q", got)
	}
}
