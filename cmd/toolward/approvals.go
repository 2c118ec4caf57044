package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/server/api"
)

type approvalsCommand struct {
	List  approvalsListCommand  `cmd:"" help:"List calls that wait."`
	Watch approvalsWatchCommand `cmd:"" help:"Show calls as they come, until interrupted."`
	Show  approvalsShowCommand  `cmd:"" help:"Show one call, waiting or answered."`
	Allow approvalsAllowCommand `cmd:"" help:"Allow a call."`
	Deny  approvalsDenyCommand  `cmd:"" help:"Refuse a call."`

	Get       approvalsGetCommand `cmd:"" help:"Show which commands may run without a question."`
	Set       approvalsSetCommand `cmd:"" help:"Replace that by the content of a file."`
	Allowlist allowlistCommand    `cmd:"" help:"Add and remove single programs."`
}

type approvalsListCommand struct {
	Recent bool `help:"List answered ones instead."`
}

// Run lists approvals.
func (c *approvalsListCommand) Run(inv *invocation) error {
	query := url.Values{"state": {"pending"}}
	if c.Recent {
		query.Set("state", "recent")
	}
	var list api.Approvals
	if err := inv.daemon().Get(inv, "/v1/approvals", query, &list); err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(list)
	}
	if len(list.Approvals) == 0 {
		fmt.Fprintln(inv.stdout, "Nothing waits.")
		return nil
	}
	for _, a := range list.Approvals {
		inv.printApproval(a)
	}
	return nil
}

type approvalsShowCommand struct {
	ID string `arg:"" help:"Id of the approval; of one that waits, its first 8 characters."`
	As string `help:"text, or markdown or chat: a message to paste elsewhere, of which nothing is markup." enum:"text,markdown,chat" default:"text"`
}

// Run shows one approval.
func (c *approvalsShowCommand) Run(inv *invocation) error {
	var a api.Approval
	if err := inv.daemon().Get(inv, "/v1/approvals/"+url.PathEscape(c.ID), nil, &a); err != nil {
		return err
	}
	switch {
	case inv.json:
		return inv.printJSON(a)
	case a.Record == nil || a.Request == nil:
		return errors.New("the gateway does not say what the call is")
	case c.As == "markdown":
		fmt.Fprint(inv.stdout, a.Message(display.MarkdownOf))
	case c.As == "chat":
		fmt.Fprint(inv.stdout, a.Message(display.ChatOf))
	default:
		inv.printApproval(a)
	}
	return nil
}

// printApproval shows what a person must know to answer. Nothing is cut without a mark.
func (inv *invocation) printApproval(a api.Approval) {
	r := a.Request
	left := time.Until(time.UnixMilli(a.ExpiresMs)).Round(time.Second)
	fmt.Fprintf(inv.stdout, "%s  %s  %s  agent %s  %s\n", a.Slug, r.Severity, display.Line(r.Tool), display.Line(r.Agent), stateWords(a, left))
	fmt.Fprintf(inv.stdout, "    %s\n\n", indent(a.View().Text()))
}

func stateWords(a api.Approval, left time.Duration) string {
	if a.Waits() {
		return fmt.Sprintf("%s left", left)
	}
	return display.Line(a.Said)
}

func indent(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

type approvalsWatchCommand struct{}

// Run follows approvals. Whoever watches counts as somebody who can answer.
func (approvalsWatchCommand) Run(inv *invocation) error {
	return inv.daemon().Follow(inv, "/v1/approvals/events", nil, func(name string, data []byte) error {
		if inv.json {
			_, err := fmt.Fprintf(inv.stdout, "%s\n", data)
			return err
		}
		switch name {
		case "sync":
			var all api.Approvals
			if err := json.Unmarshal(data, &all); err != nil {
				return err
			}
			for _, a := range all.Approvals {
				inv.printApproval(a)
			}
		case "approval", "resolved":
			var a api.Approval
			if err := json.Unmarshal(data, &a); err != nil {
				return err
			}
			inv.printApproval(a)
		}
		return nil
	})
}

type approvalsAllowCommand struct {
	ID       string `arg:"" help:"Id of the approval, or its first 8 characters."`
	Always   bool   `help:"Also remember the answer, as the list has said."`
	Proposal int    `help:"With --always: which of the listed proposals." default:"0"`
	For      string `help:"With --always: for a shorter time than proposed, such as 10m."`
	Uses     int64  `help:"With --always: for so many more calls."`
}

// Run allows a call.
func (c *approvalsAllowCommand) Run(inv *invocation) error {
	answer := api.Answer{Decision: toolward.AllowOnce.String()}
	if c.Always {
		answer = api.Answer{Decision: toolward.AllowAlways.String(), Proposal: c.Proposal, Life: c.For, Uses: c.Uses}
	} else if c.For != "" || c.Uses != 0 {
		return &exitErr{exitUsage, errors.New("--for and --uses say how long an answer is kept: add --always"), ""}
	}
	return inv.answer(c.ID, answer)
}

type approvalsDenyCommand struct {
	ID     string `arg:"" help:"Id of the approval, or its first 8 characters."`
	Reason string `help:"What the model is told."`
}

// Run refuses a call.
func (c *approvalsDenyCommand) Run(inv *invocation) error {
	return inv.answer(c.ID, api.Answer{Decision: toolward.DenyCall.String(), Reason: c.Reason})
}

func (inv *invocation) answer(id string, answer api.Answer) error {
	var settled api.Approval
	if err := inv.daemon().Post(inv, "/v1/approvals/"+url.PathEscape(id), answer, &settled); err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(settled)
	}
	fmt.Fprintf(inv.stdout, "%s: %s\n", settled.Slug, display.Line(settled.Said))
	return nil
}

type grantsCommand struct {
	List   grantsListCommand   `cmd:"" help:"List remembered answers."`
	Revoke grantsRevokeCommand `cmd:"" help:"Forget one."`
}

type grantsListCommand struct{}

// Run lists grants.
func (grantsListCommand) Run(inv *invocation) error {
	var list api.Grants
	if err := inv.daemon().Get(inv, "/v1/grants", nil, &list); err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(list)
	}
	return inv.table("ID\tAGENT\tALLOWS\tUSES\tEXPIRES\tBY", func(row func(...any)) {
		for _, g := range list.Grants {
			row(g.ID, g.Agent, g.Text, g.UsesText(), when(time.UnixMilli(g.ExpiresMs)), g.CreatedBy)
		}
	})
}

type grantsRevokeCommand struct {
	ID string `arg:"" help:"Id of the grant."`
}

// Run forgets a grant.
func (c *grantsRevokeCommand) Run(inv *invocation) error {
	if err := inv.daemon().Post(inv, "/v1/grants/"+url.PathEscape(c.ID)+"/revoke", struct{}{}, nil); err != nil {
		return err
	}
	return inv.done("revoked", "Revoked.")
}
