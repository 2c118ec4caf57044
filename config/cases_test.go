package config

import (
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

func TestCasesAreFilledIn(t *testing.T) {
	cases, err := ParseCases("f", []byte("[ // first\n\n  {\"name\": \"n\", \"agent\": \"a\", \"tool\": \"read\", \"expect\": \"ask\", \"level\": \"elevated\"},\n]"))
	if err != nil {
		t.Fatal(err)
	}
	c := cases[0]
	if c.Session != "agent:a:test" || c.Surface != "mcp" || string(c.Args) != "{}" || c.Verdict != toolward.Ask || c.At != toolward.Elevated || c.Line != 3 {
		t.Errorf("%+v", c)
	}
}

func TestWrongCasesSayWhereAndHow(t *testing.T) {
	const head, tail = "[\n  {\"name\": \"n\", \"agent\": \"a\", \"tool\": \"read\"", "}\n]"
	for name, c := range map[string]struct{ source, want string }{
		"no list":        {`{"cases": []}`, "f:1:1: expected a list"},
		"no case":        {`[]`, "f:1:1: there is no case"},
		"syntax":         {"[\n {]", "f:2:3: "},
		"unknown key":    {head + `, "expect": "ask", "tol": "x"` + tail, `f:2:64: [0].tol: there is no such key; did you mean "tool"?`},
		"missing":        {"[{\"agent\": \"a\", \"tool\": \"x\", \"expect\": \"ask\"}]", "f:1:2: [0].name: name is missing or empty"},
		"outcome":        {head + `, "expect": "maybe"` + tail, `f:2:57: [0].expect: "maybe" is not an outcome; write allow, ask or deny`},
		"code":           {head + `, "expect": "ask", "code": "blocked"` + tail, `f:2:72: [0].code: "blocked" cannot be; only refusals have a code`},
		"level":          {head + `, "expect": "ask", "level": "calm"` + tail, `[0].level: "calm" is not a level; write normal, elevated or lockdown`},
		"surface":        {head + `, "expect": "ask", "surface": "fax"` + tail, `[0].surface: "fax" is not a surface`},
		"other's":        {head + `, "expect": "ask", "session": "agent:b:x"` + tail, `"agent:b:x" does not belong to agent a; write agent:a:…`},
		"wrong type":     {head + `, "expect": "ask", "owner": "yes"` + tail, "[0].owner: expected true or false"},
		"twice the same": {head + `, "expect": "ask", "expect": "deny"` + tail, "[0].expect: the key stands here twice"},
	} {
		t.Run(name, func(t *testing.T) {
			cases, err := ParseCases("f", []byte(c.source))
			if err == nil || !strings.Contains(err.Error(), c.want) || cases != nil {
				t.Errorf("error %v\nwant %s", err, c.want)
			}
		})
	}
}
