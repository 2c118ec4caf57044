package mcp_test

import (
	"encoding/json"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// A call whose approval may wait for days is answered before its client gives up, and the same call, made again, gets
// people's answer: it runs once.
func TestLastingApprovals(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t, t.TempDir())
			t.Cleanup(func() { o.close(t) })
			o.policy.JudgeFunc = func(*toolward.Request) toolward.Judgment {
				return toolward.Judgment{Verdict: toolward.Ask, Class: toolward.Classification{Class: toolward.NeedsApproval}, Wait: 72 * time.Hour}
			}
			if err := o.parts.Approvals.Configure(approval.Settings{Absent: approval.AbsentWait, Timeout: 300 * time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			session := o.stdio(t, version, nil)
			call := func() *sdk.CallToolResult {
				t.Helper()
				result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "act", Arguments: json.RawMessage(`{"n":1}`)})
				if err != nil {
					t.Fatal(err)
				}
				return result
			}
			var first, second struct {
				Status, Tool, ApprovalID, Message string
				ExpiresAtMs                       int64
			}
			for _, waits := range []any{&first, &second} {
				result := call()
				if err := json.Unmarshal([]byte(said(result)), waits); err != nil || !result.IsError {
					t.Fatalf("%s, %v", said(result), err)
				}
			}
			if first.Status != "approval-pending" || first.Tool != "act" || first != second || time.Until(time.UnixMilli(first.ExpiresAtMs)) < 71*time.Hour {
				t.Fatalf("%+v, then %+v", first, second)
			}
			o.answer(t, first.ApprovalID, "allow-once")
			if result := call(); result.IsError || said(result) != "done" {
				t.Errorf("after the answer: %s", said(result))
			}
			if result := call(); !result.IsError {
				t.Error("one answer let two calls run")
			}
			if len(o.ran) != 1 {
				t.Errorf("it ran %d times", len(o.ran))
			}
		})
	}
}

// said is the text of a result.
func said(result *sdk.CallToolResult) string {
	if len(result.Content) == 1 {
		if c, ok := result.Content[0].(*sdk.TextContent); ok {
			return c.Text
		}
	}
	return ""
}
