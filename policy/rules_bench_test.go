package policy

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/toolward/toolward"
)

// ruleKinds are conditions of which n different ones can stand for a set of rules. None of them holds for the calls that
// are judged.
var ruleKinds = []struct {
	name string
	when func(i int) string
}{
	{"equal", func(i int) string { return fmt.Sprintf(`params.path == "src/other%d.go"`, i) }},
	{"path", func(i int) string { return fmt.Sprintf(`facts.paths.exists(p, pathUnder(p, "/srv/project%d"))`, i) }},
	{"host", func(i int) string { return fmt.Sprintf(`facts.urls.exists(u, hostIn(u, ["*.host%d.example"]))`, i) }},
	{"mixed", func(i int) string {
		return fmt.Sprintf([]string{
			`caller.agent == "agent%d" && level == "elevated"`, `pathUnder(params.path, "/srv/%d")`,
			`facts.recipients.exists(r, r == "slack:default:c%d")`, `facts.action == "a%d" && params.n > 3`,
		}[i%4], i)
	}},
	{"pattern", func(i int) string { return fmt.Sprintf(`params.path.matches("^other%d/")`, i) }},
	{"contains", func(i int) string { return fmt.Sprintf(`params.path.contains("other%d")`, i) }}, // nothing to look it up by
}

// BenchmarkRules judges one call with 1, 100 and 1,000 rules: all for its tool, and spread over 100 tools.
func BenchmarkRules(b *testing.B) {
	r := request(b, "write", json.RawMessage(`{"path":"/ws/src/a.go","content":"x"}`), toolward.Facts{
		Targets: []toolward.Target{{Path: "src/a.go", Real: "/ws/src/a.go", Op: toolward.OpWrite, Zone: "workspace", Kind: "file", Links: 1}},
		URLs:    []string{"https://docs.example.org/x"},
	})
	for _, kind := range ruleKinds {
		for _, spread := range []bool{false, true} {
			ratio := map[int]float64{}
			for _, n := range []int{1, 100, 1000} {
				var rules []Rule
				for i := range n {
					one := Rule{Name: fmt.Sprint("r", i), Tool: "write", Then: []string{"ask", "deny", "allow"}[i%3], Reason: "because", When: kind.when(i)}
					if spread && i%100 != 0 {
						one.Tool = fmt.Sprint("server__tool", i%100)
					}
					rules = append(rules, one)
				}
				s := compile(b, Config{TEG: TEG{Rules: rules}}, coreTools()...)
				where := "one-tool"
				if spread {
					where = "spread"
				}
				b.Run(fmt.Sprintf("%s/%s/%d", kind.name, where, n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if j := s.Judge(r); j.Verdict != toolward.Ask {
							b.Fatal(j)
						}
					}
					ratio[n] = float64(b.Elapsed().Nanoseconds()) / float64(b.N)
					if ratio[1] > 0 {
						b.ReportMetric(ratio[n]/ratio[1], "x-of-1")
					}
				})
			}
		}
	}
}
