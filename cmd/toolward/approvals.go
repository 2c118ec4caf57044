package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/display"
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
	ask := inv.daemon().Waiting
	if c.Recent {
		ask = inv.daemon().RecentlyAnswered
	}
	list, err := ask(inv)
	if err != nil {
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
	a, err := inv.daemon().Approval(inv, c.ID)
	if err != nil {
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
func (inv *invocation) printApproval(a local.Approval) {
	r := a.Request
	left := time.Until(time.UnixMilli(a.ExpiresMs)).Round(time.Second)
	fmt.Fprintf(inv.stdout, "%s  %s  %s  agent %s  %s\n", a.Slug, r.Severity, display.Line(r.Tool), display.Line(r.Agent), stateWords(a, left))
	fmt.Fprintf(inv.stdout, "    %s\n\n", indent(a.View().Text()))
}

func stateWords(a local.Approval, left time.Duration) string {
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
	return inv.daemon().Watch(inv, func(news local.News) error {
		if inv.json {
			_, err := fmt.Fprintf(inv.stdout, "%s\n", news.Raw)
			return err
		}
		for _, a := range news.Approvals {
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
	answer := local.Answer{Decision: toolward.AllowOnce.String()}
	if c.Always {
		answer = local.Answer{Decision: toolward.AllowAlways.String(), Proposal: c.Proposal, Life: c.For, Uses: c.Uses}
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
	return inv.answer(c.ID, local.Answer{Decision: toolward.DenyCall.String(), Reason: c.Reason})
}

func (inv *invocation) answer(id string, answer local.Answer) error {
	settled, err := inv.daemon().Answer(inv, id, answer)
	if err != nil {
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
	list, err := inv.daemon().Grants(inv)
	if err != nil {
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
	if err := inv.daemon().RevokeGrant(inv, c.ID); err != nil {
		return err
	}
	return inv.done("revoked", "Revoked.")
}
