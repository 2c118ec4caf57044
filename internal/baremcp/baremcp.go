// Package baremcp is a tool that reads files behind nothing but the MCP SDK: what benchmarks measure a call through
// Toolward against.
package baremcp

import (
	"context"
	"encoding/json"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// NewServer makes a server with the one tool "read", which takes a path.
func NewServer() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "read", InputSchema: json.RawMessage(`{"type":"object"}`)}, read)
	return server
}

func read(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var arguments struct{ Path string }
	if err := json.Unmarshal(r.Params.Arguments, &arguments); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(arguments.Path)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, nil
}
