package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/client/local"
	counter "github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
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
	var signed api.SignedIn
	err := g.Post(ctx, "/v1/login", api.Passphrase{Passphrase: passphrase}, &signed)
	return signed.Name, err
}

// Follow implements tui.Gateway.
func (g desk) Follow(ctx context.Context, tell func(tui.Event)) error {
	return known(g.Gateway.Follow(ctx, "/v1/approvals/events", nil, func(name string, data []byte) error {
		switch name {
		case "sync":
			var all api.Approvals
			if err := json.Unmarshal(data, &all); err != nil {
				return fmt.Errorf("waiting calls: %w", err)
			}
			event := tui.Event{Sync: true}
			for _, a := range all.Approvals {
				event.Calls = append(event.Calls, terminalCall(a))
			}
			tell(event)
		case "approval", "resolved":
			var a api.Approval
			if err := json.Unmarshal(data, &a); err != nil {
				return fmt.Errorf("a waiting call: %w", err)
			}
			tell(tui.Event{Calls: []tui.Call{terminalCall(a)}})
		}
		return nil
	}))
}

func terminalCall(a api.Approval) tui.Call {
	return tui.Call{Record: a.Record, Stamp: a.Seen, Said: a.Said}
}

// Show implements tui.Gateway.
func (g desk) Show(ctx context.Context, id string) (tui.Call, error) {
	var a api.Approval
	err := g.Get(ctx, "/v1/approvals/"+url.PathEscape(id), nil, &a)
	return terminalCall(a), known(err)
}

// Answer implements tui.Gateway.
func (g desk) Answer(ctx context.Context, id string, answer tui.Answer) (tui.Call, error) {
	var a api.Approval
	err := g.Post(ctx, "/v1/approvals/"+url.PathEscape(id), api.Answer{
		Decision: answer.Decision.String(), Reason: answer.Reason, Proposal: answer.Proposal, Uses: answer.Uses, Seen: answer.Stamp,
		Life: lifeText(answer.Life),
	}, &a)
	return terminalCall(a), known(err)
}

// lifeText is how long an answer is kept, as the gateway reads it; "" for as long as proposed.
func lifeText(life time.Duration) string {
	if life == 0 {
		return ""
	}
	return life.String()
}

const listLength = "100"

// Decisions implements tui.Gateway.
func (g desk) Decisions(ctx context.Context) ([]tui.Decision, error) {
	var answer struct {
		Records []json.RawMessage `json:"records"`
	}
	if err := g.Get(ctx, "/v1/decisions", url.Values{"limit": {listLength}}, &answer); err != nil {
		return nil, known(err)
	}
	var out []tui.Decision
	for _, raw := range answer.Records {
		var r struct {
			Seq                                       int64
			TS                                        time.Time
			AgentID, Tool, Verdict, Level, SessionKey string
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
			About: about, How: how, Session: r.SessionKey, Level: r.Level,
		})
	}
	return out, nil
}

// Sessions implements tui.Gateway.
func (g desk) Sessions(ctx context.Context) ([]tui.Session, error) {
	var answer api.Sessions
	if err := g.Get(ctx, "/v1/sessions", url.Values{"limit": {listLength}}, &answer); err != nil {
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
	var l api.Level
	err := g.Get(ctx, "/v1/level", url.Values{"session": {string(session)}}, &l)
	floor := floorWords(&counter.Session{Inputs: l.Inputs, FloorUntil: l.FloorUntil, FloorBy: l.FloorBy})
	return tui.SessionLevel{
		Level: l.Level, Reasons: l.Inputs.Reasons, Floor: floor, Suspicious: l.Inputs.Suspicious, Sources: l.Sources, SourcesCut: l.SourcesCut, Stamp: l.Stamp,
	}, known(err)
}

// SetLevel implements tui.Gateway.
func (g desk) SetLevel(ctx context.Context, session toolward.SessionKey, level toolward.Level) error {
	query := url.Values{"session": {string(session)}}
	return known(g.Send(ctx, http.MethodPost, "/v1/level", query, api.LevelFloor{Level: level.String()}, nil))
}

// ClearLevel implements tui.Gateway.
func (g desk) ClearLevel(ctx context.Context, session toolward.SessionKey, read string) error {
	query := url.Values{"session": {string(session)}}
	if read != "" {
		query.Set("external", read)
	}
	return known(g.Send(ctx, http.MethodDelete, "/v1/level", query, nil, nil))
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
	var list api.Grants
	err := g.Get(ctx, "/v1/grants", nil, &list)
	return list.Grants, known(err)
}

// Revoke implements tui.Gateway.
func (g desk) Revoke(ctx context.Context, grant string) error {
	return known(g.Post(ctx, "/v1/grants/"+url.PathEscape(grant)+"/revoke", struct{}{}, nil))
}

// Sandboxes implements tui.Gateway.
func (g desk) Sandboxes(ctx context.Context) ([]tui.Sandbox, error) {
	var list api.SandboxList
	if err := g.Get(ctx, "/v1/sandboxes", nil, &list); err != nil {
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
	how := "/stop"
	if remove {
		how = "/remove"
	}
	return known(g.Post(ctx, "/v1/sandboxes/"+url.PathEscape(name)+how, struct{}{}, nil))
}
