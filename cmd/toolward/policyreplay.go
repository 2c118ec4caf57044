package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway/trial"
)

type policyReplayCommand struct {
	With  string `required:"" help:"Configuration file to try." placeholder:"FILE" type:"path"`
	Since string `help:"How far back, such as 7d or 12h; default all that is kept." placeholder:"AGE"`
	Limit int    `help:"Show at most so many differences; the counts are of all." default:"100"`
	Agent string `help:"Only calls of this agent."`
	Tool  string `help:"Only calls of this tool."`
}

// Run judges recorded calls again. It reads the state itself, so it also works when no gateway runs.
func (c *policyReplayCommand) Run(inv *invocation) error {
	since, err := parseAge(c.Since)
	if err != nil {
		return err
	}
	candidate, err := inv.pastCandidate(c.With)
	if err != nil {
		return err
	}
	defer candidate.Close()
	report, err := candidate.Replay(inv, trial.Past{Since: since, Agent: c.Agent, Tool: c.Tool, Most: c.Limit})
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(report)
	}
	return inv.printReplay(report)
}

// parseAge reads an age such as 7d, 36h or 90m, and returns the moment that long ago; the zero time for "".
func parseAge(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	days, isDays := strings.CutSuffix(text, "d")
	age, err := time.ParseDuration(text)
	if n, wrong := strconv.Atoi(days); isDays && wrong == nil {
		age, err = time.Duration(n)*24*time.Hour, nil
	}
	if err != nil || age <= 0 || age > 100*365*24*time.Hour {
		return time.Time{}, &exitErr{exitUsage, fmt.Errorf("%q is not an age", text), "for instance --since 7d or --since 12h"}
	}
	return time.Now().Add(-age), nil
}

func (inv *invocation) printReplay(r *trial.Replayed) error {
	if r.Total.Calls == 0 {
		fmt.Fprintln(inv.stdout, "No decisions are recorded for that time.")
		return nil
	}
	fmt.Fprintf(inv.stdout, "%d calls from %s to %s, judged by %s\n\n", r.Total.Calls, when(r.From), when(r.To), display.Line(r.With))
	for _, table := range []struct {
		head  string
		lines map[string]*trial.Tally
	}{{"TOOL", r.ByTool}, {"AGENT", r.ByAgent}} {
		if err := inv.printTallies(table.head, table.lines, r.Total); err != nil {
			return err
		}
		fmt.Fprintln(inv.stdout)
	}
	for _, d := range r.Differences {
		inv.printDifference(&d)
	}
	if r.Left > 0 {
		fmt.Fprintf(inv.stdout, "… and %d differences more: --limit %d shows all\n", r.Left, r.Left+len(r.Differences))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.NotReplayed)) {
		fmt.Fprintf(inv.stdout, "not replayed: %d calls, because %s\n", r.NotReplayed[reason], display.Line(reason))
	}
	for _, rule := range r.Rules {
		fmt.Fprintf(inv.stdout, "not replayed: rule %s, because it reads %s, which records do not keep\n", display.Line(rule.Name), strings.Join(rule.Reads, ", "))
	}
	return nil
}

func (inv *invocation) printTallies(head string, lines map[string]*trial.Tally, total trial.Tally) error {
	return inv.table(head+"\tCALLS\tSAME\tSTRICTER\tLOOSER\tOTHER\tNOT REPLAYED", func(row func(...any)) {
		line := func(name string, t *trial.Tally) {
			row(name, t.Calls, t.Same, t.Stricter, t.Looser, t.Other, t.NotReplayed)
		}
		byCalls := func(a, b string) int {
			return cmp.Or(cmp.Compare(lines[b].Calls, lines[a].Calls), strings.Compare(a, b))
		}
		for _, name := range slices.SortedFunc(maps.Keys(lines), byCalls) {
			line(name, lines[name])
		}
		line("(all)", &total)
	})
}

func (inv *invocation) printDifference(d *trial.Difference) {
	fmt.Fprintf(inv.stdout, "%-8s record %d  %s  %s %s: %s → %s\n", d.Change, d.Record, when(d.Time), display.Line(d.Agent), display.Line(d.Tool),
		display.Line(d.Before), display.Line(d.After))
	for _, r := range d.Because {
		fmt.Fprintf(inv.stdout, "         because %s: %s\n", display.Line(r.Layer), display.Line(r.Text))
	}
	if d.Answer != "" {
		fmt.Fprintf(inv.stdout, "         people said %s\n", d.Answer)
	}
}
