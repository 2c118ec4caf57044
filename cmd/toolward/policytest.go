package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway/trial"
)

type policyTestCommand struct {
	Cases string `arg:"" help:"File of cases, JSON with comments." type:"path"`
	With  string `help:"Configuration file to check; default the one in the home." placeholder:"FILE" type:"path"`
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
	defer candidate.Close()
	results := make([]trial.Tested, 0, len(cases))
	failed := 0
	for i := range cases {
		result, err := candidate.Try(inv, &cases[i], filepath.Dir(c.Cases))
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
		return &exitErr{exitError, fmt.Errorf("%d of %d cases failed with %s", failed, len(cases), candidate.Name()), ""}
	}
	return nil
}

func (c *policyTestCommand) tell(inv *invocation, results []trial.Tested) error {
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
