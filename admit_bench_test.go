package toolward_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy"
)

// BenchmarkAdmit is a call from its bytes to its pass and its end, through the real policy with collaborators that keep
// nothing: what the gateway itself adds.
func BenchmarkAdmit(b *testing.B) {
	tool := &toolward.Tool{
		Name:   "read",
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"]}`),
		Facts: func(_ context.Context, r *toolward.Request) (toolward.Facts, error) {
			path := r.Params.Text("path")
			return toolward.Facts{Targets: []toolward.Target{{Path: path, Real: "/ws/" + path, Op: toolward.OpRead, Zone: "workspace", Kind: "file", Links: 1}}}, nil
		},
	}
	snapshot, _, err := policy.Compile(policy.Config{}, []*toolward.Tool{tool})
	if err != nil {
		b.Fatal(err)
	}
	gateway, err := toolward.New(toolward.Config{
		Policy: policy.NewLive(snapshot), Approver: &gatetest.Approver{}, Auditor: forgetful{}, Sessions: &gatetest.Sessions{Current: toolward.Normal},
	})
	if err != nil {
		b.Fatal(err)
	}
	call := toolward.Call{
		ID: "1", Run: "run-7", Tool: "read", Arguments: json.RawMessage(`{"path":"src/server/list.go","limit":200}`),
		Session: "agent:coder:mcp:laptop:2f1c", Surface: toolward.SurfaceMCP, WorkDir: "/ws", Host: toolward.HostGateway,
		Caller: toolward.Caller{Agent: "coder", Context: "main", Client: "bench 1.0", Workspace: "/ws"},
	}
	b.ReportAllocs()
	for b.Loop() {
		pass, err := gateway.Admit(b.Context(), call)
		if err != nil {
			b.Fatal(err)
		}
		if err := pass.Close(b.Context(), toolward.OutcomeRecord{Status: toolward.StatusUnused}); err != nil {
			b.Fatal(err)
		}
	}
}

// forgetful keeps no record.
type forgetful struct{}

func (forgetful) Decide(context.Context, *toolward.DecisionRecord) (toolward.RecordID, error) {
	return 1, nil
}

func (forgetful) Conclude(context.Context, toolward.RecordID, *toolward.OutcomeRecord) error {
	return nil
}
