package audit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// dropStep is how many records one transaction of Retain deletes: decisions
// wait for it, so it is short.
const dropStep = 2000

// Retain deletes the records that are older than age and returns how many.
// That it does so is recorded first; a signed seal over the last deleted
// record then takes their place, and verification begins there. Records from
// the oldest decision without an outcome on are kept.
func (l *Log) Retain(ctx context.Context, age time.Duration) (int64, error) {
	if age <= 0 {
		return 0, fmt.Errorf("delete old audit records: the age to keep is %s, want more than none", age)
	}
	first, last, err := l.outdated(ctx, time.Now().Add(-age))
	if err != nil {
		return 0, fmt.Errorf("delete old audit records: %w", err)
	}
	if last < first {
		return 0, nil
	}
	e := l.entry()
	e.durable = true
	data := map[string]any{"from": first, "to": last, "keepMs": age.Milliseconds()}
	if err := l.clean.event(e, &Event{Type: TypeRetention, Data: data}); err != nil {
		return 0, fmt.Errorf("delete old audit records: %w", err)
	}
	if _, err := l.submit(ctx, e); err != nil {
		return 0, fmt.Errorf("delete old audit records: %w", err)
	}
	for seq := first - 1; seq < last; {
		seq = min(seq+dropStep, last)
		if err := l.drop(ctx, seq); err != nil {
			return seq - first, fmt.Errorf("delete old audit records: %w", err)
		}
	}
	return last - first + 1, nil
}

// outdated returns the range of records to delete, empty if last < first.
func (l *Log) outdated(ctx context.Context, before time.Time) (first, last int64, err error) {
	last, err = l.store.Before(ctx, before)
	if err != nil {
		return 0, 0, err
	}
	last = min(last, l.open.oldest(last+1)-1)
	seals, err := l.store.Seals(ctx)
	return baseOf(seals) + 1, last, err
}

// drop deletes up to seq, and signs the hash of the last deleted record.
func (l *Log) drop(ctx context.Context, seq int64) error {
	base := Seal{Kind: SealBase, Seq: seq, Time: time.UnixMilli(time.Now().UnixMilli())}
	found := false
	err := l.store.Scan(ctx, seq, func(r *Record) error {
		found = r.Seq == seq
		base.Hash = r.Hash
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if !found {
		return fmt.Errorf("record %d is missing: verify the log", seq)
	}
	base.sign(l.key)
	return l.store.Drop(ctx, seq, base)
}

// errEnough ends a scan that has found what it looked for.
var errEnough = errors.New("enough")
