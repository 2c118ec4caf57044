package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
)

// How long people may take: the rule that asks says it, else the most exact entry for the tool, else nobody.
func TestWaits(t *testing.T) {
	const day = 24 * time.Hour
	waiting := func(ms int64, then, when string) Rule { return Rule{Tool: "write", Then: then, When: when, WaitMs: ms} }
	tools := func(waits map[string]int64, rules ...Rule) Config {
		c := ruled(rules...)
		c.TEG.Approval.WaitMs = waits
		return c
	}
	for name, c := range map[string]struct {
		config       Config
		tool, params string
		want         time.Duration
	}{
		"nothing is said":                  {Config{}, "write", `{}`, 0},
		"a rule":                           {ruled(waiting(3*86_400_000, "ask", "true")), "write", `{}`, 3 * day},
		"a rule that does not hold":        {ruled(waiting(3*86_400_000, "ask", "false")), "write", `{}`, 0},
		"a rule that nobody can tell":      {ruled(waiting(3*86_400_000, "ask", "params.absent == 1")), "write", `{}`, 3 * day},
		"two rules: the first by name":     {ruled(waiting(60_000, "ask", "true"), waiting(3*86_400_000, "ask", "true")), "write", `{}`, time.Minute},
		"a tool":                           {tools(map[string]int64{"write": 5_000}), "write", `{}`, 5 * time.Second},
		"another tool":                     {tools(map[string]int64{"edit": 5_000}), "write", `{}`, 0},
		"a rule before a tool":             {tools(map[string]int64{"write": 5_000}, waiting(604_800_000, "ask", "true")), "write", `{}`, 7 * day},
		"a rule that says nothing of it":   {tools(map[string]int64{"write": 5_000}, waiting(0, "ask", "true")), "write", `{}`, 5 * time.Second},
		"a tool before a glob":             {tools(map[string]int64{"write": 5_000, "w*": 9_000}), "write", `{}`, 5 * time.Second},
		"the longer glob":                  {tools(map[string]int64{"wr*": 5_000, "*": 9_000}), "write", `{}`, 5 * time.Second},
		"an action before its tool":        {tools(map[string]int64{"cron.add": 5_000, "cron": 9_000}), "cron", `{"action":"add"}`, 5 * time.Second},
		"another action":                   {tools(map[string]int64{"cron.add": 5_000, "cron": 9_000}), "cron", `{"action":"update"}`, 9 * time.Second},
		"a tool that nobody has announced": {tools(map[string]int64{"shop__*": 5_000}), "shop__refund", `{}`, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := compile(t, c.config)
			j := s.Judge(request(t, c.tool, []byte(c.params), target("workspace", toolward.OpWrite)))
			if j.Verdict != toolward.Ask || j.Wait != c.want {
				t.Errorf("%s, %s: want a question that waits %s (%+v)", j.Verdict, j.Wait, c.want, j.Reasons)
			}
		})
	}
}

// A wait that cannot be is a mistake with its place, and never one of some other length.
func TestWrongWaits(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		at     string
		text   string
	}{
		"eight days":    {ruled(Rule{Tool: "write", Then: "ask", When: "true", WaitMs: 8 * 86_400_000}), "teg.rules[0].waitMs", "7 days"},
		"negative":      {ruled(Rule{Tool: "write", Then: "ask", When: "true", WaitMs: -1}), "teg.rules[0].waitMs", "out of range"},
		"half a second": {ruled(Rule{Tool: "write", Then: "ask", When: "true", WaitMs: 500}), "teg.rules[0].waitMs", "out of range"},
		"of a denial":   {ruled(Rule{Tool: "write", Then: "deny", When: "true", WaitMs: 5000}), "teg.rules[0].waitMs", "only a rule that asks"},
		"of a licence":  {ruled(Rule{Tool: "write", Then: "allow", When: "true", WaitMs: 5000}), "teg.rules[0].waitMs", "only a rule that asks"},
		"of a tool":     {Config{TEG: TEG{Approval: Approval{WaitMs: map[string]int64{"write": 0}}}}, "teg.approval.waitMs.write", "out of range"},
		"of no action":  {Config{TEG: TEG{Approval: Approval{WaitMs: map[string]int64{"cron.": 5000}}}}, "teg.approval.waitMs", "action is blank"},
		"of no tool":    {Config{TEG: TEG{Approval: Approval{WaitMs: map[string]int64{" ": 5000}}}}, "teg.approval.waitMs", "blank"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Compile(c.config, nil)
			if err == nil || !strings.Contains(err.Error(), c.at) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v; want %s: …%s…", err, c.at, c.text)
			}
		})
	}
	_, warnings, err := Compile(Config{TEG: TEG{Approval: Approval{WaitMs: map[string]int64{"wriet": 5000}}}}, nil)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Text, "write") {
		t.Errorf("%v, %v: want a warning about a tool that is not there", warnings, err)
	}
}
