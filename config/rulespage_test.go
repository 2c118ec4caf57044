package config

import (
	"encoding/json"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy"
)

// ruleExample is one line below an example of docs/rules.md: a call, and what becomes of it by which rule.
var ruleExample = regexp.MustCompile("^- `(\\S+)` `(\\{.*\\})`( at elevated)?( by a stranger)? → (\\w+)(?: `(\\S+)`)?\n$")

// TestRulesPageIsTrue runs the examples of docs/rules.md.
func TestRulesPageIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	tools := []*toolward.Tool{{Name: "shop__refund", Plugin: "shop", Schema: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"number"},"currency":{"type":"string"}}}`)}}
	for _, name := range []string{"write", "exec", "web_fetch"} {
		tools = append(tools, &toolward.Tool{Name: name, Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"command":{"type":"string"},"url":{"type":"string"}}}`)})
	}
	checked := 0
	for _, example := range strings.Split(string(raw), "```jsonc\n")[1:] {
		source, after, _ := strings.Cut(example, "```")
		loaded, err := Parse("docs/rules.md", []byte(source), CheckPolicy(tools, policy.Surroundings{}))
		if err != nil {
			t.Fatal(err)
		}
		snapshot, _, err := policy.Compile(loaded.File.Policy(), tools)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(after) {
			if strings.HasPrefix(line, "## ") {
				break
			}
			if !strings.HasPrefix(line, "- `") {
				continue
			}
			m := ruleExample.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("not an example: %s", line)
			}
			checked++
			j := snapshot.Judge(exampleCall(t, snapshot, m[1], m[2], m[3] != "", m[4] != ""))
			rule := ""
			for _, r := range j.Reasons {
				if r.Layer == "teg.rules" {
					rule = r.Rule
				}
			}
			if j.Verdict.String() != m[5] || rule != m[6] {
				t.Errorf("%s%s by rule %q: %+v", line, j.Verdict, rule, j.Reasons)
			}
		}
	}
	if checked < 13 {
		t.Errorf("the page has %d calls", checked)
	}
}

// exampleCall is a call with the facts that its tool would find.
func exampleCall(t *testing.T, s *policy.Snapshot, name, arguments string, tense, stranger bool) *toolward.Request {
	caller := toolward.Caller{Agent: "main", Owner: !stranger, Context: "main", Workspace: "/ws"}
	if stranger {
		caller.Context = "group"
	}
	tool, reason := s.Find(caller, name)
	if tool == nil {
		t.Fatal(reason)
	}
	params, err := s.Decode(tool, json.RawMessage(arguments))
	if err != nil {
		t.Fatal(err)
	}
	r := &toolward.Request{Tool: tool, Params: params, Level: toolward.Normal, Call: toolward.Call{Caller: caller, Session: "agent:main:x", Host: toolward.HostGateway}}
	if tense {
		r.Level = toolward.Elevated
	}
	switch name {
	case "write":
		real := path.Join("/ws", params.Text("path"))
		where, err := place.New(place.Layout{Workspace: "/ws", Home: "/home/u", StateDir: "/home/u/.toolward", ConfigFile: "/home/u/.toolward/c"})
		if err != nil {
			t.Fatal(err)
		}
		r.Facts = toolward.Facts{Mutates: true, Targets: []toolward.Target{{Path: params.Text("path"), Real: real, Op: toolward.OpWrite, Zone: where.Classify(real).Word(), Kind: "missing"}}}
	case "exec":
		r.Facts = toolward.Facts{Mutates: true, Command: params.Text("command")}
	case "web_fetch":
		r.Facts = toolward.Facts{URLs: []string{params.Text("url")}, Hosts: []string{params.Text("url")}}
	}
	return r
}
