package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/toolward/toolward"
)

// resume finds the end of the chain, compares it with the last seals, and
// concludes what the last process left open.
func (l *Log) resume(ctx context.Context) error {
	last, err := l.store.Last(ctx)
	if err != nil {
		return err
	}
	seals, err := l.store.Seals(ctx)
	if err != nil {
		return err
	}
	l.head.seq, l.head.hash = last.Seq, last.Hash
	head, trouble := l.checkSeals(seals)
	lost, sealed, err := l.unfinished(ctx, last.Seq, head)
	if err != nil {
		return err
	}
	if head.Seq > 0 && head.Seq <= last.Seq && sealed != head.Hash {
		trouble = fmt.Sprintf("record %d is not the one that was sealed", head.Seq)
	}
	l.head.checkpoint, l.head.floor = l.head.seq, l.head.seq
	l.head.due = true
	l.open.low = l.head.seq + 1
	if trouble != "" {
		if _, err := l.append(ctx, l.troubleEntry(trouble)); err != nil {
			return err
		}
	}
	// All of them are open until each has its outcome: a seal that is signed in between must not say otherwise, or a
	// crash now would leave the rest without one for ever.
	for i := range lost {
		l.open.add(lost[i].decision, &lost[i].call)
	}
	for _, c := range lost {
		if _, err := l.append(ctx, l.lostEntry(c)); err != nil {
			return err
		}
	}
	return l.sealNow(true)
}

// unfinishedCall is an allowed call that a crash left without an outcome.
type unfinishedCall struct {
	decision int64
	call     openCall
}

// checkSeals returns the seal over the end of the chain, the zero Seal if
// there is none that can be believed, and what is wrong with the seals.
func (l *Log) checkSeals(seals []Seal) (head Seal, trouble string) {
	last := l.head.seq
	for i := range seals {
		s := &seals[i]
		if err := s.check(l.PublicKey()); err != nil {
			trouble = err.Error()
		} else if s.Kind == SealHead {
			head = *s
			l.head.sealed = s.Seq
		}
		// Positions are never given out twice, not even those of records that
		// somebody cut off: the gap stays visible for ever.
		if s.Seq > last {
			trouble = fmt.Sprintf("the log ends at record %d, but a seal says that it reached %d", last, s.Seq)
			l.head.seq = max(l.head.seq, s.Seq)
		}
	}
	// The seal of an empty log is a seal: a process that was killed within its first second has no other.
	if head.Kind != SealHead && trouble == "" {
		switch {
		case last > 0:
			trouble = "the seal of the log's end is missing"
		case !l.first:
			// Deleting the whole log must not look like a first start.
			trouble = "its key is there, but no record and no seal: everything was deleted, or the very first start was killed"
		}
	}
	return head, trouble
}

// unfinished reads the chain from the oldest decision that may be open. It
// also returns the hash of the record that the head seal is about.
func (l *Log) unfinished(ctx context.Context, last int64, head Seal) ([]unfinishedCall, Hash, error) {
	open := map[int64]*unfinishedCall{}
	var order []int64
	var sealed Hash
	from := min(head.Open, head.Seq, last)
	err := l.store.Scan(ctx, from, func(r *Record) error {
		if r.Seq == head.Seq {
			sealed = r.Hash
		}
		switch {
		case r.Type == TypeOutcome:
			delete(open, r.Ref)
		case r.Type == TypeDecision && r.Verdict == toolward.Allow.String():
			open[r.Seq] = &unfinishedCall{r.Seq, openCall{
				call: textOf(r.JSON, "callId"), session: r.Session, agent: r.Agent, tool: r.Tool, allowed: true,
			}}
			order = append(order, r.Seq)
		}
		return nil
	})
	var lost []unfinishedCall
	for _, seq := range order {
		if c := open[seq]; c != nil {
			lost = append(lost, *c)
		}
	}
	return lost, sealed, err
}

func (l *Log) lostEntry(c unfinishedCall) *entry {
	e := &entry{closes: c.decision}
	outcome := toolward.OutcomeRecord{
		Time: time.Now(), Status: toolward.StatusLost,
		Error: "Toolward ended between the decision and the outcome; the call may or may not have run",
	}
	l.clean.outcome(e, c.decision, &c.call, &outcome)
	return e
}

func (l *Log) troubleEntry(text string) *entry {
	e := &entry{}
	event := Event{Type: TypeAnomaly, Data: map[string]any{"detector": "auditGap", "text": text}}
	// The event holds nothing that encoding could refuse.
	_ = l.clean.event(e, &event)
	if l.onBroken != nil {
		l.onBroken(fmt.Errorf("the audit log is not as it was left: %s", text))
	}
	return e
}
