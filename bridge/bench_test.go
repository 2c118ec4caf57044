package bridge_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/toolward/toolward"
)

// BenchmarkPreToolUse is the adapter alone: from the client's event to its answer, on a gateway that decides and
// records in memory.
func BenchmarkPreToolUse(b *testing.B) {
	for _, name := range []string{"PreToolUse-Bash.json", "PreToolUse-Read.json", "PreToolUse-mcp.json"} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, toolward.Allow)
			body := r.recorded(name)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				one := bytes.Replace(body, []byte(`"toolu_`), fmt.Appendf(nil, `"toolu_%d_`, n), 1)
				request := httptest.NewRequest("POST", "/v1/hook/claude-code/PreToolUse", bytes.NewReader(one))
				request.Header.Set("Toolward-Project-Dir", r.project)
				r.handler.ServeHTTP(httptest.NewRecorder(), request)
			}
		})
	}
}
