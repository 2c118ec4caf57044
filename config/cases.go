package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"

	"github.com/toolward/toolward"
)

// Case is one expectation about a policy: what happens to a call.
type Case struct {
	Name      string          `json:"name"`
	Agent     string          `json:"agent"`
	Owner     bool            `json:"owner"`
	Depth     int             `json:"depth"`   // level of sub-agent
	Session   string          `json:"session"` // default agent:<agent>:test
	Surface   string          `json:"surface"` // default mcp
	Level     string          `json:"level"`   // default normal
	Channel   string          `json:"channel"`
	Sender    string          `json:"sender"`
	Provider  string          `json:"provider"`
	Model     string          `json:"model"`
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args"`      // default {}
	Workspace string          `json:"workspace"` // relative to the file of cases; default an empty directory
	Expect    string          `json:"expect"`
	Code      string          `json:"code"` // of a refusal
	Row       string          `json:"row"`  // of the class table

	Verdict toolward.Verdict `json:"-"` // Expect
	At      toolward.Level   `json:"-"` // Level
	Line    int              `json:"-"` // where the case begins
}

// surfaces are the kinds of faces that a case may come through.
var surfaces = []toolward.Surface{
	toolward.SurfaceAgent, toolward.SurfaceMCP, toolward.SurfaceHTTP, toolward.SurfaceNode, toolward.SurfaceCron, toolward.SurfaceHook, toolward.SurfaceSandbox,
}

// LoadCases reads a file of cases: a list, in JSON with comments. Errors are Problems.
func LoadCases(path string) ([]Case, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read cases: %w", err)
	}
	return ParseCases(path, source)
}

// ParseCases checks the content of a file of cases.
func ParseCases(name string, source []byte) ([]Case, error) {
	if len(source) > MaxSize {
		return nil, fmt.Errorf("read cases %s: larger than %d bytes", name, MaxSize)
	}
	document, err := ParseText(source)
	if err != nil {
		return nil, syntaxProblem(name, err)
	}
	d := &decoder{name: name, source: source, document: &document}
	d.value(&document, reflect.TypeFor[[]Case](), "")
	if len(d.problems) > 0 {
		return nil, d.sorted()
	}
	plain := document.Clone()
	plain.Standardize()
	var cases []Case
	if err := json.Unmarshal(plain.Pack(), &cases); err != nil {
		return nil, Problems{{File: name, Line: 1, Column: 1, Text: err.Error()}}
	}
	if len(cases) == 0 {
		d.add(document.StartOffset, "", "there is no case in the list", `write at least one: {"name": …, "agent": …, "tool": …, "expect": "ask"}`)
	}
	for i := range cases {
		d.checkCase(&cases[i], i)
	}
	if len(d.problems) > 0 {
		return nil, d.sorted()
	}
	return cases, nil
}

// checkCase checks what the types cannot say and fills in what is left out.
func (d *decoder) checkCase(c *Case, i int) {
	at := fmt.Sprintf("[%d]", i)
	wrong := func(field, remedy, format string, args ...any) {
		d.add(d.offset(at+"."+field), at+"."+field, fmt.Sprintf(format, args...), remedy)
	}
	for _, must := range []struct{ name, value string }{{"name", c.Name}, {"agent", c.Agent}, {"tool", c.Tool}, {"expect", c.Expect}} {
		if must.value == "" {
			wrong(must.name, "write one", "%s is missing or empty", must.name)
		}
	}
	if err := c.Verdict.UnmarshalText([]byte(c.Expect)); err != nil && c.Expect != "" {
		wrong("expect", "write allow, ask or deny", "%q is not an outcome", c.Expect)
	}
	if c.Code != "" && c.Verdict != toolward.Deny {
		wrong("code", "only refusals have a code: remove it, or expect deny", "%q cannot be", c.Code)
	}
	c.At = toolward.Normal
	if c.Level != "" {
		if err := c.At.UnmarshalText([]byte(c.Level)); err != nil {
			wrong("level", "write normal, elevated or lockdown", "%q is not a level", c.Level)
		}
	}
	if c.Surface == "" {
		c.Surface = string(toolward.SurfaceMCP)
	}
	if !slices.Contains(surfaces, toolward.Surface(c.Surface)) {
		wrong("surface", fmt.Sprintf("write one of %q", surfaces), "%q is not a surface", c.Surface)
	}
	if c.Session == "" {
		c.Session = "agent:" + c.Agent + ":test"
	}
	if c.Agent != "" && toolward.SessionKey(c.Session).Agent() != c.Agent {
		wrong("session", fmt.Sprintf("write agent:%s:… or leave it out", c.Agent), "%q does not belong to agent %s", c.Session, c.Agent)
	}
	if c.Depth < 0 {
		wrong("depth", "write 0 for an agent, 1 for its sub-agents", "%d is negative", c.Depth)
	}
	if c.Args == nil {
		c.Args = json.RawMessage("{}")
	}
	c.Line = 1 + bytes.Count(d.source[:d.offset(at)], []byte("\n"))
}
