package policy

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/toolward/toolward"
)

// rules is a configuration of n entries spread over lists and overrides, with the tools that they name.
func rules(n int) (Config, []*toolward.Tool) {
	c := Config{TEG: TEG{Tools: map[string]string{}}, Agents: []Agent{{ID: "main"}}}
	tools := coreTools()
	for i := range n {
		name := fmt.Sprintf("server__tool_%d", i)
		switch i % 5 {
		case 0:
			c.TEG.Tools[name] = "needs_approval"
			tools = append(tools, plugin("server", name)...)
		case 1:
			c.TEG.Tools[fmt.Sprintf("server__tool_%d*", i)] = "blocked"
		case 2:
			c.TEG.Tools[fmt.Sprintf("message.action%d", i)] = "blocked"
		case 3:
			c.Tools.Deny = append(c.Tools.Deny, name)
		default:
			c.Agents[0].Tools.Deny = append(c.Agents[0].Tools.Deny, name)
		}
	}
	return c, tools
}

func benchmarkJudge(b *testing.B, n int) {
	c, tools := rules(n)
	s, _, err := Compile(c, tools)
	if err != nil {
		b.Fatal(err)
	}
	write := request(b, "write", json.RawMessage(`{"path":"src/a.go","content":"x"}`), toolward.Facts{
		Targets: []toolward.Target{{Path: "src/a.go", Real: "/ws/src/a.go", Op: toolward.OpWrite, Place: "workspace", Kind: "file", Links: 1}},
	})
	message := request(b, "message", json.RawMessage(`{"action":"send","to":"x"}`), toolward.Facts{Recipients: []string{"slack:default:x"}})
	exec := request(b, "exec", json.RawMessage(`{"command":"go test ./...","workdir":"/ws"}`), toolward.Facts{Command: "go test ./..."})
	requests := []*toolward.Request{write, message, exec}
	for _, r := range requests {
		if t, _ := s.Find(r.Call.Caller, r.Tool.Name); t != nil {
			r.Tool = t
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r := requests[i%len(requests)]
		i++
		if _, reason := s.Find(r.Call.Caller, r.Tool.Name); reason.Text != "" {
			b.Fatal(reason)
		}
		if j := s.Judge(r); j.Verdict != toolward.Ask {
			b.Fatal(j)
		}
	}
}

func BenchmarkJudge100Rules(b *testing.B)  { benchmarkJudge(b, 100) }
func BenchmarkJudge1000Rules(b *testing.B) { benchmarkJudge(b, 1000) }

func BenchmarkDecode(b *testing.B) {
	s, _, err := Compile(Config{}, coreTools())
	if err != nil {
		b.Fatal(err)
	}
	raw := json.RawMessage(`{"command":"go test ./...","workdir":"/ws"}`)
	tool := s.tools["exec"]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Decode(tool, raw); err != nil {
			b.Fatal(err)
		}
	}
}
