// Embed opens a gateway inside a program of its own: with one tool, a policy and somebody who answers, and calls the tool.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/gateway"
)

// The policy: greetings ask. No command of this program's runs, so that nothing needs a sandbox.
const policy = `{ "teg": { "tools": { "greet": "needs_approval" } }, "agents": { "defaults": { "sandbox": { "mode": "off" } } } }`

var greet = &toolward.Tool{
	Name:   "greet",
	Schema: []byte(`{ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] }`),
	Run: func(_ context.Context, r *toolward.Request) (toolward.Result, error) {
		return toolward.TextResult("Hello, " + r.Params.Text("name") + "."), nil
	},
}

// owner lets Ada be greeted, and nobody else.
func owner(_ context.Context, q *toolward.Question) toolward.Answer {
	if q.Request.Params.Text("name") == "Ada" {
		return toolward.Answer{Decision: toolward.AllowOnce, By: "owner"}
	}
	return toolward.Answer{Decision: toolward.DenyCall, By: "owner", Reason: "a stranger"}
}

func main() {
	home, err := os.MkdirTemp("", "embed")
	if err == nil {
		defer os.RemoveAll(home)
		err = run(context.Background(), home)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, home string) error {
	g, err := gateway.Open(ctx, gateway.Options{
		Home: home, Configuration: []byte(policy), Tools: []*toolward.Tool{greet}, Approver: gateway.Answering(owner),
	})
	if err != nil {
		return err
	}
	defer g.Close()
	for _, name := range []string{"Ada", "Mallory"} {
		result, err := g.Call(ctx, toolward.Call{
			Tool: "greet", Arguments: fmt.Appendf(nil, `{"name":%q}`, name), Session: "agent:main:embed", Caller: toolward.Caller{Agent: "main"},
		})
		fmt.Println(name, result.Content, err)
	}
	return nil
}
