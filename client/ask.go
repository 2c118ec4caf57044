package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/schema"
)

// Common is what every question may say besides.
type Common struct {
	// Key makes a question the same one when it is put again: after a program was restarted, the repeat waits for the answer
	// to the first. It holds for exactly this question; with anything else in it, people are asked anew. A key is for one
	// run: choose another for the next. "" is a key that nobody else has.
	Key string

	Agent   string              // who wants to run it
	Session toolward.SessionKey // of the conversation
	Timeout time.Duration       // how long people have; 0 is the gateway's default
	Allowed []toolward.Decision // what people may answer; default once or not at all
}

// Command is a command that the program runs itself, if people allow it. Severity and Warnings are shown as this program's word: the gate
// has a reading of its own.
type Command struct {
	Common
	Text     string            // as it is run; required
	Argv     []string          // the same, if no shell takes it apart
	WorkDir  string            // absolute
	Env      map[string]string // variables that are set for it: people see their names, the question is bound to the values
	Resolved string            // path of the program that is started
	Severity toolward.Severity // left out it is critical
	Warnings []string          // at most 16 of 1000 characters
}

// Call is any other call that the program makes itself, if people allow it. The gate reads what Tool and Arguments say by itself, unless
// Preview shows something else than the arguments; all else here is shown to people as this program's word.
type Call struct {
	Common
	Tool        string            // at most 64 characters; required
	ID          string            // of the call; optional
	Title       string            // at most 80 characters; default: the tool
	Description string            // at most 4000 characters
	Arguments   json.RawMessage   // as they are used; the question is bound to them. Required
	Preview     json.RawMessage   // what people see of the arguments, at most 16 KiB; default: all of them
	Diff        string            // of a call that changes files, at most 64 KiB
	Targets     []string          // paths, hosts, recipients; at most 64
	Severity    toolward.Severity // these three are the gravest if left out
	Class       toolward.Class
	Level       toolward.Level // of the session
	Reasons     []string       // why people are asked; at most 16 of 200 characters
}

// Answer is what became of a question. The zero value allows nothing.
type Answer struct {
	ID       string
	Decision toolward.Decision // none if nobody answered in time, or was there to answer
	Created  time.Time
	Expires  time.Time
}

// Asked is a question that people have before them.
type Asked struct {
	ID               string
	Created, Expires time.Time // zero if the question was there before

	client *Client
	params map[string]any
	family string        // of methods: "exec.approval" or "approval"
	turn   chan struct{} // one waits at a time

	mu     sync.Mutex
	link   *link
	x      *exchange
	answer *Answer // what it is, once it is known
	lost   error   // it will never be known
}

// AskCommand asks people about a command. It returns when the gateway has the question.
func (c *Client) AskCommand(ctx context.Context, q Command) (*Asked, error) {
	if strings.TrimSpace(q.Text) == "" {
		return nil, errors.New("ask: the command is empty")
	}
	params := q.params()
	params["command"], params["severity"] = q.Text, q.Severity
	setIf(params, "commandArgv", q.Argv, len(q.Argv) > 0)
	setIf(params, "cwd", q.WorkDir, q.WorkDir != "")
	setIf(params, "env", q.Env, len(q.Env) > 0)
	setIf(params, "resolvedPath", q.Resolved, q.Resolved != "")
	setIf(params, "warnings", q.Warnings, len(q.Warnings) > 0)
	return c.ask(ctx, "exec.approval", q.Key, params)
}

// AskCall asks people about a call. It returns when the gateway has the question.
func (c *Client) AskCall(ctx context.Context, q Call) (*Asked, error) {
	if q.Tool == "" || len(q.Arguments) == 0 {
		return nil, errors.New("ask: a call needs a tool and arguments")
	}
	canonical, err := schema.Canonicalize(q.Arguments)
	if err != nil {
		return nil, fmt.Errorf("ask: the arguments: %w", err)
	}
	digest := toolward.NewParams(canonical, nil).Digest(q.Tool, q.Agent, q.Session)
	params := q.params()
	params["kind"], params["tool"], params["title"], params["paramsDigest"] = "tool", q.Tool, q.Title, digest
	if q.Title == "" {
		params["title"] = q.Tool
	}
	params["severity"], params["riskClass"], params["runtimeLevel"], params["preview"] = q.Severity, q.Class, q.Level, q.Preview
	if len(q.Preview) == 0 {
		params["preview"] = q.Arguments
	}
	params["reasons"] = append([]string{}, q.Reasons...)
	setIf(params, "toolCallId", q.ID, q.ID != "")
	setIf(params, "description", q.Description, q.Description != "")
	setIf(params, "diff", q.Diff, q.Diff != "")
	setIf(params, "targets", q.Targets, len(q.Targets) > 0)
	return c.ask(ctx, "approval", q.Key, params)
}

func (q *Common) params() map[string]any {
	params := map[string]any{"twoPhase": true}
	setIf(params, "agentId", q.Agent, q.Agent != "")
	setIf(params, "sessionKey", q.Session, q.Session != "")
	setIf(params, "timeoutMs", q.Timeout.Milliseconds(), q.Timeout >= time.Millisecond)
	setIf(params, "allowedDecisions", q.Allowed, len(q.Allowed) > 0)
	return params
}

func setIf(params map[string]any, name string, value any, set bool) {
	if set {
		params[name] = value
	}
}

// digestOf is the SHA-256 of the canonical form.
func digestOf(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err == nil {
		raw, err = schema.Canonicalize(raw)
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// ask puts a question. Its id is made of the key and all of the question: an answer to another question cannot be taken for
// the answer to this one, whoever chose the same key.
func (c *Client) ask(ctx context.Context, family, key string, params map[string]any) (*Asked, error) {
	repeats := key != ""
	if !repeats {
		key = rand.Text()
	}
	id, err := digestOf([]any{"question v1", family, key, c.Device(), params})
	if err != nil {
		return nil, fmt.Errorf("ask: %w", err)
	}
	params["id"] = id
	a := &Asked{ID: id, client: c, params: params, family: family, turn: make(chan struct{}, 1)}
	for {
		err := a.put(ctx)
		switch {
		case err == nil:
			return a, nil
		case errors.Is(err, errTaken) && repeats:
			if err = a.follow(ctx); err == nil {
				return a, nil
			}
		}
		if !errors.Is(err, ErrLost) || c.Device() == "" {
			return nil, fmt.Errorf("ask: %w", err)
		}
		repeats = true // the gateway may have it already
		if _, err := c.reconnected(ctx); err != nil {
			return nil, fmt.Errorf("ask: %w", err)
		}
	}
}

// put sends the question and waits until the gateway has it.
func (a *Asked) put(ctx context.Context) error {
	l, err := a.client.connected(ctx)
	if err != nil {
		return err
	}
	x, err := l.begin(ctx, a.family+".request", a.params, true)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.link, a.x = l, x
	a.mu.Unlock()
	over := false
	select {
	case r := <-x.first:
		return a.accepted(r)
	case r := <-x.final:
		x.final <- r // for Wait
		if r.err != nil {
			return r.err
		}
		over = true
	case <-l.over:
	case <-ctx.Done():
		// The question may be there. People must not be left with one that nobody waits for.
		stop, done := context.WithTimeout(context.WithoutCancel(ctx), cancelPatience)
		defer done()
		_ = a.Cancel(stop) // without it, it ends when its asker has been away for half a minute
		l.forget(x)
		return context.Cause(ctx)
	}
	select {
	case r := <-x.first:
		return a.accepted(r)
	default:
	}
	if over {
		return nil
	}
	return ErrLost
}

// cancelPatience is for taking a question back whose program does not want to wait any more.
const cancelPatience = time.Second

func (a *Asked) accepted(r reply) error {
	var got wireAnswer
	if err := json.Unmarshal(r.payload, &got); err != nil || got.ID != a.ID {
		return errors.Join(errors.New("the gateway accepted another question"), err)
	}
	a.Created, a.Expires = time.UnixMilli(got.CreatedMs), time.UnixMilli(got.ExpiresMs)
	return nil
}

// wireAnswer is an answer of the methods that wait.
type wireAnswer struct {
	ID        string  `json:"id"`
	Decision  *string `json:"decision"`
	CreatedMs int64   `json:"createdAtMs"`
	ExpiresMs int64   `json:"expiresAtMs"`
}

// follow asks for the answer by id, over the present connection.
func (a *Asked) follow(ctx context.Context) error {
	l, err := a.client.connected(ctx)
	if err != nil {
		return err
	}
	x, err := l.begin(ctx, a.family+".waitDecision", map[string]any{"id": a.ID}, false)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.link, a.x = l, x
	a.mu.Unlock()
	return nil
}

// Wait waits for the answer; an answer without a decision is a no. When ctx ends first the question stays, and Wait may be
// called again. It fails with ErrUnknown if the gateway does not know the question any more.
func (a *Asked) Wait(ctx context.Context) (Answer, error) {
	if a == nil || a.client == nil {
		return Answer{}, ErrClosed
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return Answer{}, fmt.Errorf("wait for an answer: %w", context.Cause(ctx))
	}
	for {
		if a.answer != nil || a.lost != nil {
			break
		}
		if err := a.once(ctx); err != nil {
			return Answer{}, fmt.Errorf("wait for an answer: %w", err)
		}
	}
	if a.lost != nil {
		return Answer{}, fmt.Errorf("wait for an answer: %w", a.lost)
	}
	return *a.answer, nil
}

// once waits over one connection. The caller has the turn. An error ends this wait, not the question.
func (a *Asked) once(ctx context.Context) error {
	a.mu.Lock()
	l, x := a.link, a.x
	a.mu.Unlock()
	payload, err := l.await(ctx, x)
	switch {
	case err == nil:
		a.settle(payload)
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, errRestored):
		if err := a.put(ctx); !errors.Is(err, errTaken) { // it is there, and it is this one
			return err
		}
		return a.follow(ctx)
	case !passes(err):
		a.lost = err
		return nil
	case a.client.Device() == "": // a question without a device belongs to its connection
		a.lost = errors.Join(ErrLost, err)
		return nil
	case !errors.Is(err, ErrLost):
		if !pause(ctx, firstPause) { // the gateway is ending
			return context.Cause(ctx)
		}
	}
	for { // over the next connection, or from a gateway that is starting again
		if _, err := a.client.reconnected(ctx); err != nil {
			return err
		}
		if err = a.follow(ctx); !errors.Is(err, ErrLost) {
			return err
		}
	}
}

func (a *Asked) settle(payload json.RawMessage) {
	var got wireAnswer
	if err := json.Unmarshal(payload, &got); err != nil || got.ID != a.ID {
		a.lost = errors.Join(errors.New("the gateway answered another question"), err)
		return
	}
	answer := Answer{ID: a.ID, Created: time.UnixMilli(got.CreatedMs), Expires: time.UnixMilli(got.ExpiresMs)}
	if got.Decision != nil {
		d, err := toolward.ParseDecision(*got.Decision)
		if err != nil {
			a.lost = err // what is not understood allows nothing
			return
		}
		answer.Decision = d
	}
	a.answer = &answer
}

// Cancel takes the question back. It fails with ErrUnknown if it is answered or over.
func (a *Asked) Cancel(ctx context.Context) error {
	if a == nil || a.client == nil {
		return ErrClosed
	}
	err := a.client.look(ctx, "approval.cancel", map[string]any{"id": a.ID}, nil)
	if err != nil {
		return fmt.Errorf("take a question back: %w", err)
	}
	return nil
}
