package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/client/local"
	counter "github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/tui"
)

// desk is a running gateway as the terminal console asks it.
type desk struct{ *local.Gateway }

// known marks the error of somebody who is not signed in.
func known(err error) error {
	if errors.Is(err, local.ErrNotPerson) {
		return fmt.Errorf("%w: %w", tui.ErrNotSignedIn, err)
	}
	return err
}

// SignIn implements tui.Gateway.
func (g desk) SignIn(ctx context.Context, passphrase string) (string, error) {
	signed, err := g.Gateway.SignIn(ctx, passphrase)
	return signed.Name, err
}

// Follow implements tui.Gateway.
func (g desk) Follow(ctx context.Context, tell func(tui.Event)) error {
	return known(g.Watch(ctx, func(news local.News) error {
		event := tui.Event{Sync: news.All}
		for _, a := range news.Approvals {
			event.Calls = append(event.Calls, terminalCall(a))
		}
		if event.Sync || len(event.Calls) > 0 {
			tell(event)
		}
		return nil
	}))
}

func terminalCall(a local.Approval) tui.Call {
	return tui.Call{Record: a.Record, Stamp: a.Seen, Said: a.Said}
}

// Show implements tui.Gateway.
func (g desk) Show(ctx context.Context, id string) (tui.Call, error) {
	a, err := g.Approval(ctx, id)
	return terminalCall(a), known(err)
}

// Answer implements tui.Gateway.
func (g desk) Answer(ctx context.Context, id string, answer tui.Answer) (tui.Call, error) {
	a, err := g.Gateway.Answer(ctx, id, local.Answer{
		Decision: answer.Decision.String(), Reason: answer.Reason, Proposal: answer.Proposal, Uses: answer.Uses, Seen: answer.Stamp,
		Life: lifeText(answer.Life),
	})
	return terminalCall(a), known(err)
}

// lifeText is how long an answer is kept, as the gateway reads it; "" for as long as proposed.
func lifeText(life time.Duration) string {
	if life == 0 {
		return ""
	}
	return life.String()
}

const listLength = 100

// Decisions implements tui.Gateway.
func (g desk) Decisions(ctx context.Context) ([]tui.Decision, error) {
	records, err := g.Gateway.Decisions(ctx, listLength)
	if err != nil {
		return nil, known(err)
	}
	var out []tui.Decision
	for _, raw := range records {
		var r struct {
			Seq                                             int64
			TS                                              time.Time
			AgentID, Tool, Verdict, Level, SessionKey, Undo string
		}
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("a decision of the record: %w", err)
		}
		about, how, err := counter.DecisionWords(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, tui.Decision{
			Seq: r.Seq, At: r.TS, Allowed: r.Verdict == toolward.Allow.String(), Agent: r.AgentID, Tool: r.Tool,
			About: about, How: how, Session: r.SessionKey, Level: r.Level, Undo: r.Undo,
		})
	}
	return out, nil
}

// Sessions implements tui.Gateway.
func (g desk) Sessions(ctx context.Context) ([]tui.Session, error) {
	answer, err := g.Gateway.Sessions(ctx, listLength)
	if err != nil {
		return nil, known(err)
	}
	var out []tui.Session
	for _, s := range answer.Sessions {
		one := tui.Session{Key: s.Session, Level: s.Level, Signals: s.Signals(), Reasons: s.Inputs.Reasons, Floor: floorWords(&s), Anomalies: s.Anomalies}
		if s.LastCall != nil {
			one.LastCall, one.LastAt = s.LastCall.Tool+", "+s.LastCall.Verdict, s.LastCall.At
		}
		out = append(out, one)
	}
	return out, nil
}

// Level implements tui.Gateway.
func (g desk) Level(ctx context.Context, session toolward.SessionKey) (tui.SessionLevel, error) {
	l, err := g.Gateway.Level(ctx, string(session))
	floor := floorWords(&counter.Session{Inputs: l.Inputs, FloorUntil: l.FloorUntil, FloorBy: l.FloorBy})
	return tui.SessionLevel{
		Level: l.Level, Reasons: l.Inputs.Reasons, Floor: floor, Suspicious: l.Inputs.Suspicious, Sources: l.Sources, SourcesCut: l.SourcesCut, Stamp: l.Stamp,
	}, known(err)
}

// SetLevel implements tui.Gateway.
func (g desk) SetLevel(ctx context.Context, session toolward.SessionKey, level toolward.Level) error {
	_, err := g.Gateway.SetLevel(ctx, string(session), level.String())
	return known(err)
}

// ClearLevel implements tui.Gateway.
func (g desk) ClearLevel(ctx context.Context, session toolward.SessionKey, read string) error {
	_, err := g.Gateway.ClearLevel(ctx, string(session), read)
	return known(err)
}

// floorWords says how long a session is kept tense, and by whom.
func floorWords(s *counter.Session) string {
	if s.Inputs.Floor == toolward.Normal {
		return ""
	}
	words := s.Inputs.Floor.String() + ", until somebody clears it"
	if !s.FloorUntil.IsZero() {
		words = s.Inputs.Floor.String() + ", until " + s.FloorUntil.Local().Format(time.DateTime)
	}
	if s.FloorBy != "" {
		words += "; set by " + s.FloorBy
	}
	return words
}

// Grants implements tui.Gateway.
func (g desk) Grants(ctx context.Context) ([]*approval.Grant, error) {
	list, err := g.Gateway.Grants(ctx)
	return list.Grants, known(err)
}

// Revoke implements tui.Gateway.
func (g desk) Revoke(ctx context.Context, grant string) error {
	return known(g.RevokeGrant(ctx, grant))
}

// Sandboxes implements tui.Gateway.
func (g desk) Sandboxes(ctx context.Context) ([]tui.Sandbox, error) {
	list, err := g.Gateway.Sandboxes(ctx)
	if err != nil {
		return nil, known(err)
	}
	var out []tui.Sandbox
	for i := range list.Containers {
		s := &list.Containers[i]
		w := s.Words()
		facts := []string{"engine " + s.Engine, "image " + w.Image, "network " + w.Network, "workspace " + w.Workspace, "limits " + w.Limits, "age " + w.Age + ", last used " + w.Idle}
		if s.Level != "" {
			facts[0] += ", which enforces " + s.Level
		}
		out = append(out, tui.Sandbox{
			Name: s.Name, Of: s.ScopeKey, State: w.State, Running: s.Running, Odd: s.Silent || s.Missing || s.Outdated || !s.ImageMatch, Sessions: s.Sessions,
			CPU: w.CPU, Memory: w.Memory, Pids: w.Pids, Note: w.Note, Facts: facts,
		})
	}
	return out, nil
}

// EndSandbox implements tui.Gateway.
func (g desk) EndSandbox(ctx context.Context, name string, remove bool) error {
	if remove {
		return known(g.RemoveSandbox(ctx, name))
	}
	return known(g.StopSandbox(ctx, name))
}
