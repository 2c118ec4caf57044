package api

import (
	"testing"

	"github.com/toolward/toolward/identity"
)

// rightOf is what each route of the API needs. A right that changes is a decision: it changes here as well.
var rightOf = map[string]identity.Right{
	"GET /v1/status":                                 identity.RightRequest,
	"GET /v1/approvals":                              identity.RightWatch,
	"GET /v1/approvals/events":                       identity.RightAnswer,
	"GET /v1/approvals/{id}":                         identity.RightWatch,
	"POST /v1/approvals/{id}":                        identity.RightAnswer,
	"GET /v1/decisions":                              identity.RightWatch,
	"GET /v1/grants":                                 identity.RightWatch,
	"POST /v1/grants/{id}/revoke":                    identity.RightAdmin,
	"GET /v1/audit":                                  identity.RightWatch,
	"GET /v1/audit/tail":                             identity.RightWatch,
	"GET /v1/audit/verify":                           identity.RightWatch,
	"GET /v1/audit/export":                           identity.RightWatch,
	"GET /v1/sessions":                               identity.RightWatch,
	"GET /v1/anomalies":                              identity.RightWatch,
	"GET /v1/level":                                  identity.RightWatch,
	"POST /v1/level":                                 identity.RightClearLevel,
	"DELETE /v1/level":                               identity.RightClearLevel,
	"GET /v1/tokens":                                 identity.RightAdmin,
	"POST /v1/tokens":                                identity.RightAdmin,
	"POST /v1/tokens/{id}/revoke":                    identity.RightAdmin,
	"POST /v1/passphrase":                            identity.RightAdmin,
	"POST /v1/explain":                               identity.RightWatch,
	"GET /v1/matrix":                                 identity.RightWatch,
	"GET /v1/matrix/tool":                            identity.RightWatch,
	"GET /v1/layers":                                 identity.RightWatch,
	"GET /v1/config/pending":                         identity.RightWatch,
	"POST /v1/config/apply":                          identity.RightConfigure,
	"GET /v1/exec-approvals":                         identity.RightAdmin,
	"PUT /v1/exec-approvals":                         identity.RightConfigure,
	"POST /v1/exec-approvals/allowlist":              identity.RightConfigure,
	"DELETE /v1/exec-approvals/allowlist":            identity.RightConfigure,
	"GET /v1/devices":                                identity.RightAdmin,
	"POST /v1/devices/{id}/approve":                  identity.RightAdmin,
	"POST /v1/devices/{id}/reject":                   identity.RightAdmin,
	"POST /v1/devices/{id}/remove":                   identity.RightAdmin,
	"GET /v1/sign-ins":                               identity.RightAdmin,
	"POST /v1/sign-ins/{id}/end":                     identity.RightAdmin,
	"GET /v1/sandboxes":                              identity.RightWatch,
	"GET /v1/sandboxes/{name}":                       identity.RightWatch,
	"POST /v1/sandboxes/prune":                       identity.RightAdmin,
	"POST /v1/sandboxes/{name}/stop":                 identity.RightAdmin,
	"POST /v1/sandboxes/{name}/remove":               identity.RightAdmin,
	"GET /v1/sandboxes/{name}/ports":                 identity.RightWatch,
	"GET /v1/forwards":                               identity.RightWatch,
	"POST /v1/sandboxes/{name}/forwards":             identity.RightAdmin,
	"POST /v1/sandboxes/{name}/forwards/{port}/stop": identity.RightAdmin,
	"GET /v1/undo":                                   identity.RightAnswer,
	"GET /v1/undo/{id}":                              identity.RightAnswer,
	"POST /v1/undo":                                  identity.RightAdmin,
	"POST /v1/shutdown":                              identity.RightAdmin,
}

func TestTheRightOfEachRoute(t *testing.T) {
	rows := (&Server{}).rows()
	for _, row := range rows {
		if want, known := rightOf[row.Pattern]; row.Does.Right() != want || !known {
			t.Errorf("%s needs %q, want %q", row.Pattern, row.Does.Right(), want)
		}
	}
	if len(rows) != len(rightOf) {
		t.Errorf("%d routes, want %d", len(rows), len(rightOf))
	}
}
