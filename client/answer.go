package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// Approval is a question as people are to be shown it. Show all of Request, and through package display: its texts come from
// agents, and from strangers whom agents have read.
type Approval struct {
	ID      string
	Kind    approval.Kind
	Request *approval.Details // nil in news about an approval that is over, if it is long
	Created time.Time         // zero in news about one that is over
	Expires time.Time
	Allowed []toolward.Decision
	// Digest is over everything that the answer will be bound to. Its first twelve characters are shown on every screen,
	// so that people can compare.
	Digest string

	State      approval.State    // "" where it is not told: it waits, or the news is that it is over
	Decision   toolward.Decision // none while it waits, and if nobody answered
	ResolvedBy string            // who answered, or why it ended without an answer; "" at its deadline
	Reason     string            // with a no
	Resolved   time.Time
}

// UnmarshalJSON reads an approval as the protocol writes it.
func (a *Approval) UnmarshalJSON(raw []byte) error {
	var w struct {
		ID         string              `json:"id"`
		Kind       approval.Kind       `json:"kind"`
		Request    *approval.Details   `json:"request"`
		CreatedMs  int64               `json:"createdAtMs"`
		ExpiresMs  int64               `json:"expiresAtMs"`
		Allowed    []toolward.Decision `json:"allowedDecisions"`
		Digest     string              `json:"bindingDigest"`
		State      approval.State      `json:"state"`
		Decision   toolward.Decision   `json:"decision"`
		ResolvedBy string              `json:"resolvedBy"`
		Reason     string              `json:"reason"`
		ResolvedMs int64               `json:"resolvedAtMs"`
		ToldMs     int64               `json:"ts"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*a = Approval{
		ID: w.ID, Kind: w.Kind, Request: w.Request, Created: timeOf(w.CreatedMs), Expires: timeOf(w.ExpiresMs), Allowed: w.Allowed, Digest: w.Digest,
		State: w.State, Decision: w.Decision, ResolvedBy: w.ResolvedBy, Reason: w.Reason, Resolved: timeOf(max(w.ResolvedMs, w.ToldMs)),
	}
	return nil
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Pending lists what waits for people, the next to expire first.
func (c *Client) Pending(ctx context.Context) ([]Approval, error) {
	var list struct{ Approvals []Approval }
	if err := c.look(ctx, "approval.list", nil, &list); err != nil {
		return nil, err
	}
	return list.Approvals, nil
}

// Approval returns one approval, waiting or past.
func (c *Client) Approval(ctx context.Context, id string) (*Approval, error) {
	var a Approval
	if err := c.look(ctx, "approval.get", map[string]any{"id": id}, &a); err != nil {
		return nil, err
	}
	return &a, nil
}

// Response is a person's answer.
type Response struct {
	Decision toolward.Decision
	Reason   string // with a no: at most 500 characters, passed to the model
	Proposal int    // with AllowAlways: which of Request.Proposals is kept for later calls; the person has seen it
}

// Resolve answers an approval, as it was shown to the person who answers. It fails with ErrUnknown if somebody else was
// faster or it is over, with ErrChanged if another one stands under its id, with ErrTooSoon if it is less than half a second
// old. If the connection broke meanwhile, the answer is given again if the approval still waits; else the error is ErrLost:
// [Client.Approval] says what became of it.
func (c *Client) Resolve(ctx context.Context, shown *Approval, r Response) error {
	switch {
	case shown == nil || shown.ID == "" || shown.Digest == "":
		return errors.New("answer: no approval was shown")
	case !slices.Contains(shown.Allowed, r.Decision) || r.Decision == toolward.NoDecision:
		return fmt.Errorf("answer: %w", ErrNotOffered)
	case r.Decision == toolward.AllowAlways && (shown.Request == nil || r.Proposal < 0 || r.Proposal >= len(shown.Request.Proposals)):
		return fmt.Errorf("answer: %w: what is to be kept was not shown", ErrNotOffered)
	}
	params := map[string]any{"id": shown.ID, "decision": r.Decision, "bindingDigest": shown.Digest}
	setIf(params, "reason", r.Reason, r.Reason != "")
	setIf(params, "proposal", r.Proposal, r.Decision == toolward.AllowAlways)
	for {
		err := c.Request(ctx, "approval.resolve", params, nil)
		if !errors.Is(err, ErrLost) {
			return err
		}
		now, looked := c.Approval(ctx, shown.ID)
		if looked != nil || now.State != approval.StatePending {
			return errors.Join(err, looked)
		}
	}
}
