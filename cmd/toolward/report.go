package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway/trial"
)

type reportCommand struct {
	Dirs   []string `arg:"" optional:"" name:"dir" help:"Directories or files with transcripts; default where clients keep theirs on this machine." type:"path"`
	Client string   `help:"Only sessions of this client: ${readable}." enum:",${readable}" default:""`
	Since  string   `help:"Only calls since a day (2026-11-01) or an age (7d, 12h)." placeholder:"DATE"`
	Policy string   `help:"Configuration to judge by; default the one in the home, else the one that install proposes." placeholder:"FILE" type:"path"`
	With   string   `help:"A second configuration, side by side." placeholder:"FILE" type:"path"`
	Limit  int      `help:"Show at most so many reasons, and so many calls that would have been stopped; the counts are of all." default:"15"`
}

// Run says what past sessions would have met. It reads transcripts and files of this machine, asks nobody and runs nothing.
func (c *reportCommand) Run(inv *invocation) error {
	since, err := parseSince(c.Since)
	if err != nil {
		return err
	}
	if c.Limit < 1 {
		return &exitErr{exitUsage, errors.New("--limit must be at least 1"), ""}
	}
	files := []string{c.Policy}
	if c.With != "" {
		files = append(files, c.With)
	}
	return inv.price(files, trial.Sessions{Paths: c.Dirs, Client: c.Client, Since: since, Most: c.Limit}, c.Limit)
}

// parseSince reads a day or an age.
func parseSince(text string) (time.Time, error) {
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	return parseAge(text)
}

// price judges sessions by configurations and prints what came of it.
func (inv *invocation) price(files []string, of trial.Sessions, most int) (err error) {
	var candidates []*trial.Candidate
	defer func() {
		for _, c := range candidates {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, file := range files {
		c, err := trial.OpenPrice(inv.home, file)
		if err != nil {
			return unsound(err)
		}
		candidates = append(candidates, c)
	}
	price, err := trial.PriceOf(inv, candidates, of)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(price)
	}
	return inv.printPrice(price, most)
}

func (inv *invocation) printPrice(p *trial.Price, most int) error {
	out := inv.stdout
	if p.Calls == 0 {
		fmt.Fprintln(out, "No calls were found in transcripts of "+clientsInWords()+".")
		inv.printUnread(p)
		return nil
	}
	fmt.Fprintf(out, "%s, %s, %s to %s. Nothing was run, asked or sent.\n\n", plural(p.Sessions, "session"), plural(p.Calls, "call"), when(p.From), when(p.To))
	err := inv.table("CLIENT\tSESSIONS\tCALLS", func(row func(...any)) {
		for _, c := range p.Clients {
			row(c.Title, c.Sessions, c.Calls)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := inv.printCounts(p); err != nil {
		return err
	}
	for i, policy := range p.Policies {
		if len(p.Policies) > 1 {
			fmt.Fprintf(out, "\n%s: %s\n", column(i), display.Line(policy.Policy))
		}
		if err := inv.printPolicyPrice(policy, most); err != nil {
			return err
		}
	}
	inv.printUnread(p)
	return nil
}

// column names a policy in the table of counts.
func column(i int) string { return []string{"POLICY", "WITH"}[i] }

// printCounts prints the numbers of all policies side by side.
func (inv *invocation) printCounts(p *trial.Price) error {
	head := "CALLS"
	for i, policy := range p.Policies {
		if len(p.Policies) == 1 {
			fmt.Fprintf(inv.stdout, "judged by %s\n\n", display.Line(policy.Policy))
		}
		head += "\t" + column(i)
	}
	return inv.table(head, func(row func(...any)) {
		line := func(name string, of func(*trial.PolicyPrice) string) {
			cells := []any{name}
			for _, policy := range p.Policies {
				cells = append(cells, of(policy))
			}
			row(cells...)
		}
		number := func(name string, of func(*trial.PolicyPrice) int) {
			line(name, func(p *trial.PolicyPrice) string { return strconv.Itoa(of(p)) })
		}
		number("run inside a sandbox", func(p *trial.PolicyPrice) int { return p.Ran.Inside })
		number("run on the host", func(p *trial.PolicyPrice) int { return p.Ran.OnHost })
		number("ask", func(p *trial.PolicyPrice) int { return p.Asked })
		number("are refused", func(p *trial.PolicyPrice) int { return p.Refused })
		number("of a tool that is not known (ask)", func(p *trial.PolicyPrice) int { return p.Unknown })
		line("sandboxing by these settings", func(p *trial.PolicyPrice) string { return cmp.Or(p.Sandboxing, "–") })
		number("COMMANDS", func(p *trial.PolicyPrice) int { return p.Commands.Total })
		line("inside, if sandboxing is on", func(p *trial.PolicyPrice) string { return inColumn(p.Commands.Inside) })
		line("on the host", func(p *trial.PolicyPrice) string { return inColumn(p.Commands.OnHost) })
	})
}

func inColumn(c trial.Column) string {
	return fmt.Sprintf("%d run, %d ask, %d refused", c.Run, c.Asked, c.Refused)
}

// printPolicyPrice prints why a policy asks, what would change that, and what it would have stopped.
func (inv *invocation) printPolicyPrice(p *trial.PolicyPrice, most int) error {
	out := inv.stdout
	if len(p.Reasons) > 0 {
		fmt.Fprintln(out)
		err := inv.table("ASKED BECAUSE\tON THE HOST\tIF SANDBOXING IS ON\tFOR INSTANCE", func(row func(...any)) {
			for _, r := range p.Reasons[:min(most, len(p.Reasons))] {
				row(display.Line(r.Text), r.OnHost, r.Inside, shorten(r.Example))
			}
		})
		if err != nil {
			return err
		}
		if left := len(p.Reasons) - most; left > 0 {
			fmt.Fprintf(out, "… and %s: --limit %d shows all\n", plural(left, "reason"), len(p.Reasons))
		}
	}
	if len(p.Remedies) > 0 {
		fmt.Fprintf(out, "\nLines that would remove most questions, one after the other (nothing was changed; read them before you paste them):\n")
		for i, r := range p.Remedies {
			fmt.Fprintf(out, "%d. %s fewer, in %s, %s:\n   %s\n", i+1, plural(r.Removes, "question"), r.File, display.Line(r.At), display.Line(r.Line))
			if r.Note != "" {
				fmt.Fprintln(out, "   ("+r.Note+")")
			}
		}
	}
	if len(p.Stopped) > 0 {
		fmt.Fprintf(out, "\nWould have been refused, asked about or confined:\n")
		for _, s := range p.Stopped {
			inv.printStopped(s)
		}
		if p.Left > 0 {
			fmt.Fprintf(out, "… and %s\n", plural(p.Left, "call"))
		}
	}
	return nil
}

func (inv *invocation) printStopped(s *trial.Stopped) {
	times := ""
	if s.Count > 1 {
		times = fmt.Sprintf(" (%d times)", s.Count)
	}
	fmt.Fprintf(inv.stdout, "- %s: %s%s: %s\n", s.How, s.What, times, display.Line(s.Call))
	for _, why := range s.Why {
		fmt.Fprintf(inv.stdout, "    %s\n", display.Line(why))
	}
}

// printUnread names what is not in the numbers.
func (inv *invocation) printUnread(p *trial.Price) {
	fmt.Fprintf(inv.stdout, "\nRead: %s (%d kB)", plural(p.Transcripts.Files, "transcript"), (p.Transcripts.Bytes+1023)/1024)
	if p.Transcripts.Repeated > 0 {
		fmt.Fprintf(inv.stdout, "; %s that a continued session repeats counted once", plural(p.Transcripts.Repeated, "call"))
	}
	fmt.Fprintln(inv.stdout)
	for _, odd := range p.Transcripts.Odd {
		fmt.Fprintf(inv.stdout, "not read: %s: %d, the first is %s\n", odd.What, odd.Count, display.Line(odd.First))
	}
	if p.Nowhere > 0 {
		fmt.Fprintf(inv.stdout, "judged without a workspace, because the transcript does not say where: %s\n", plural(p.Nowhere, "call"))
	}
	for _, n := range p.NotJudged {
		fmt.Fprintf(inv.stdout, "not judged: %s: %s\n", plural(n.Count, "call"), display.Line(n.Text))
	}
}

// shorten keeps an example in its column.
func shorten(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return display.Line(string(runes[:most-1])) + "…"
	}
	return display.Line(text)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func clientsInWords() string {
	names := trial.TranscriptClients()
	text := names[0]
	for _, name := range names[1:] {
		text += ", " + name
	}
	return text
}

// offerReport tells of the report after an installation, and shows it to a person who wants it.
func (inv *invocation) offerReport(ask bool) error {
	fmt.Fprintln(inv.words(), "toolward report shows what your last sessions would have asked.")
	if !ask || inv.json || !isTerminal(inv.stdin) || !confirm(inv.stdin, inv.stderr, "Show it now, for the last 30 days?") {
		return nil
	}
	return inv.price([]string{""}, trial.Sessions{Since: time.Now().AddDate(0, 0, -30), Most: 10}, 10)
}
