package socket_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval/socket"
)

// A program shows questions to the person at the machine; another one asks. Both know the path and the secret from
// exec-approvals.json.
func Example() {
	dir, err := os.MkdirTemp("", "tws") // of mode 0700, as both ends demand
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path, secret := filepath.Join(dir, "exec-approvals.sock"), "the secret of the file"

	listener, err := socket.Listen(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	shows := socket.NewServer(secret, socket.Handler{
		Call: func(_ context.Context, _ string, c *socket.CallRequest) (decision, reason string) {
			fmt.Println("may it?", c.Title)
			return toolward.DenyCall.String(), "not on a Friday" // what the person said
		},
	}, nil)
	served := make(chan error, 1)
	go func() { served <- shows.Serve(listener) }()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	asks := socket.Client{Path: path, Token: secret}
	decision, reason, err := asks.Call(ctx, "call-1", &socket.CallRequest{Kind: "tool", Tool: "deploy", Title: "deploy the shop"})
	fmt.Println(decision.Allows(), decision, reason, err)

	stranger := socket.Client{Path: path, Token: "a guess"}
	decision, _, err = stranger.Call(ctx, "call-2", &socket.CallRequest{Kind: "tool", Tool: "deploy", Title: "deploy the shop"})
	fmt.Println(decision.Allows(), err)

	shows.Close()
	fmt.Println(<-served)
	// Output:
	// may it? deploy the shop
	// false deny not on a Friday <nil>
	// false invalid auth (INVALID_REQUEST, hmac)
	// <nil>
}
