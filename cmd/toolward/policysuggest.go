package main

import (
	"fmt"
	"strings"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway/trial"
)

type policySuggestCommand struct {
	Since string `help:"How far back, such as 30d; default all that is kept." placeholder:"AGE"`
	With  string `help:"Configuration file to add to; default the one in the home." placeholder:"FILE" type:"path"`
}

// Run reads the record and prints suggestions. It applies none of them.
func (c *policySuggestCommand) Run(inv *invocation) error {
	since, err := parseAge(c.Since)
	if err != nil {
		return err
	}
	candidate, err := inv.pastCandidate(c.With)
	if err != nil {
		return err
	}
	defer candidate.Close()
	list, err := candidate.Suggest(inv, since)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(list)
	}
	return inv.printSuggestions(list)
}

func (inv *invocation) printSuggestions(list []trial.Suggested) error {
	if len(list) == 0 {
		fmt.Fprintln(inv.stdout, "Nothing to suggest: nothing was allowed three times and never denied.")
		return nil
	}
	for _, s := range list {
		fmt.Fprintln(inv.stdout, display.Line(s.Text))
		if s.Rule != nil {
			snippet, err := trial.Snippet(s.Rule)
			if err != nil {
				return err
			}
			fmt.Fprintf(inv.stdout, "  rule      %s\n", snippet)
			fmt.Fprintf(inv.stdout, "  covers    %d recorded calls: %d that people allowed, %d on an answer they had given before, %d of the same kind that nobody answered, none that was denied\n",
				s.Covers.Calls, s.Covers.Allowed, s.Covers.Remembered, s.Covers.Unanswered)
		}
		fmt.Fprintf(inv.stdout, "  records   %s\n", numbers(s.Records))
		fmt.Fprintf(inv.stdout, "  to do     %s\n\n", s.How)
	}
	fmt.Fprintln(inv.stdout, "Nothing was applied.")
	return nil
}

// numbers lists record numbers, the last ones if they are many.
func numbers(records []int64) string {
	const most = 10
	text := ""
	if len(records) > most {
		text, records = "… ", records[len(records)-most:]
	}
	return text + strings.Trim(fmt.Sprint(records), "[]")
}
