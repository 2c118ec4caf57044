package console

import (
	"net/http"
	"testing"

	"github.com/toolward/toolward/identity"
)

// rightOf is what each route of the console needs. A right that changes is a decision: it changes here as well.
var rightOf = map[string]identity.Right{
	"GET /{$}":                                identity.RightAnswer,
	"GET /events":                             identity.RightAnswer,
	"GET /approvals/{id}":                     identity.RightWatch,
	"POST /approvals/{id}":                    identity.RightAnswer,
	"POST /approvals":                         identity.RightAnswer,
	"GET /approvals/{id}/past/{proposal}":     identity.RightWatch,
	"GET /decisions":                          identity.RightWatch,
	"GET /record/{seq}":                       identity.RightWatch,
	"GET /log":                                identity.RightWatch,
	"GET /log/events":                         identity.RightWatch,
	"GET /tools":                              identity.RightWatch,
	"GET /tools/one":                          identity.RightWatch,
	"GET /tools/layers":                       identity.RightWatch,
	"GET /sessions":                           identity.RightWatch,
	"GET /sessions/one":                       identity.RightWatch,
	"POST /sessions/floor":                    identity.RightClearLevel,
	"POST /sessions/clear":                    identity.RightClearLevel,
	"GET /anomalies":                          identity.RightWatch,
	"GET /undo":                               identity.RightAnswer,
	"GET /undo/one":                           identity.RightAnswer,
	"POST /undo":                              identity.RightAdmin,
	"GET /sandboxes":                          identity.RightWatch,
	"GET /sandboxes/one":                      identity.RightWatch,
	"GET /sandboxes/events":                   identity.RightWatch,
	"POST /sandboxes/stop":                    identity.RightAdmin,
	"POST /sandboxes/recreate":                identity.RightAdmin,
	"POST /sandboxes/prune":                   identity.RightAdmin,
	"POST /sandboxes/forward":                 identity.RightAdmin,
	"POST /sandboxes/unforward":               identity.RightAdmin,
	"GET /grants":                             identity.RightWatch,
	"POST /grants/{id}/revoke":                identity.RightAdmin,
	"GET /sign-ins":                           identity.RightAdmin,
	"POST /sign-ins/{id}/end":                 identity.RightAdmin,
	"GET /tokens":                             identity.RightAdmin,
	"POST /tokens":                            identity.RightAdmin,
	"POST /tokens/{id}/revoke":                identity.RightAdmin,
	"GET /passkeys":                           identity.RightAdmin,
	"POST /passkeys/presence":                 identity.RightAdmin,
	"POST /passkeys/new":                      identity.RightAdmin,
	"POST /passkeys":                          identity.RightAdmin,
	"POST /passkeys/{id}/rename":              identity.RightAdmin,
	"POST /passkeys/{id}/remove":              identity.RightAdmin,
	"GET /devices":                            identity.RightAdmin,
	"POST /devices/{id}/approve":              identity.RightAdmin,
	"POST /devices/{id}/reject":               identity.RightAdmin,
	"POST /devices/{id}/remove":               identity.RightAdmin,
	"POST /devices/{id}/tokens/{role}/rotate": identity.RightAdmin,
	"POST /devices/{id}/tokens/{role}/revoke": identity.RightAdmin,
	"GET /passphrase":                         identity.RightAdmin,
	"POST /passphrase":                        identity.RightAdmin,
	"POST /sign-out":                          identity.RightWatch,
	"GET /browser":                            identity.RightWatch,
	"POST /config":                            identity.RightConfigure,
	"GET /metrics":                            identity.RightWatch,
}

func TestTheRightOfEachRoute(t *testing.T) {
	rows := (&Server{metrics: http.NotFoundHandler()}).rows()
	for _, row := range rows {
		if want, known := rightOf[row.Pattern]; row.Does.Right() != want || !known {
			t.Errorf("%s needs %q, want %q", row.Pattern, row.Does.Right(), want)
		}
	}
	if len(rows) != len(rightOf) {
		t.Errorf("%d routes, want %d", len(rows), len(rightOf))
	}
}
