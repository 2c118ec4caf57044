package local

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/toolward/toolward/server/api"
)

// What is asked and answered of calls that wait, as the API has it.
type (
	Approval = api.Approval
	Answer   = api.Answer
)

// Waiting lists the calls that wait.
func (g *Gateway) Waiting(ctx context.Context) (list api.Approvals, err error) {
	err = g.get(ctx, "/v1/approvals", url.Values{"state": {"pending"}}, &list)
	return list, err
}

// RecentlyAnswered lists the calls that were answered lately.
func (g *Gateway) RecentlyAnswered(ctx context.Context) (list api.Approvals, err error) {
	err = g.get(ctx, "/v1/approvals", url.Values{"state": {"recent"}}, &list)
	return list, err
}

// Approval is one call, waiting or answered, by its id or the beginning of it.
func (g *Gateway) Approval(ctx context.Context, id string) (a Approval, err error) {
	err = g.get(ctx, approval(id), nil, &a)
	return a, err
}

// Answer answers a call that waits, and says what became of it.
func (g *Gateway) Answer(ctx context.Context, id string, answer Answer) (a Approval, err error) {
	err = g.post(ctx, approval(id), answer, &a)
	return a, err
}

func approval(id string) string { return "/v1/approvals/" + url.PathEscape(id) }

// News is what has happened to approvals.
type News struct {
	All       bool // Approvals is all that waits; whatever else was there is answered
	Approvals []Approval
	Raw       []byte // as the gateway has sent it
}

// Watch tells what waits and then what changes, until the stream ends, ctx ends (nil) or tell returns an error. Whoever watches
// counts as somebody who can answer.
func (g *Gateway) Watch(ctx context.Context, tell func(News) error) error {
	return g.follow(ctx, "/v1/approvals/events", func(name string, data []byte) error {
		news := News{Raw: data}
		switch name {
		case "sync":
			var all api.Approvals
			if err := json.Unmarshal(data, &all); err != nil {
				return fmt.Errorf("waiting calls: %w", err)
			}
			news.All, news.Approvals = true, all.Approvals
		case "approval", "resolved":
			var a Approval
			if err := json.Unmarshal(data, &a); err != nil {
				return fmt.Errorf("a waiting call: %w", err)
			}
			news.Approvals = []Approval{a}
		}
		return tell(news)
	})
}

// Grants lists remembered answers.
func (g *Gateway) Grants(ctx context.Context) (list api.Grants, err error) {
	err = g.get(ctx, "/v1/grants", nil, &list)
	return list, err
}

// RevokeGrant forgets a remembered answer.
func (g *Gateway) RevokeGrant(ctx context.Context, id string) error {
	return g.post(ctx, "/v1/grants/"+url.PathEscape(id)+"/revoke", struct{}{}, nil)
}

const allowlistRoute = "/v1/exec-approvals"

// What is asked and answered of single programs that may run without a question.
type (
	AllowlistEntry  = api.CommandEntry
	AllowlistChange = api.AllowlistChanged
)

// OnMachine is the host of an [AllowlistEntry] for the machine itself.
const OnMachine = api.OnMachine

// Allowlist is exec-approvals.json as the gateway has sent it.
type Allowlist struct{ json.RawMessage }

// Read reads it.
func (a Allowlist) Read() (*api.Commands, error) { return api.ReadCommands(a.RawMessage) }

// Allowlist is which commands may run without a question.
func (g *Gateway) Allowlist(ctx context.Context) (a Allowlist, err error) {
	err = g.get(ctx, allowlistRoute, nil, &a)
	return a, err
}

// ReplaceAllowlist puts a file in the place of the one with the hash base; "" is the present one.
func (g *Gateway) ReplaceAllowlist(ctx context.Context, file json.RawMessage, base string) (a Allowlist, err error) {
	if base == "" {
		var present struct{ Hash string }
		if err := g.get(ctx, allowlistRoute, nil, &present); err != nil {
			return a, err
		}
		base = present.Hash
	}
	err = g.send(ctx, http.MethodPut, allowlistRoute, nil, api.CommandsChange{File: file, BaseHash: base}, &a)
	return a, err
}

// AllowProgram lets commands of a program run without a question.
func (g *Gateway) AllowProgram(ctx context.Context, entry AllowlistEntry) (change AllowlistChange, err error) {
	err = g.post(ctx, allowlistRoute+"/allowlist", entry, &change)
	return change, err
}

// DisallowProgram takes that back; pattern is an entry's, or its id.
func (g *Gateway) DisallowProgram(ctx context.Context, agent, pattern string) (change AllowlistChange, err error) {
	query := url.Values{"agent": {agent}, "pattern": {pattern}}
	err = g.send(ctx, http.MethodDelete, allowlistRoute+"/allowlist", query, nil, &change)
	return change, err
}
