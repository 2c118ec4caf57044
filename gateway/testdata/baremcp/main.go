// Command baremcp serves the server of package baremcp in a process of its own.
//
//	baremcp              on standard input and output
//	baremcp unix PATH    for each connection to a local socket
//	baremcp http         over HTTP; it prints the addresses with sessions and without
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward/internal/baremcp"
)

func main() {
	var err error
	switch ctx := context.Background(); {
	case len(os.Args) == 1:
		err = baremcp.NewServer().Run(ctx, &sdk.StdioTransport{})
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
		go func() { _ = baremcp.NewServer().Run(ctx, &sdk.IOTransport{Reader: conn, Writer: conn}) }()
	}
}

func serveHTTP() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := baremcp.NewServer()
	same := func(*http.Request) *sdk.Server { return server }
	mux := http.NewServeMux()
	mux.Handle("/sessions", sdk.NewStreamableHTTPHandler(same, nil))
	mux.Handle("/stateless", sdk.NewStreamableHTTPHandler(same, &sdk.StreamableHTTPOptions{Stateless: true}))
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mux)
}
