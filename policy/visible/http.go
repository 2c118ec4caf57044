package visible

import (
	"slices"

	"github.com/toolward/toolward"
)

// httpDenied are tools that the HTTP tool endpoint does not offer unless they are re-opened by name: whoever holds
// its token could otherwise run commands, change files, or make the gateway act later or elsewhere.
var httpDenied = [...]string{
	"sessions_spawn", "sessions_send", "cron", "gateway", "whatsapp_login", "exec", "apply_patch", "nodes",
	"process", "write", "edit",
}

// HTTPDenied lists the tools that the HTTP tool endpoint does not offer unless gateway.tools.allow names them.
func HTTPDenied() []string { return slices.Clone(httpDenied[:]) }

// httpRule is the cut for the HTTP tool endpoint.
type httpRule struct {
	reopened []string
	deny     Names
}

func newHTTPRule(t HTTPTools, isPlugin func(string) bool) httpRule {
	r := httpRule{deny: NewNames(t.Deny, isPlugin)}
	for _, entry := range t.Allow {
		r.reopened = append(r.reopened, NormalizeName(entry))
	}
	return r
}

// httpLayer is the label of the cut.
const httpLayer = "http gateway.tools"

// hides says why the endpoint does not offer a tool. Owner-only tools are cut before.
func (r *httpRule) hides(tool, plugin string) (toolward.Reason, bool) {
	if entry, denied := r.deny.Match(tool, plugin); denied {
		return toolward.Reason{Layer: httpLayer, Rule: "gateway.tools.deny", Matched: entry, Text: "gateway.tools.deny denies it over HTTP"}, true
	}
	if slices.Contains(httpDenied[:], tool) && !slices.Contains(r.reopened, tool) {
		return toolward.Reason{Layer: httpLayer, Rule: "gateway.tools.allow", Text: "it is not offered over HTTP unless gateway.tools.allow names it"}, true
	}
	return toolward.Reason{}, false
}
