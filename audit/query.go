package audit

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
)

// Filter selects records. Empty fields select everything.
type Filter struct {
	Since, Until time.Time // from Since on, before Until
	Session      string
	Agent        string
	Tool         string
	Verdict      string // deny or allow: decisions only
	Status       string // outcomes only
	Type         Type
	Ref          int64  // outcomes of this decision
	Text         string // part of the record, letters compared without case
	Below        int64  // positions below this one: the next page
	Limit        int    // at most so many; zero means 100, the most is 1000
}

// Limits of one page of a query.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// check refuses what no record can have, so that a typing mistake is not taken
// for an empty log.
func (f *Filter) check() error {
	var verdict toolward.Verdict
	if f.Verdict != "" && (verdict.UnmarshalText([]byte(f.Verdict)) != nil || verdict == toolward.Ask) {
		return fmt.Errorf("verdict %q: records have deny or allow", f.Verdict)
	}
	statuses := []toolward.Status{
		toolward.StatusOK, toolward.StatusError, toolward.StatusAborted, toolward.StatusDenied,
		toolward.StatusUnused, toolward.StatusUnknown, toolward.StatusEvaded, toolward.StatusLost,
	}
	if f.Status != "" && !slices.Contains(statuses, toolward.Status(f.Status)) {
		return fmt.Errorf("status %q: want one of %q", f.Status, statuses)
	}
	types := []Type{
		TypeDecision, TypeOutcome, TypeLevel, TypeAnomaly, TypeGrant, TypeApproval,
		TypeConfig, TypeSandbox, TypeUndo, TypeExternal, TypeCheckpoint, TypeRetention,
	}
	if f.Type != "" && !slices.Contains(types, f.Type) {
		return fmt.Errorf("type %q: want one of %q", f.Type, types)
	}
	if f.Limit < 0 || f.Limit > MaxLimit {
		return fmt.Errorf("limit %d: want 1 to %d", f.Limit, MaxLimit)
	}
	return nil
}

// Query returns the records that the filter selects, newest first.
func Query(ctx context.Context, source Source, filter Filter) ([]Record, error) {
	if err := filter.check(); err != nil {
		return nil, fmt.Errorf("query the audit log: %w", err)
	}
	if filter.Limit == 0 {
		filter.Limit = DefaultLimit
	}
	records, err := source.Find(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("query the audit log: %w", err)
	}
	return records, nil
}

// Query is the function of that name on this log, including outcomes that were
// accepted but not yet committed.
func (l *Log) Query(ctx context.Context, filter Filter) ([]Record, error) {
	l.settleRiders()
	return Query(ctx, l.store, filter)
}

// settleRiders commits the outcomes that wait, so that whoever reads sees what
// was accepted. If it fails, there is that much less to read.
func (l *Log) settleRiders() {
	l.gate.RLock()
	defer l.gate.RUnlock()
	if !l.closed {
		_ = l.flush()
	}
}

// Verify is the function of that name on this log.
func (l *Log) Verify(ctx context.Context) (Report, error) {
	l.settleRiders()
	return Verify(ctx, l.store, l.PublicKey(), nil)
}

// Export writes the records from position from on, oldest first, one JSON
// object in each line, each with its hash. [VerifyExport] checks it.
func Export(ctx context.Context, source Source, w io.Writer, from int64) error {
	var line []byte
	err := source.Scan(ctx, from, func(r *Record) error {
		line = r.AppendNDJSON(line[:0])
		_, err := w.Write(line)
		return err
	})
	if err != nil {
		return fmt.Errorf("export the audit log: %w", err)
	}
	return nil
}

// Tail follows the log.
type Tail struct {
	// C gives the records as they are committed. It is closed when the log
	// ends, and when the reader is too slow: a follower must not hold up the
	// decisions that it follows. Err tells which.
	C <-chan Record

	c     chan Record
	owner *tails
	err   error
}

// ErrSlow ends a tail whose reader has fallen too far behind; it may query
// what it missed, and follow anew.
var ErrSlow = fmt.Errorf("too slow: more than %d records behind", tailBuffer)

const tailBuffer = 1024

// Tail follows the log from now on.
func (l *Log) Tail() *Tail { return l.tails.add() }

// Err says why C was closed: nil after Close, ErrSlow, or ErrClosed.
func (t *Tail) Err() error {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	return t.err
}

// Close ends the tail. Closing twice is harmless.
func (t *Tail) Close() {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	t.owner.end(t, nil)
}

// tails are the followers of a log.
type tails struct {
	any atomic.Bool // whether there are any: asked for every record

	mu     sync.Mutex
	all    map[*Tail]bool
	closed bool
}

func (s *tails) add() *Tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &Tail{c: make(chan Record, tailBuffer), owner: s}
	t.C = t.c
	if s.all == nil {
		s.all = map[*Tail]bool{}
	}
	s.all[t] = true
	s.any.Store(true)
	if s.closed {
		s.end(t, ErrClosed)
	}
	return t
}

// end must be called with the lock held.
func (s *tails) end(t *Tail, err error) {
	if s.all[t] {
		delete(s.all, t)
		s.any.Store(len(s.all) > 0)
		t.err = err
		close(t.c)
	}
}

func (s *tails) publish(r Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.all {
		select {
		case t.c <- r:
		default:
			s.end(t, ErrSlow)
		}
	}
}

func (s *tails) closeAll(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for t := range s.all {
		s.end(t, err)
	}
}
