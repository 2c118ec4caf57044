package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/toolward/toolward"
)

// Replay is a second look at decided calls, by another policy.
type Replay struct {
	Since  time.Time         // decisions not older than this; zero: all
	Policy toolward.Snapshot // what to judge by
	// Agent and Tool restrict the replay to calls of one agent, or of one tool; "" is no restriction.
	Agent, Tool string
	// Gap says why this policy cannot judge this call again, beyond what the record itself lacks; "" if it can. Optional.
	Gap func(*Past) string
	// Visit is told of every call: of its difference, which is nil if there is none, or of the gap. Optional.
	Visit func(p *Past, d *toolward.ShadowJudgment, gap string) error
}

// Tally counts calls by what a replay says about them.
type Tally struct {
	Calls       int `json:"calls"`
	Same        int `json:"same"`
	Stricter    int `json:"stricter"`
	Looser      int `json:"looser"`
	Other       int `json:"other"`       // as strict, but for another reason
	NotReplayed int `json:"notReplayed"` // the record does not hold enough
}

// Replayed is the outcome of a replay.
type Replayed struct {
	Revision    string            `json:"revision"` // of the policy that was tried
	From        time.Time         `json:"from,omitzero"`
	To          time.Time         `json:"to,omitzero"`
	Total       Tally             `json:"total"`
	ByTool      map[string]*Tally `json:"byTool"`
	ByAgent     map[string]*Tally `json:"byAgent"`
	NotReplayed map[string]int    `json:"notReplayed,omitempty"` // calls by reason
}

// Run goes through the decisions of a log, oldest first. It judges them with what judges beside the policy in force
// ([toolward.Reconsider]), so that a shadow and a replay of its records agree.
func (r Replay) Run(ctx context.Context, source Source) (*Replayed, error) {
	out := &Replayed{Revision: r.Policy.Revision(), ByTool: map[string]*Tally{}, ByAgent: map[string]*Tally{}, NotReplayed: map[string]int{}}
	first := int64(1)
	if !r.Since.IsZero() {
		before, err := source.Before(ctx, r.Since)
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		first = before + 1
	}
	err := source.Scan(ctx, first, func(record *Record) error {
		if record.Type != TypeDecision || record.Time.Before(r.Since) ||
			r.Agent != "" && record.Agent != r.Agent || r.Tool != "" && record.Tool != r.Tool {
			return nil
		}
		return r.look(record, out)
	})
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return out, nil
}

// look judges one record again.
func (r *Replay) look(record *Record, out *Replayed) error {
	past, err := ReadDecision(record)
	if err != nil {
		return err
	}
	gap := past.Gap
	if gap == "" && r.Gap != nil {
		gap = r.Gap(past)
	}
	var difference *toolward.ShadowJudgment
	if gap == "" {
		difference = toolward.Reconsider(r.Policy, past.Request, past.Judged)
	}
	if out.From.IsZero() {
		out.From = past.Time
	}
	out.To = past.Time
	if gap != "" {
		out.NotReplayed[gap]++
	}
	for _, tally := range []*Tally{&out.Total, in(out.ByTool, past.Tool), in(out.ByAgent, record.Agent)} {
		tally.count(difference, gap)
	}
	if r.Visit == nil {
		return nil
	}
	return r.Visit(past, difference, gap)
}

// tallies bounds how many names a replay counts apart: callers choose the names of tools that do not exist.
const tallies = 1000

func in(all map[string]*Tally, name string) *Tally {
	if all[name] == nil {
		if len(all) >= tallies {
			name = "…"
		}
		if all[name] == nil {
			all[name] = &Tally{}
		}
	}
	return all[name]
}

func (t *Tally) count(d *toolward.ShadowJudgment, gap string) {
	t.Calls++
	switch {
	case gap != "":
		t.NotReplayed++
	case d == nil:
		t.Same++
	case d.Change == toolward.ChangeStricter:
		t.Stricter++
	case d.Change == toolward.ChangeLooser:
		t.Looser++
	default:
		t.Other++
	}
}
