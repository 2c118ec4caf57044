package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a client says about itself comes with every request of the newest protocol. The SDK has checked it, and would
// encode and decode it once more for each question, with a buffer of 32 KiB; here it is read where it stands.

// clientInfo names the client program; nil if it does not.
func clientInfo(req *sdk.CallToolRequest) *sdk.Implementation {
	info, ok := req.Params.Meta[sdk.MetaKeyClientInfo].(map[string]any)
	if !ok {
		return req.ClientInfo()
	}
	name, _ := info["name"].(string)
	version, _ := info["version"].(string)
	return &sdk.Implementation{Name: name, Version: version}
}

// opensLinks reports whether the client can lead its user to an address.
func opensLinks(req *sdk.CallToolRequest) bool {
	if can, ok := req.Params.Meta[sdk.MetaKeyClientCapabilities].(map[string]any); ok {
		elicitation, _ := can["elicitation"].(map[string]any)
		return elicitation["url"] != nil
	}
	can := req.ClientCapabilities()
	return can != nil && can.Elicitation != nil && can.Elicitation.URL != nil
}
