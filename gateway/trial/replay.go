package trial

import (
	"context"
	"errors"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/store"
)

// Difference is one call about which the candidate says something else.
type Difference struct {
	Record   int64             `json:"record"`
	Time     time.Time         `json:"time"`
	Agent    string            `json:"agent"`
	Tool     string            `json:"tool"`
	Change   toolward.Change   `json:"change"`
	Before   string            `json:"before"`
	After    string            `json:"after"`
	Because  []toolward.Reason `json:"because,omitempty"`
	Findings []string          `json:"findings,omitempty"`
	Answer   string            `json:"answer,omitempty"` // what people said at the time
}

// Replayed is what became of a replay.
type Replayed struct {
	With string `json:"with"`
	*audit.Replayed
	Differences []Difference         `json:"differences"`
	Left        int                  `json:"differencesNotShown,omitempty"`
	Rules       []policy.ContentRule `json:"rulesNotReplayed,omitempty"`
}

// Tally counts what a replay says of calls.
type Tally = audit.Tally

// Past says which calls of the past are meant.
type Past struct {
	Since       time.Time
	Agent, Tool string // "" for all
	Most        int    // of the differences are told; the counts are of all
}

// Replay judges recorded calls again. It reads the state itself, so it also works when no gateway runs.
func (c *Candidate) Replay(ctx context.Context, past Past) (*Replayed, error) {
	report := &Replayed{With: c.Name(), Rules: c.snapshot.ContentRules(), Differences: []Difference{}}
	err := c.readLog(ctx, func(source audit.Source) (err error) {
		report.Replayed, err = audit.Replay{
			Since: past.Since, Policy: c.snapshot, Agent: past.Agent, Tool: past.Tool,
			Gap: func(p *audit.Past) string { return c.snapshot.Gap(p.Request, p.Judged) },
			Visit: func(p *audit.Past, d *toolward.ShadowJudgment, _ string) error {
				switch {
				case d == nil:
				case len(report.Differences) >= past.Most:
					report.Left++
				default:
					report.Differences = append(report.Differences, newDifference(p, d))
				}
				return nil
			},
		}.Run(ctx, source)
		return err
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// readLog opens the record for reading. It holds up nobody who writes it.
func (c *Candidate) readLog(ctx context.Context, read func(audit.Source) error) error {
	db, err := store.OpenReader(ctx, c.home)
	if err != nil {
		return err
	}
	return errors.Join(read(store.NewAuditReader(db)), db.Close())
}

func newDifference(p *audit.Past, d *toolward.ShadowJudgment) Difference {
	out := Difference{
		Record: p.Seq, Time: p.Time, Agent: p.Request.Call.Caller.Agent, Tool: p.Tool, Change: d.Change, Because: d.Reasons,
		Before: outcomeWords(toolward.Deny.String(), string(p.Code), ""), After: outcomeWords(d.Verdict.String(), string(d.Code), d.Row),
	}
	if p.Judged != nil {
		out.Before = outcomeWords(p.Judged.Verdict.String(), string(p.Judged.Code), p.Judged.Row)
		out.Before += answerable(p.Judged.Verdict, p.Judged.GrantOK)
	}
	out.After += answerable(d.Verdict, d.GrantOK)
	if d.Partial {
		out.After = "visible; its arguments were never read"
	}
	for _, f := range d.Findings {
		out.Findings = append(out.Findings, f.Code)
	}
	if p.Decision != toolward.NoDecision {
		out.Answer = p.Decision.String()
	}
	return out
}

// answerable says that a question cannot be answered by a remembered answer.
func answerable(v toolward.Verdict, grantOK bool) string {
	if v == toolward.Ask && !grantOK {
		return ", once only"
	}
	return ""
}
