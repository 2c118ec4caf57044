// Command baremcp is the tool "read" behind nothing but the MCP SDK, on standard input and output: what a call costs
// without Toolward.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	server := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "read", InputSchema: json.RawMessage(`{"type":"object"}`)}, read)
	if err := server.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
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
