package policy

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
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
			tools = append(tools, gatetest.Plugin("server", name)...)
		case 1:
			c.TEG.Tools[fmt.Sprintf("server__tool_%d*", i)] = "blocked"
			tools = append(tools, gatetest.Plugin("server", name)...)
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

// BenchmarkDecide finds the tool of a call and judges the call, without command analysis: what stands between a decoded
// call and its verdict. Each kind of call goes through 100 and 1,000 rules in turns, so that their ratio is of one moment.
func BenchmarkDecide(b *testing.B) {
	few, many := decided(b, 100), decided(b, 1000)
	for i := range few {
		b.Run(few[i].name, func(b *testing.B) {
			b.ReportAllocs()
			var fewTook, manyTook time.Duration
			for b.Loop() {
				fewTook += few[i].rounds(b)
				manyTook += many[i].rounds(b)
			}
			n := float64(b.N * decideRounds)
			b.ReportMetric(float64(fewTook.Nanoseconds())/n, "ns/decision")
			b.ReportMetric(float64(manyTook.Nanoseconds())/n, "ns/decision-1000rules")
			b.ReportMetric(float64(manyTook)/float64(fewTook), "x-of-100rules")
			b.ReportMetric(testing.AllocsPerRun(100, func() { few[i].decide(b) }), "allocs/decision")
		})
	}
}

// decision is a call that was decoded, and what a snapshot should say about it.
type decision struct {
	name string
	*Snapshot
	request *toolward.Request
	want    toolward.Verdict
}

// decided makes one call of each kind for a policy of n rules.
func decided(b *testing.B, n int) []decision {
	c, tools := rules(n)
	s, _, err := Compile(c, tools)
	if err != nil {
		b.Fatal(err)
	}
	list := []decision{
		{"read", s, request(b, "read", json.RawMessage(`{"path":"src/a.go"}`), target("workspace", toolward.OpRead)), toolward.Allow},
		{"write", s, request(b, "write", json.RawMessage(`{"path":"src/a.go","content":"x"}`), target("workspace", toolward.OpWrite)), toolward.Ask},
		{"message", s, request(b, "message", json.RawMessage(`{"action":"send","to":"x","text":"hello"}`), toolward.Facts{
			Action: "send", Recipients: []string{"slack:default:x"}, Outbound: []string{"hello"},
		}), toolward.Ask},
		{"fetch", s, request(b, "web_fetch", json.RawMessage(`{"url":"https://example.org/a?b=c"}`), toolward.Facts{
			URLs: []string{"https://example.org/a?b=c"}, Hosts: []string{"https://example.org:443"},
		}), toolward.Allow},
		{"exec", s, request(b, "exec", json.RawMessage(`{"command":"go test ./...","workdir":"/ws"}`), toolward.Facts{Command: "go test ./..."}), toolward.Ask},
		{"unlisted", s, request(b, "nodes", json.RawMessage(`{"action":"dance"}`), toolward.Facts{Action: "dance"}), toolward.Ask},
		{"plugin", s, request(b, "server__tool_0", json.RawMessage(`{}`), toolward.Facts{}), toolward.Ask},
		{"refused", s, request(b, "server__tool_1", json.RawMessage(`{}`), toolward.Facts{}), toolward.Deny},
	}
	for _, d := range list {
		d.request.Tool = s.Tool(d.request.Tool.Name)
	}
	return list
}

// decideRounds is how many decisions are timed at once: a clock costs as much as a part of one.
const decideRounds = 64

func (d *decision) rounds(b *testing.B) time.Duration {
	start := time.Now()
	for range decideRounds {
		d.decide(b)
	}
	return time.Since(start)
}

func (d *decision) decide(b *testing.B) {
	if found, reason := d.Find(d.request.Call.Caller, d.request.Tool.Name); found == nil {
		b.Fatal(reason)
	}
	if j := d.Judge(d.request); j.Verdict != d.want {
		b.Fatalf("%s: %+v", d.name, j)
	}
}

func BenchmarkDecode(b *testing.B) {
	s, _, err := Compile(Config{}, coreTools())
	if err != nil {
		b.Fatal(err)
	}
	raw := json.RawMessage(`{"command":"go test ./...","workdir":"/ws"}`)
	tool := s.Tool("exec")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Decode(tool, raw); err != nil {
			b.Fatal(err)
		}
	}
}
