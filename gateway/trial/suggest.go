package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/policy"
)

// Suggested is a suggestion with what it would have covered.
type Suggested struct {
	policy.Suggestion
	Covers *Coverage `json:"covers,omitempty"` // of a rule, by a replay
	How    string    `json:"how"`              // what to do to have it
}

// Coverage is the recorded calls that would have run without a question.
type Coverage struct {
	Calls      int     `json:"calls"`
	Allowed    int     `json:"allowed"`    // by people
	Remembered int     `json:"remembered"` // by an answer that people had given before
	Unanswered int     `json:"unanswered"` // by nobody
	Denied     int     `json:"denied"`
	Records    []int64 `json:"records"` // at most 100
}

// Wider reports whether a rule would have covered what people did not allow. That nobody answered a call which is in
// every respect like those that were allowed does not count; for a directory it may have been another file.
func (c *Coverage) Wider(s *policy.Suggestion) bool {
	return c.Denied > 0 || c.Unanswered > 0 && s.Narrower != nil
}

const coveredShown = 100

// Suggest reads the record and suggests rules for what people allowed again and again. It applies none of them.
func (c *Candidate) Suggest(ctx context.Context, since time.Time) (list []Suggested, err error) {
	err = c.readLog(ctx, func(source audit.Source) error {
		calls, err := answered(ctx, source, since, c.snapshot)
		if err != nil {
			return err
		}
		list, err = c.proven(ctx, source, since, policy.Suggest(calls))
		return err
	})
	return list, err
}

// answered collects the calls that people answered.
func answered(ctx context.Context, source audit.Source, since time.Time, snapshot *policy.Snapshot) ([]policy.Answered, error) {
	var calls []policy.Answered
	_, err := audit.Replay{Since: since, Policy: snapshot, Visit: func(p *audit.Past, _ *toolward.ShadowJudgment, gap string) error {
		if gap == "" && p.Decision != toolward.NoDecision {
			calls = append(calls, policy.Answered{Record: p.Seq, Request: p.Request, Judged: p.Judged, Digest: p.Digest, Decision: p.Decision})
		}
		return nil
	}}.Run(ctx, source)
	return calls, err
}

// proven replays the record with the suggested rules and keeps those that cover what people allowed and nothing else.
// One that is wider gives way to narrower ones.
func (c *Candidate) proven(ctx context.Context, source audit.Source, since time.Time, all []policy.Suggestion) ([]Suggested, error) {
	for {
		covers, err := c.cover(ctx, source, since, all)
		if err != nil {
			return nil, err
		}
		var next []policy.Suggestion
		out, again := []Suggested{}, false
		for _, s := range all {
			covered := (*Coverage)(nil)
			if s.Rule != nil {
				covered = covers[s.Rule.Name]
			}
			if covered != nil && covered.Wider(&s) {
				next, again = append(next, s.Narrower...), true
				continue
			}
			next = append(next, s)
			if s.Rule == nil || covered != nil {
				out = append(out, Suggested{s, covered, howTo(s)})
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
func (c *Candidate) cover(ctx context.Context, source audit.Source, since time.Time, all []policy.Suggestion) (map[string]*Coverage, error) {
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
	covers := map[string]*Coverage{}
	_, err = audit.Replay{Since: since, Policy: snapshot, Visit: func(p *audit.Past, d *toolward.ShadowJudgment, gap string) error {
		if d == nil || gap != "" || d.Verdict != toolward.Allow {
			return nil
		}
		for _, reason := range d.Reasons {
			if reason.Layer == "teg.rules" && names[reason.Rule] && c.asks(p) {
				if covers[reason.Rule] == nil {
					covers[reason.Rule] = &Coverage{}
				}
				covers[reason.Rule].add(p)
			}
		}
		return nil
	}}.Run(ctx, source)
	return covers, err
}

// asks reports whether the configuration as it is would ask about a call.
func (c *Candidate) asks(p *audit.Past) bool {
	if c.snapshot.Gap(p.Request, p.Judged) != "" {
		return false
	}
	now := toolward.Reconsider(c.snapshot, p.Request, p.Judged)
	return now == nil || now.Verdict == toolward.Ask
}

func (c *Coverage) add(p *audit.Past) {
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
