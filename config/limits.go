package config

import "github.com/toolward/toolward/builtin"

// Limits is the section "limits"; docs/limits.md shows every row with default and range.
type Limits struct {
	Pending              int64          `json:"pending,omitempty"`
	PendingPerSession    int64          `json:"pendingPerSession,omitempty"`
	PendingPerConnection int64          `json:"pendingPerConnection,omitempty"`
	ApprovalMaxMs        int64          `json:"approvalMaxMs,omitempty"`
	MessageBytes         int64          `json:"messageBytes,omitempty"`
	CallsPerSession      int64          `json:"callsPerSession,omitempty"`
	Tools                builtin.Config `json:"tools,omitzero" jsonschema:"the built-in tools; docs/tools.md"`
}
