package mcp

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestClientIsReadAsTheSDKReadsIt compares the short way with the SDK's own, for what passes the SDK's check.
func TestClientIsReadAsTheSDKReadsIt(t *testing.T) {
	for _, test := range []struct{ name, meta string }{
		{"nothing", `{}`},
		{"only names", `{"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"}}`},
		{"no version", `{"io.modelcontextprotocol/clientInfo":{"name":"a"}}`},
		{"no capabilities", `{"io.modelcontextprotocol/clientCapabilities":{}}`},
		{"forms only", `{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`},
		{"elicitation without a mode", `{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`},
		{"links", `{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}`},
		{"links that are null", `{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":null}}}`},
		{"elicitation that is null", `{"io.modelcontextprotocol/clientCapabilities":{"elicitation":null}}`},
		{"another spelling", `{"io.modelcontextprotocol/clientCapabilities":{"Elicitation":{"URL":{}}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var meta sdk.Meta
			if err := json.Unmarshal([]byte(test.meta), &meta); err != nil {
				t.Fatal(err)
			}
			request := &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Meta: meta}}
			if diff := cmp.Diff(request.ClientInfo(), clientInfo(request)); diff != "" {
				t.Errorf("client (-SDK +ours)\n%s", diff)
			}
			can := request.ClientCapabilities()
			want := can != nil && can.Elicitation != nil && can.Elicitation.URL != nil
			if got := opensLinks(request); got != want {
				t.Errorf("opens links: %v, by the SDK %v", got, want)
			}
		})
	}
}
