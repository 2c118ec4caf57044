package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/policy"
)

type policySuggestCommand struct {
	Since string `help:"How far back, such as 30d; default all that is kept." placeholder:"AGE"`
	With  string `help:"Configuration file to add to; default the one in the home." placeholder:"FILE" type:"path"`
}

// suggested is a suggestion with what it would have covered.
type suggested struct {
	policy.Suggestion
	Covers *coverage `json:"covers,omitempty"` // of a rule, by a replay
	How    string    `json:"how"`              // what to do to have it
}

// coverage is the recorded calls that would have run without a question.
type coverage struct {
	Calls      int     `json:"calls"`
	Allowed    int     `json:"allowed"`    // by people
	Remembered int     `json:"remembered"` // by an answer that people had given before
	Unanswered int     `json:"unanswered"` // by nobody
	Denied     int     `json:"denied"`
	Records    []int64 `json:"records"` // at most 100
}

// wider reports whether a rule would have covered what people did not allow. That nobody answered a call which is in
// every respect like those that were allowed does not count; for a directory it may have been another file.
func (c *coverage) wider(s *policy.Suggestion) bool {
	return c.Denied > 0 || c.Unanswered > 0 && s.Narrower != nil
}

const coveredShown = 100

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
	defer candidate.close()
	list := []suggested{}
	err = inv.readLog(func(source audit.Source) error {
		calls, err := answered(inv, source, since, candidate.snapshot)
		if err != nil {
			return err
		}
		list, err = candidate.proven(inv, source, since, policy.Suggest(calls))
		return err
	})
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(list)
	}
	return inv.printSuggestions(list)
}

// answered collects the calls that people answered.
func answered(inv *invocation, source audit.Source, since time.Time, snapshot *policy.Snapshot) ([]policy.Answered, error) {
	var calls []policy.Answered
	_, err := audit.Replay{Since: since, Policy: snapshot, Visit: func(p *audit.Past, _ *toolward.ShadowJudgment, gap string) error {
		if gap == "" && p.Decision != toolward.NoDecision {
			calls = append(calls, policy.Answered{Record: p.Seq, Request: p.Request, Judged: p.Judged, Digest: p.Digest, Decision: p.Decision})
		}
		return nil
	}}.Run(inv, source)
	return calls, err
}

// proven replays the record with the suggested rules and keeps those that cover what people allowed and nothing else.
// One that is wider gives way to narrower ones.
func (c *candidate) proven(inv *invocation, source audit.Source, since time.Time, all []policy.Suggestion) ([]suggested, error) {
	for {
		covers, err := c.cover(inv, source, since, all)
		if err != nil {
			return nil, err
		}
		var next []policy.Suggestion
		out, again := []suggested{}, false
		for _, s := range all {
			covered := (*coverage)(nil)
			if s.Rule != nil {
				covered = covers[s.Rule.Name]
			}
			if covered != nil && covered.wider(&s) {
				next, again = append(next, s.Narrower...), true
				continue
			}
			next = append(next, s)
			if s.Rule == nil || covered != nil {
				out = append(out, suggested{s, covered, howTo(s)})
			}
		}
		if !again {
			return out, nil
		}
		all = next
	}
}

// cover says what each rule would have covered, by name. A rule that covers nothing, because the configuration has
// changed since or insists on the question, is not among them.
func (c *candidate) cover(inv *invocation, source audit.Source, since time.Time, all []policy.Suggestion) (map[string]*coverage, error) {
	with := c.loaded.File.Policy()
	with.TEG.Rules = slices.Clip(with.TEG.Rules)
	names := map[string]bool{}
	for _, s := range all {
		if s.Rule != nil {
			with.TEG.Rules = append(with.TEG.Rules, *s.Rule)
			names[s.Rule.Name] = true
		}
	}
	snapshot, err := c.compile(with)
	if err != nil {
		return nil, fmt.Errorf("compile the suggested rules: %w", err)
	}
	covers := map[string]*coverage{}
	_, err = audit.Replay{Since: since, Policy: snapshot, Visit: func(p *audit.Past, d *toolward.ShadowJudgment, gap string) error {
		if d == nil || gap != "" || d.Verdict != toolward.Allow {
			return nil
		}
		for _, reason := range d.Reasons {
			if reason.Layer == "teg.rules" && names[reason.Rule] && c.asks(p) {
				if covers[reason.Rule] == nil {
					covers[reason.Rule] = &coverage{}
				}
				covers[reason.Rule].add(p)
			}
		}
		return nil
	}}.Run(inv, source)
	return covers, err
}

// asks reports whether the configuration as it is would ask about a call.
func (c *candidate) asks(p *audit.Past) bool {
	if c.snapshot.Gap(p.Request, p.Judged) != "" {
		return false
	}
	now := toolward.Reconsider(c.snapshot, p.Request, p.Judged)
	return now == nil || now.Verdict == toolward.Ask
}

func (c *coverage) add(p *audit.Past) {
	c.Calls++
	switch {
	case p.Decision.Allows():
		c.Allowed++
	case p.Decision == toolward.DenyCall || p.Code == toolward.CodeDeniedBefore:
		c.Denied++
	case strings.HasPrefix(p.Via, "grant "):
		c.Remembered++
	default:
		c.Unanswered++
	}
	if len(c.Records) < coveredShown {
		c.Records = append(c.Records, p.Seq)
	}
}

func howTo(s policy.Suggestion) string {
	if s.Rule == nil {
		return "the next time that it asks: toolward approvals allow ID --always"
	}
	return "add the rule to teg.rules in toolward.jsonc; the change waits for a signed-in person"
}

func (inv *invocation) printSuggestions(list []suggested) error {
	if len(list) == 0 {
		fmt.Fprintln(inv.stdout, "Nothing to suggest: nothing was allowed three times and never denied.")
		return nil
	}
	for _, s := range list {
		fmt.Fprintln(inv.stdout, display.Line(s.Text))
		if s.Rule != nil {
			snippet, err := ruleSnippet(s.Rule)
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

// ruleSnippet is the rule as it goes into the file. What nobody can see in it is escaped.
func ruleSnippet(r *policy.Rule) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return "", err
	}
	return escapeUnseen(strings.TrimSuffix(b.String(), "\n")), nil
}

// escapeUnseen writes characters of JSON that nobody sees, or that a terminal obeys, as \u escapes: in a rule they stand
// in texts only, such as the path of a file.
func escapeUnseen(text string) string {
	if !display.HasInvisible(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !display.Invisible(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
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
