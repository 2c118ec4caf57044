// Package audit keeps the record of every decision and of what became of it,
// in a chain that shows when somebody changed it.
//
// Each call has two records: the decision, written before the call runs, and
// the outcome. Each record holds the hash of the one before. Signed
// checkpoints, in the chain and beside it, stop whoever can write to the
// database but has not the key from computing the chain anew or cutting off
// its end; [Verify] finds the first break.
//
// No record, no run: [Log.Decide] returns only when the record is committed,
// and for everything but plain allows of safe calls only when it is on disk.
// Concurrent calls share transactions and fsyncs. When the disk is full,
// Decide fails, and so every call is refused until there is room again.
//
// What is not promised: a process of the same user can read the key and forge
// the log, and whoever restores an old copy of the whole home restores a
// consistent, older log. Exports and checkpoints kept elsewhere show both.
package audit

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
)

// Store keeps records and seals. Package store implements it.
type Store interface {
	Source
	// Append calls add within a transaction, in the order of arrival and for
	// one caller at a time. If add has succeeded, it calls ended, before the
	// next transaction begins: with true when the transaction was committed,
	// with false when it failed, which an error of any add in it makes happen.
	// It returns nil after the commit; durable means after the fsync as well,
	// otherwise the fsync follows within 5 ms. An error of ctx means that add
	// was not called.
	Append(ctx context.Context, durable bool, add func(Appender) error, ended func(committed bool)) error
	// Drop deletes the records up to and including seq, and replaces the seal
	// of the same kind.
	Drop(ctx context.Context, seq int64, seal Seal) error
}

// Appender is a transaction that adds to a log.
type Appender interface {
	// Put adds a record, whose Seq is higher than all others.
	Put(*Record) error
	// Seal replaces the seal of the same kind.
	Seal(*Seal) error
	// Last returns the newest record; the zero Record if there is none.
	Last() (Record, error)
}

// Source reads what a Store has kept.
type Source interface {
	// Last returns the newest record; the zero Record if there is none.
	Last(ctx context.Context) (Record, error)
	// Seals returns the seals, at most one of each kind.
	Seals(ctx context.Context) ([]Seal, error)
	// Scan calls visit with the records from seq on, oldest first, up to the
	// newest one. An error of visit ends the scan and is returned.
	Scan(ctx context.Context, seq int64, visit func(*Record) error) error
	// Find returns the records that the filter matches, newest first.
	Find(ctx context.Context, filter Filter) ([]Record, error)
	// Before returns the position of the newest record that is older than t
	// and has only older ones before it; 0 if there is none.
	Before(ctx context.Context, t time.Time) (int64, error)
}

// Options configures a log.
type Options struct {
	// Key signs checkpoints. Required; see [LoadKey].
	Key ed25519.PrivateKey
	// First says that the key was made for this very start. A log under an older key has begun: it cannot be empty.
	First bool
	// Redact removes secrets from text; Escape makes what cannot be seen
	// visible. Both are required: a log that keeps secrets spreads them.
	Redact, Escape func(string) string
	// Selectors are the parameters that choose the row of the class table, such as "action" or "request.kind", in
	// order. Records keep them if they are plain words; of all others only what the preview shows.
	Selectors []string
	// Always has every record on disk before Decide returns, also plain allows
	// of safe calls (configuration: sync "always").
	Always bool
	// OnUnavailable is told of the first write that fails, OnAvailable of the
	// first one that succeeds again. Neither may block or call the log.
	OnUnavailable func(error)
	OnAvailable   func()
	// OnBroken is told, while the log is opened, that it is not as it was left.
	OnBroken func(error)
	// OnSeal is told of each seal of the log's end that was committed: what to keep elsewhere. It may neither block nor
	// call the log. The record that it is about is on disk within 5 ms.
	OnSeal func(Seal)
	// CheckpointEvery is the number of records between checkpoints in the
	// chain; zero means 1024.
	CheckpointEvery int
	// SealDelay is how long a record may stay outside the seal that shows a
	// cut-off end; zero means a second.
	SealDelay time.Duration
}

// Log is an open audit log. Its methods may be called from any goroutine.
type Log struct {
	store         Store
	key           ed25519.PrivateKey
	clean         cleaner
	always        bool
	first         bool
	onUnavailable func(error)
	onAvailable   func()
	onBroken      func(error)
	onSeal        func(Seal)
	checkpoint    int
	sealDelay     time.Duration

	open    openCalls
	tails   tails
	riders  riders
	free    sync.Pool   // of *entry
	failing atomic.Bool // the last write failed, and that was told

	gate   sync.RWMutex // held for reading by those who write
	closed bool

	// What follows is used within Append's functions only: by one at a time.
	head      head
	sealTimer *time.Timer
	text      []byte // scratch
}

var _ toolward.Auditor = (*Log)(nil)

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("audit log is closed")

// Open continues the log in store. Every allowed call of an earlier process
// without an outcome gets the outcome "lost": it may or may not have run, and
// is never repeated. If the log is not as its last seal says, that is recorded
// as an anomaly and told to OnBroken, and the log goes on.
func Open(ctx context.Context, store Store, opts Options) (*Log, error) {
	if store == nil || opts.Redact == nil || opts.Escape == nil || len(opts.Key) != ed25519.PrivateKeySize {
		return nil, errors.New("open the audit log: it needs a store, a key, a redactor and an escaper")
	}
	l := &Log{
		store: store, key: opts.Key,
		clean:  cleaner{redact: opts.Redact, escape: opts.Escape, selectors: slices.Sorted(slices.Values(opts.Selectors))},
		always: opts.Always, first: opts.First, onUnavailable: opts.OnUnavailable, onAvailable: opts.OnAvailable, onBroken: opts.OnBroken, onSeal: opts.OnSeal,
		checkpoint: opts.CheckpointEvery, sealDelay: opts.SealDelay,
	}
	l.open.calls = map[int64]*openCall{}
	if l.checkpoint <= 0 {
		l.checkpoint = 1024
	}
	if l.sealDelay <= 0 {
		l.sealDelay = time.Second
	}
	l.sealTimer = time.AfterFunc(time.Hour, l.sealLater)
	l.sealTimer.Stop()
	l.riders.timer = time.AfterFunc(time.Hour, l.flushLater)
	l.riders.timer.Stop()
	if err := l.resume(ctx); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return l, nil
}

// Close writes what was accepted, seals the log and ends it. Calls that are
// still running lose their outcome to the next start. Closing twice is
// harmless. The store stays open.
func (l *Log) Close() {
	l.gate.Lock()
	defer l.gate.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	l.sealTimer.Stop()
	l.riders.timer.Stop()
	// A failure is told by OnUnavailable.
	if l.flush() == nil {
		_ = l.sealNow(true)
	}
	l.tails.closeAll(ErrClosed)
}

// PublicKey verifies the log's checkpoints.
func (l *Log) PublicKey() ed25519.PublicKey { return l.key.Public().(ed25519.PublicKey) }

// Decide records a decision. When it returns without an error the record
// survives a crash of the process, and everything but a plain allow of a safe
// call also the loss of power.
func (l *Log) Decide(ctx context.Context, d *toolward.DecisionRecord) (toolward.RecordID, error) {
	e := l.entry()
	l.clean.decision(e, d)
	e.durable = l.always || mustReachDisk(d)
	e.opens = &openCall{
		call: l.clean.name(d.Call.ID), session: e.record.Session, agent: e.record.Agent,
		tool: e.record.Tool, allowed: d.Verdict == toolward.Allow, plain: !e.durable,
	}
	seq, err := l.submit(ctx, e)
	if err != nil {
		return 0, fmt.Errorf("record the decision: %w", err)
	}
	return toolward.RecordID(seq), nil
}

// mustReachDisk reports whether a decision must be on disk before it counts:
// all but those that let a safe call run that changes nothing, and about which
// nobody was asked.
func mustReachDisk(d *toolward.DecisionRecord) bool {
	plain := d.Verdict == toolward.Allow && d.Via == "class" &&
		d.Judgment.Verdict == toolward.Allow && d.Judgment.Class.Class == toolward.Safe && !d.Facts.Mutates
	return !plain
}

// Conclude records what became of a decided call, once. The outcome of a call
// whose decision had to be on disk is committed when Conclude returns; that of
// any other call is committed within 5 ms, together with whatever is written
// next. Both are on disk 5 ms later.
func (l *Log) Conclude(ctx context.Context, id toolward.RecordID, o *toolward.OutcomeRecord) error {
	l.gate.RLock()
	defer l.gate.RUnlock()
	if l.closed {
		return fmt.Errorf("record the outcome: %w", ErrClosed)
	}
	call, err := l.open.take(int64(id))
	if err != nil {
		return fmt.Errorf("record the outcome: %w", err)
	}
	outcome := *o
	if outcome.Time.IsZero() {
		outcome.Time = time.Now()
	}
	e := l.entry()
	l.clean.outcome(e, int64(id), call, &outcome)
	e.durable = l.always
	e.closes = int64(id)
	// While the disk fails, callers are told so.
	if call.plain && !l.failing.Load() && l.ride(e) {
		return nil
	}
	if _, err := l.append(ctx, e); err != nil {
		if !l.riders.has(int64(id)) {
			l.open.release(int64(id)) // the caller may try again
		}
		return fmt.Errorf("record the outcome: %w", err)
	}
	return nil
}

// openCall is what the outcome of a decided call will need.
type openCall struct {
	call, session, agent, tool string
	allowed                    bool
	plain                      bool // its decision did not wait for the disk
	taken                      bool // its outcome is being written
}

// openCalls are the decisions that have no outcome yet.
type openCalls struct {
	mu    sync.Mutex
	calls map[int64]*openCall
	low   int64 // no position below is open
}

// take claims the right to conclude a decision. It stops a second outcome, and
// an outcome for a call that was never decided.
func (o *openCalls) take(seq int64) (*openCall, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	call := o.calls[seq]
	if call == nil || call.taken {
		return nil, fmt.Errorf("decision %d is unknown or has its outcome already", seq)
	}
	call.taken = true
	return call, nil
}

// release gives the right back after the write was not even tried.
func (o *openCalls) release(seq int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if call := o.calls[seq]; call != nil {
		call.taken = false
	}
}

func (o *openCalls) add(seq int64, call *openCall) {
	o.mu.Lock()
	o.calls[seq] = call
	o.low = min(o.low, seq)
	o.mu.Unlock()
}

func (o *openCalls) remove(seq int64) {
	o.mu.Lock()
	delete(o.calls, seq)
	o.mu.Unlock()
}

// oldest is the position of the oldest open decision, or end if there is none
// before it. Every position is looked at once, however many are open.
func (o *openCalls) oldest(end int64) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.low < end && o.calls[o.low] == nil {
		o.low++
	}
	return min(o.low, end)
}
