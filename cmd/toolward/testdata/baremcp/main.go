// Command baremcp is a tool that reads files behind nothing but the MCP SDK: what a call costs without Toolward.
//
//	baremcp              on standard input and output
//	baremcp unix PATH    for each connection to a local socket
//	baremcp http         over HTTP; it prints the addresses with sessions and without
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	var err error
	switch ctx := context.Background(); {
	case len(os.Args) == 1:
		err = newServer().Run(ctx, &sdk.StdioTransport{})
	case os.Args[1] == "unix":
		err = serveSocket(ctx, os.Args[2])
	default:
		err = serveHTTP()
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serveSocket(ctx context.Context, path string) error {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() { _ = newServer().Run(ctx, &sdk.IOTransport{Reader: conn, Writer: conn}) }()
	}
}

func serveHTTP() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := newServer()
	same := func(*http.Request) *sdk.Server { return server }
	mux := http.NewServeMux()
	mux.Handle("/sessions", sdk.NewStreamableHTTPHandler(same, nil))
	mux.Handle("/stateless", sdk.NewStreamableHTTPHandler(same, &sdk.StreamableHTTPOptions{Stateless: true}))
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mux)
}

func newServer() *sdk.Server {
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
