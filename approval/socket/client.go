package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/toolward/toolward"
)

// Client asks the program that listens at a socket. Each question is a connection of its own.
type Client struct {
	Path  string // absolute; "" asks nobody
	Token string // "" asks nobody
}

// Reachable reports whether a program of ours would take a question now.
func (c Client) Reachable(ctx context.Context) bool {
	conn, err := c.connect(ctx)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Command asks about a command with the secret in the open, for programs that know no other frame. Without an answer
// within 15 seconds there is no decision.
func (c Client) Command(ctx context.Context, id string, q *CommandRequest) (toolward.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	d, _, err := c.decide(ctx, id, map[string]any{"type": typeRequest, "token": c.Token, "id": id, "request": q})
	return d, err
}

// Call asks about a call, authenticated, and waits until ctx ends. reason goes with a denial.
func (c Client) Call(ctx context.Context, id string, q *CallRequest) (d toolward.Decision, reason string, err error) {
	envelope, err := c.sealed(typeApproval, id, q)
	if err != nil {
		return toolward.NoDecision, "", err
	}
	return c.decide(ctx, id, envelope)
}

// Exec runs a command there. A refusal is a *Refusal. It waits 20 seconds, and longer only for a command that may.
func (c Client) Exec(ctx context.Context, id string, e *ExecRequest) (*ExecResult, error) {
	envelope, err := c.sealed(typeExec, id, e)
	if err != nil {
		return nil, err
	}
	patience := max(execPatience, time.Duration(e.TimeoutMs)*time.Millisecond+execMargin)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var a execAnswer
	if err := c.exchange(ctx, id, envelope, typeResult, &a); err != nil {
		return nil, err
	}
	switch {
	case a.OK && a.Payload != nil && a.Error == nil:
		return a.Payload, nil
	case !a.OK && a.Error != nil:
		return nil, a.Error
	}
	return nil, fmt.Errorf("%w: neither a result nor a refusal", ErrNoAnswer)
}

func (c Client) decide(ctx context.Context, id string, envelope map[string]any) (toolward.Decision, string, error) {
	var a decisionAnswer
	if err := c.exchange(ctx, id, envelope, typeDecision, &a); err != nil {
		return toolward.NoDecision, "", err
	}
	if a.Error != nil {
		return toolward.NoDecision, "", a.Error
	}
	d, err := toolward.ParseDecision(a.Decision)
	if err != nil {
		return toolward.NoDecision, "", fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return d, a.Reason, nil
}

// sealed is the envelope of an authenticated frame.
func (c Client) sealed(kind, id string, body any) (map[string]any, error) {
	raw, err := encodeLine(body)
	if err != nil {
		return nil, err
	}
	payload, nonce, ts := string(raw[:len(raw)-1]), newNonce(), time.Now().UnixMilli()
	return map[string]any{
		"type": kind, "id": id, "nonce": nonce, "ts": ts, "hmac": sign(c.Token, nonce, ts, payload), "requestJson": payload,
	}, nil
}

// connect reaches a program of our own user. The secret is sent only after that was checked.
func (c Client) connect(ctx context.Context) (*net.UnixConn, error) {
	if c.Path == "" || c.Token == "" {
		return nil, fmt.Errorf("%w: it has no path or no token", ErrUnreachable)
	}
	return Dial(ctx, c.Path)
}

// Dial connects to the program that listens at a socket, if socket, directory and program are all of our own user: what
// another user put there would get the secrets that are sent next. Every error is ErrUnreachable.
func Dial(ctx context.Context, path string) (*net.UnixConn, error) {
	if err := checkAddress(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	var dialer net.Dialer
	plain, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	conn, ok := plain.(*net.UnixConn)
	uid, err := peerUID(plain)
	if !ok || err != nil || uid != os.Geteuid() {
		_ = plain.Close()
		return nil, fmt.Errorf("%w: the program there is another user's", ErrUnreachable)
	}
	return conn, nil
}

// maxSkipped bounds the lines that are passed over on the way to an answer.
const maxSkipped = 1000

// exchange sends one frame and reads until its answer: lines of another type or for another id are not ours.
func (c Client) exchange(ctx context.Context, id string, frame map[string]any, kind string, answer any) error {
	line, err := encodeLine(frame)
	if err != nil {
		return err
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := conn.Write(line); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("%w: %w", ErrNoAnswer, err))
	}
	reader := bufio.NewReader(conn)
	for range maxSkipped {
		raw, err := readLine(reader)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("approval socket: %w", context.Cause(ctx))
		case errors.Is(err, io.EOF):
			return ErrNoAnswer
		case err != nil:
			return fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		o, err := object(raw)
		var got, about string
		if err != nil || !o.text("type", &got) || got != kind || !o.text("id", &about) || about != id {
			continue
		}
		if err := json.Unmarshal(raw, answer); err != nil {
			return fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		return nil
	}
	return fmt.Errorf("%w: only lines for others", ErrNoAnswer)
}
