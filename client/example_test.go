package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/client"
)

// A program asks before it runs a command, and runs it only if a person said so.
func ExampleClient_AskCommand() {
	gateway := startGateway() // the program would connect to ws://127.0.0.1:7411
	defer gateway.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer somebodyAnswers(ctx, gateway.desk("desk"), toolward.AllowOnce)()

	c, err := client.Dial(ctx, gateway.options("deployer"))
	if err != nil {
		fmt.Println("not connected:", err)
		return
	}
	defer c.Close()
	asked, err := c.AskCommand(ctx, client.Command{
		Common:   client.Common{Key: "deploy 2026-11-21", Agent: "deployer", Timeout: time.Minute},
		Text:     "make deploy",
		Argv:     []string{"make", "deploy"},
		WorkDir:  "/srv/shop",
		Severity: toolward.Warning,
	})
	if err != nil {
		fmt.Println("not asked:", err)
		return
	}
	answer, err := asked.Wait(ctx)
	if err != nil || !answer.Decision.Allows() {
		fmt.Println("not allowed:", answer.Decision, err)
		return
	}
	fmt.Println("make deploy may run:", answer.Decision)
	// Output: make deploy may run: allow-once
}

// A program asks before it makes a call that is no command.
func ExampleClient_AskCall() {
	gateway := startGateway()
	defer gateway.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer somebodyAnswers(ctx, gateway.desk("desk"), toolward.DenyCall)()

	c, err := client.Dial(ctx, gateway.options("mailer"))
	if err != nil {
		fmt.Println("not connected:", err)
		return
	}
	defer c.Close()
	asked, err := c.AskCall(ctx, client.Call{
		Tool: "send_mail", Title: "Mail to all customers", Arguments: json.RawMessage(`{"to":"all","subject":"Hello"}`),
		Targets: []string{"all@example.org"}, Severity: toolward.Warning, Class: toolward.NeedsApproval, Level: toolward.Normal,
	})
	if err != nil {
		fmt.Println("not asked:", err)
		return
	}
	answer, err := asked.Wait(ctx)
	fmt.Println(answer.Decision, answer.Decision.Allows(), err)
	// Output: deny false <nil>
}

// A program shows what waits, and answers it as it was shown. Its device was approved by a signed-in person.
func ExampleClient_Resolve() {
	gateway := startGateway()
	defer gateway.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	desk := gateway.desk("desk")
	defer desk.Close()
	news := desk.Watch(ctx)

	agent := gateway.dial("agent")
	defer agent.Close()
	if _, err := agent.AskCommand(ctx, client.Command{Text: "rm -r build"}); err != nil {
		fmt.Println("not asked:", err)
		return
	}
	for event := range news {
		switch event.Name {
		case client.Missed:
			waiting, err := desk.Pending(ctx)
			fmt.Println("listed anew:", len(waiting), err)
		case client.Requested:
			shown := event.Approval
			fmt.Println("may it run?", shown.Request.Command)
			time.Sleep(time.Until(shown.Created.Add(time.Second))) // a person reads
			err := resolve(ctx, desk, shown, client.Response{Decision: toolward.DenyCall, Reason: "keep the last build"})
			fmt.Println("answered:", err)
		case client.Resolved:
			fmt.Println("it is over:", event.Approval.Decision, event.Approval.Reason)
			return
		}
	}
	// Output:
	// may it run? rm -r build
	// answered: <nil>
	// it is over: deny keep the last build
}

// A program reads which tools an agent of the gateway has.
func ExampleClient_Catalog() {
	gateway := startGateway()
	defer gateway.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Dial(ctx, client.Options{Address: gateway.Address, Token: secret, Scopes: []string{client.ScopeRead}})
	if err != nil {
		fmt.Println("not connected:", err)
		return
	}
	defer c.Close()
	list, err := c.Catalog(ctx, "")
	if err != nil {
		fmt.Println("no catalogue:", err)
		return
	}
	for _, group := range list.Groups {
		for _, tool := range group.Tools {
			fmt.Println(group.Label, tool.Name, tool.Description)
		}
	}
	// Output: Files read reads a file
}

// somebodyAnswers is a person at a desk, who answers one question. What it returns waits until they have left.
func somebodyAnswers(ctx context.Context, desk *client.Client, decision toolward.Decision) (leave func()) {
	news, left := desk.Watch(ctx), make(chan struct{})
	go func() {
		defer close(left)
		for event := range news {
			if event.Name == client.Requested {
				must(resolve(ctx, desk, event.Approval, client.Response{Decision: decision}))
				return
			}
		}
	}()
	return func() { <-left; must(desk.Close()) }
}
