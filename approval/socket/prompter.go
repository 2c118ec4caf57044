package socket

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

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
		asks := callFrom(r)
		d, err = c.Command(ctx, r.ID, &CommandRequest{
			Command: r.Request.Command, WorkDir: r.Request.WorkDir, Host: asks.Host, Agent: asks.Agent, Session: asks.Session,
		})
	}
	if err != nil {
		return "", program, err
	}
	return d.String(), program, nil
}

// callFrom is what the program is shown: what every other screen shows. What a frame has no field for stands in its
// description, as far as it fits.
func callFrom(r *approval.Record) *CallRequest {
	d, c := r.Request, callOfView(r.View())
	c.Kind, c.Tool, c.CallID, c.Class, c.Preview, c.Digest = string(r.Kind), d.Tool, d.CallID, d.Class.String(), d.Preview, d.Digest
	c.Host = string(d.Host)
	if !d.ByProgram {
		c.Session, c.Agent = string(d.Session), d.Agent
	}
	return c
}

func callOfView(v *approval.View) *CallRequest {
	c := &CallRequest{
		Title: v.Title, Severity: v.Severity.String(), Level: v.Level.String(), Agent: v.Agent, Binding: v.Digest, Diff: v.Diff,
		Targets: v.Targets, Command: v.Command, WorkDir: v.Directory, Allowed: []string{"allow-once", "deny"},
		TimeoutMs: max(time.Until(v.Expires).Milliseconds(), 1),
	}
	for _, reason := range v.Reasons {
		c.Reasons = append(c.Reasons, reason.Text)
	}
	c.Description = bounded(strings.TrimSpace(v.Says + "\n\n" + v.Remarks()))
	return c
}

const notShown = "\n… the rest does not fit in this question: see the console"

// bounded shortens a description to what a frame may hold, and says so.
func bounded(text string) string {
	if utf8.RuneCountInString(text) <= maxDescription {
		return text
	}
	return string([]rune(text)[:maxDescription-utf8.RuneCountInString(notShown)]) + notShown
}
