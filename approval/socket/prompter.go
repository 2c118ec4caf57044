package socket

import (
	"context"
	"errors"
	"time"

	"github.com/toolward/toolward/approval"
)

// Prompter puts questions that nobody else can answer to the program that listens at a socket: it implements
// [approval.Prompter]. Its answers are not a person's sign-in. The manager takes a yes for this one call and a no from
// it, never an "always", and nothing at all about critical calls or in lockdown; and the operator has to have switched it
// on. Whatever runs under the same user and reads the secret could listen there instead.
type Prompter struct {
	// Address is where the program listens and its secret. It is asked anew for each question; two empty texts
	// mean that nobody listens.
	Address func() (path, token string)
}

var _ approval.Prompter = Prompter{}

// connectPatience is how long a listening program may take to take a connection.
const connectPatience = time.Second

func (p Prompter) client() Client {
	path, token := p.Address()
	return Client{Path: ExpandPath(path), Token: token}
}

// Reachable reports whether a program of ours listens.
func (p Prompter) Reachable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	return p.client().Reachable(ctx)
}

// Prompt asks with the authenticated frame. A program that does not know it closes without an answer; it is asked again
// about commands with the frame that other products know.
func (p Prompter) Prompt(ctx context.Context, r *approval.Record) (decision, by string, err error) {
	const program = "program at the approval socket"
	c := p.client()
	d, _, err := c.Call(ctx, r.ID, callFrom(r))
	if errors.Is(err, ErrNoAnswer) && ctx.Err() == nil && r.Kind == approval.KindExec {
		d, err = c.Command(ctx, r.ID, &CommandRequest{
			Command: r.Request.Command, WorkDir: r.Request.WorkDir, Host: string(r.Request.Host),
			Agent: r.Request.Agent, Session: string(r.Request.Session),
		})
	}
	if err != nil {
		return "", program, err
	}
	return d.String(), program, nil
}

// callFrom is what the program is shown: what every other surface is shown.
func callFrom(r *approval.Record) *CallRequest {
	d := r.Request
	c := &CallRequest{
		Kind: string(r.Kind), Tool: d.Tool, CallID: d.CallID, Title: d.Title, Description: d.Description, Severity: d.Severity.String(),
		Class: d.Class.String(), Level: d.Level.String(), Reasons: d.Reasons, Preview: d.Preview, Digest: d.Digest, Binding: r.Binding,
		Diff: d.Diff, Targets: d.Targets, Allowed: []string{"allow-once", "deny"}, Command: d.Command, WorkDir: d.WorkDir, Host: string(d.Host),
		Agent: d.Agent, Session: string(d.Session), TimeoutMs: max(r.ExpiresMs-time.Now().UnixMilli(), 1),
	}
	return c
}
