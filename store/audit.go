package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward/audit"
)

// Audit keeps the audit log; it implements [audit.Store].
type Audit struct {
	AuditReader
	db     *DB
	insert *sql.Stmt

	// Used within Append's functions, of which one runs at a time.
	latest int64 // the newest time in the log, Unix milliseconds
	marked int64 // the last record with a row in audit_times
}

// AuditReader reads an audit log; it implements [audit.Source].
type AuditReader struct{ reader *sql.DB }

var (
	_ audit.Store  = (*Audit)(nil)
	_ audit.Source = AuditReader{}
)

// NewAuditReader reads the log of a database that [OpenReader] opened.
func NewAuditReader(reader *sql.DB) AuditReader { return AuditReader{reader} }

// markEvery is how many records may lie between two rows of audit_times.
const markEvery = 128

// Audit returns the audit log of this store, for one [audit.Log].
func (db *DB) Audit(ctx context.Context) (*Audit, error) {
	insert, err := db.Prepare(ctx, `INSERT INTO audit
		(seq, ts, type, ref, session, agent, tool, verdict, status, record, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	a := &Audit{AuditReader: AuditReader{db.reader}, db: db, insert: insert}
	row := db.reader.QueryRowContext(ctx, `SELECT coalesce(max(at), 0), coalesce(max(seq), 0) FROM audit_times`)
	if err := row.Scan(&a.latest, &a.marked); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	row = db.reader.QueryRowContext(ctx, `SELECT max(?, coalesce(max(ts), 0)) FROM audit WHERE seq > ?`, a.latest, a.marked)
	if err := row.Scan(&a.latest); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return a, nil
}

// Append implements [audit.Store].
func (a *Audit) Append(ctx context.Context, durable bool, add func(audit.Appender) error, ended func(bool)) error {
	t := auditTx{log: a, ctx: ctx}
	err := a.db.writeInOrder(ctx, durable, func(tx *Tx) error {
		t.tx = tx
		return add(&t)
	}, ended)
	if err != nil {
		return fmt.Errorf("append to the audit log: %w", err)
	}
	return nil
}

// auditTx is one Append; it implements [audit.Appender].
type auditTx struct {
	log *Audit
	ctx context.Context
	tx  *Tx
}

// Put implements [audit.Appender].
func (t *auditTx) Put(r *audit.Record) error {
	var ref any
	if r.Ref != 0 {
		ref = r.Ref
	}
	at := r.Time.UnixMilli()
	_, err := t.log.insert.Exec(r.Seq, at, string(r.Type), ref,
		r.Session, r.Agent, r.Tool, r.Verdict, r.Status, r.JSON, r.Hash[:])
	if err != nil {
		return err
	}
	return t.mark(r.Seq, at)
}

// mark adds to audit_times now and then. A mark that is rolled back is only
// missing; latest may then be too late, which keeps every mark true.
func (t *auditTx) mark(seq, at int64) error {
	a := t.log
	a.latest = max(a.latest, at)
	if seq-a.marked < markEvery {
		return nil
	}
	a.marked = seq
	_, err := t.tx.Exec(`INSERT INTO audit_times (at, seq) VALUES (?, ?)`, a.latest, seq)
	return err
}

// Seal implements [audit.Appender].
func (t *auditTx) Seal(s *audit.Seal) error { return putSeal(t.tx, s) }

// Last implements [audit.Appender].
func (t *auditTx) Last() (audit.Record, error) { return lastRecord(t.ctx, t.tx) }

func putSeal(tx *Tx, s *audit.Seal) error {
	_, err := tx.Exec(`INSERT OR REPLACE INTO audit_seals (kind, seq, hash, ts, open, key, signature)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		string(s.Kind), s.Seq, s.Hash[:], s.Time.UnixMilli(), s.Open, s.Key, s.Signature)
	return err
}

// Drop implements [audit.Store].
func (a *Audit) Drop(ctx context.Context, seq int64, seal audit.Seal) error {
	err := a.db.Write(ctx, true, func(tx *Tx) error {
		if _, err := tx.Exec(`DELETE FROM audit WHERE seq <= ?`, seq); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM audit_times WHERE seq <= ?`, seq); err != nil {
			return err
		}
		return putSeal(tx, &seal)
	})
	if err != nil {
		return fmt.Errorf("delete from the audit log: %w", err)
	}
	return nil
}

const auditColumns = `seq, ts, type, coalesce(ref, 0), session, agent, tool, verdict, status, record, hash`

func scanAudit(scan func(...any) error) (r audit.Record, err error) {
	var millis int64
	var blob []byte
	err = scan(&r.Seq, &millis, &r.Type, &r.Ref, &r.Session, &r.Agent, &r.Tool, &r.Verdict, &r.Status, &r.JSON, &blob)
	if err != nil {
		return r, err
	}
	if len(blob) == len(r.Hash) {
		// Another length leaves zeros, which no record hashes to.
		copy(r.Hash[:], blob)
	}
	r.Time = time.UnixMilli(millis).UTC()
	return r, nil
}

// Last implements [audit.Source].
func (a AuditReader) Last(ctx context.Context) (audit.Record, error) {
	return lastRecord(ctx, a.reader)
}

type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func lastRecord(ctx context.Context, q rowQuerier) (audit.Record, error) {
	r, err := scanAudit(q.QueryRowContext(ctx, `SELECT `+auditColumns+` FROM audit ORDER BY seq DESC LIMIT 1`).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return audit.Record{}, nil
	}
	if err != nil {
		return r, fmt.Errorf("read the end of the audit log: %w", err)
	}
	return r, nil
}

// Seals implements [audit.Source].
func (a AuditReader) Seals(ctx context.Context) ([]audit.Seal, error) {
	rows, err := a.reader.QueryContext(ctx, `SELECT kind, seq, hash, ts, open, key, signature FROM audit_seals ORDER BY kind`)
	if err != nil {
		return nil, fmt.Errorf("read the seals of the audit log: %w", err)
	}
	defer rows.Close()
	var seals []audit.Seal
	for rows.Next() {
		var s audit.Seal
		var millis int64
		var hash []byte
		if err := rows.Scan(&s.Kind, &s.Seq, &hash, &millis, &s.Open, &s.Key, &s.Signature); err != nil {
			return nil, fmt.Errorf("read the seals of the audit log: %w", err)
		}
		copy(s.Hash[:], hash)
		s.Time = time.UnixMilli(millis).UTC()
		seals = append(seals, s)
	}
	return seals, rows.Err()
}

// scanStep is how many records Scan reads at once.
const scanStep = 256

// Scan implements [audit.Source]. It reads in steps: one long query for a slow
// visitor would hold a connection and keep SQLite's log from being emptied.
func (a AuditReader) Scan(ctx context.Context, seq int64, visit func(*audit.Record) error) error {
	for {
		records, err := a.list(ctx, `WHERE seq >= ? ORDER BY seq LIMIT ?`, seq, scanStep)
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		for i := range records {
			if err := visit(&records[i]); err != nil {
				return err
			}
		}
		if len(records) < scanStep {
			return nil
		}
		seq = records[len(records)-1].Seq + 1
	}
}

func (a AuditReader) list(ctx context.Context, rest string, args ...any) ([]audit.Record, error) {
	rows, err := a.reader.QueryContext(ctx, `SELECT `+auditColumns+` FROM audit `+rest, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []audit.Record
	for rows.Next() {
		r, err := scanAudit(rows.Scan)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// Before implements [audit.Source].
func (a AuditReader) Before(ctx context.Context, t time.Time) (int64, error) {
	seq, err := a.mark(ctx, t)
	if err != nil {
		return 0, err
	}
	// The first record from then on ends the run of older ones.
	row := a.reader.QueryRowContext(ctx, `SELECT coalesce(
		(SELECT seq - 1 FROM audit WHERE seq > ?1 AND ts >= ?2 ORDER BY seq LIMIT 1),
		(SELECT max(seq) FROM audit), 0)`, seq, t.UnixMilli())
	if err := row.Scan(&seq); err != nil {
		return 0, fmt.Errorf("find a time in the audit log: %w", err)
	}
	return seq, nil
}

// mark returns a position up to which every record is older than t.
func (a AuditReader) mark(ctx context.Context, t time.Time) (seq int64, err error) {
	row := a.reader.QueryRowContext(ctx, `SELECT coalesce(
		(SELECT seq FROM audit_times WHERE at < ? ORDER BY at DESC, seq DESC LIMIT 1), 0)`, t.UnixMilli())
	if err := row.Scan(&seq); err != nil {
		return 0, fmt.Errorf("find a time in the audit log: %w", err)
	}
	return seq, nil
}

// Find implements [audit.Source]. It walks from the newest record back: with
// the few conditions that people combine, and a log that grows with every
// call, indexes would cost each decision more than they save a query.
func (a AuditReader) Find(ctx context.Context, f audit.Filter) ([]audit.Record, error) {
	where, args := []string{"1"}, []any{}
	add := func(condition string, arg any) {
		where = append(where, condition)
		args = append(args, arg)
	}
	if !f.Since.IsZero() {
		mark, err := a.mark(ctx, f.Since)
		if err != nil {
			return nil, err
		}
		add("seq > ?", mark)
		add("ts >= ?", f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		add("ts < ?", f.Until.UnixMilli())
	}
	for _, column := range []struct{ name, value string }{
		{"session", f.Session},
		{"agent", f.Agent},
		{"tool", f.Tool},
		{"verdict", f.Verdict},
		{"status", f.Status},
		{"type", string(f.Type)},
	} {
		if column.value != "" {
			add(column.name+" = ?", column.value)
		}
	}
	if f.Ref != 0 {
		add("ref = ?", f.Ref)
	}
	if f.Below != 0 {
		add("seq < ?", f.Below)
	}
	if f.Text != "" {
		add(`record LIKE ? ESCAPE '\'`, "%"+likeText(f.Text)+"%")
	}
	args = append(args, f.Limit)
	found, err := a.list(ctx, `WHERE `+strings.Join(where, " AND ")+` ORDER BY seq DESC LIMIT ?`, args...)
	if err != nil {
		return nil, fmt.Errorf("query the audit log: %w", err)
	}
	return found, nil
}

// likeText writes text as it stands in a record, where quotes and backslashes
// are escaped, and takes the meaning from LIKE's own wild cards.
func likeText(text string) string {
	text = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(text)
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}
