package desk

import (
	"context"
	"errors"
	"io"

	"github.com/toolward/toolward/audit"
)

// Records is the record, for reading. The audit log implements it.
type Records interface {
	Query(ctx context.Context, filter audit.Filter) ([]audit.Record, error)
	Verify(ctx context.Context) (audit.Report, error)
	Tail() *audit.Tail
	Checkpoint() error
}

// Records are the records that a filter matches, newest first.
func (d *Desk) Records(ctx context.Context, v Visitor, filter audit.Filter) ([]audit.Record, error) {
	if err := d.may(v, SeeRecords, d.records != nil); err != nil {
		return nil, err
	}
	list, err := d.records.Query(ctx, filter)
	if err != nil {
		return nil, &Error{Invalid, err}
	}
	return append([]audit.Record{}, list...), nil
}

// FollowRecords delivers records as they are committed, until its Close. Whoever reads them for long asks again whether the visitor
// still may.
func (d *Desk) FollowRecords(v Visitor) (*audit.Tail, error) {
	if err := d.may(v, SeeRecords, d.records != nil); err != nil {
		return nil, err
	}
	return d.records.Tail(), nil
}

// VerifyRecords looks for the first place where the record is not what was written. A break is no error.
func (d *Desk) VerifyRecords(ctx context.Context, v Visitor) (audit.Report, *audit.Break, error) {
	if err := d.may(v, SeeRecords, d.records != nil); err != nil {
		return audit.Report{}, nil, err
	}
	report, err := d.records.Verify(ctx)
	var broken *audit.Break
	switch {
	case errors.As(err, &broken):
		return report, broken, nil
	case err != nil:
		return report, nil, &Error{Failed, err}
	}
	return report, nil, nil
}

// Export is how records are written out.
type Export func(ctx context.Context, source audit.Source, to io.Writer, from int64) error

// ExportRecords writes the record from a position on. open makes what it is written to, once it is known that the visitor may.
func (d *Desk) ExportRecords(ctx context.Context, v Visitor, how Export, open func() io.Writer, from int64) error {
	if err := d.may(v, SeeRecords, d.source != nil && d.records != nil); err != nil {
		return err
	}
	// Without a signature at its end an export proves nothing about its last records. A full disk must not keep people
	// from their record, though: whoever verifies it is told how far it is signed.
	if err := d.records.Checkpoint(); err != nil {
		d.log.Warn("an export is not signed up to its end", "err", err)
	}
	if err := how(ctx, d.source, open(), from); err != nil {
		return &Error{Failed, err}
	}
	return nil
}
