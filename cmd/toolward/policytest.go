package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
)

type policyTestCommand struct {
	Cases string `arg:"" help:"File of cases, JSON with comments." type:"path"`
	With  string `help:"Configuration file to check; default the one in the home." placeholder:"FILE" type:"path"`
}

// testedCase is one line of the report.
type testedCase struct {
	Name   string         `json:"name"`
	Line   int            `json:"line"`
	Passed bool           `json:"passed"`
	Want   string         `json:"want"`
	Got    string         `json:"got"`
	Trace  toolward.Trace `json:"trace"`
}

// Run checks every case by explaining its call, as a gateway with that policy would.
func (c *policyTestCommand) Run(inv *invocation) error {
	cases, err := config.LoadCases(c.Cases)
	var wrong config.Problems
	if errors.As(err, &wrong) {
		return &exitErr{exitUnsound, err, "docs/replay.md shows a file of cases"}
	}
	if err != nil {
		return err
	}
	candidate, err := inv.candidate(c.With)
	if err != nil {
		return err
	}
	defer candidate.close()
	results := make([]testedCase, 0, len(cases))
	failed := 0
	for i := range cases {
		result, err := candidate.try(inv, &cases[i], filepath.Dir(c.Cases))
		if err != nil {
			return fmt.Errorf("%s:%d: %s: %w", c.Cases, cases[i].Line, cases[i].Name, err)
		}
		if !result.Passed {
			failed++
		}
		results = append(results, result)
	}
	if err := c.tell(inv, results); err != nil {
		return err
	}
	if failed > 0 {
		return &exitErr{exitError, fmt.Errorf("%d of %d cases failed with %s", failed, len(cases), candidate.name()), ""}
	}
	return nil
}

func (c *policyTestCommand) tell(inv *invocation, results []testedCase) error {
	if inv.json {
		return inv.printJSON(results)
	}
	err := inv.table("RESULT\tCASE\tEXPECTED\tGOT", func(row func(...any)) {
		for _, r := range results {
			word := "ok"
			if !r.Passed {
				word = "FAILED"
			}
			row(word, r.Name, r.Want, r.Got)
		}
	})
	for _, r := range results {
		if !r.Passed {
			fmt.Fprintf(inv.stdout, "\n%s:%d: %s\n", display.Line(c.Cases), r.Line, display.Line(r.Name))
			inv.printTrace(r.Trace)
		}
	}
	return err
}

// try explains the call of a case.
func (c *candidate) try(ctx context.Context, k *config.Case, dir string) (testedCase, error) {
	workspace, done, err := workspaceOf(k, dir)
	if err != nil {
		return testedCase{}, err
	}
	defer done()
	trace, err := c.explain(ctx, k.At, toolward.Call{
		Tool: k.Tool, Arguments: k.Args, Session: toolward.SessionKey(k.Session), Surface: toolward.Surface(k.Surface),
		WorkDir: workspace, Host: toolward.HostGateway,
		Caller: toolward.Caller{
			Agent: k.Agent, Owner: k.Owner, Depth: k.Depth, Context: "main", Workspace: workspace,
			Channel: k.Channel, Sender: k.Sender, Provider: k.Provider, Model: k.Model,
		},
	})
	if err != nil {
		return testedCase{}, err
	}
	result := testedCase{
		Name: k.Name, Line: k.Line, Trace: trace,
		Want: outcomeWords(k.Expect, k.Code, k.Row), Got: outcomeWords(trace.Verdict.String(), string(trace.Code), trace.Row),
	}
	result.Passed = trace.Verdict == k.Verdict && (k.Code == "" || string(trace.Code) == k.Code) && (k.Row == "" || trace.Row == k.Row)
	return result, nil
}

// workspaceOf is the directory of a case: its own, or an empty one that done removes.
func workspaceOf(k *config.Case, dir string) (workspace string, done func(), err error) {
	if k.Workspace == "" {
		empty, err := os.MkdirTemp("", "toolward-case-")
		if err != nil {
			return "", nil, err
		}
		workspace, err = filepath.EvalSymlinks(empty)
		return workspace, func() { _ = os.RemoveAll(empty) }, err
	}
	if !filepath.IsAbs(k.Workspace) {
		k.Workspace = filepath.Join(dir, k.Workspace)
	}
	if workspace, err = filepath.Abs(k.Workspace); err != nil {
		return "", nil, err
	}
	workspace, err = filepath.EvalSymlinks(workspace)
	return workspace, func() {}, err
}

func outcomeWords(verdict, code, row string) string {
	text := verdict
	if code != "" {
		text += " " + code
	}
	if row != "" {
		text += " (" + row + ")"
	}
	return text
}

// levelOf is the level of every session of a case.
type levelOf toolward.Level

// Level is the level of the case.
func (l levelOf) Level(context.Context, *toolward.Call) (toolward.Level, toolward.LevelInputs, error) {
	return toolward.Level(l), toolward.LevelInputs{Floor: toolward.Level(l)}, nil
}

// Expose fails: a case runs nothing.
func (levelOf) Expose(context.Context, toolward.SessionKey, toolward.Exposure) error {
	return errOnlyExplained
}

// nobody answers no question and keeps no record: the calls of cases are explained, never made.
type nobody struct{}

var errOnlyExplained = errors.New("the calls of cases are only explained")

// Granted says no.
func (nobody) Granted(context.Context, *toolward.Question) (string, bool, error) {
	return "", false, nil
}

// Covered says no: a case has no remembered answers.
func (nobody) Covered(context.Context, *toolward.Question) (string, bool, error) {
	return "", false, nil
}

// Ask fails.
func (nobody) Ask(context.Context, *toolward.Question) (toolward.Answer, error) {
	return toolward.Answer{}, errOnlyExplained
}

// Consume fails.
func (nobody) Consume(context.Context, string, string) error { return errOnlyExplained }

// Decide fails.
func (nobody) Decide(context.Context, *toolward.DecisionRecord) (toolward.RecordID, error) {
	return 0, errOnlyExplained
}

// Conclude fails.
func (nobody) Conclude(context.Context, toolward.RecordID, *toolward.OutcomeRecord) error {
	return errOnlyExplained
}
