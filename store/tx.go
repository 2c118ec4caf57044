package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Tx is a transaction of [DB.Write]. Statements of [DB.Prepare] belong to the
// same connection: within a write they are part of its transaction.
type Tx struct{ conn *sql.Conn }

// Exec runs a statement that returns no rows. It takes no context: SQLite ends
// the whole transaction, everybody's, when a change in it is interrupted.
func (tx *Tx) Exec(query string, args ...any) (sql.Result, error) {
	return tx.conn.ExecContext(context.Background(), query, args...)
}

// QueryRow runs a query of one row at most.
func (tx *Tx) QueryRow(query string, args ...any) *sql.Row {
	return tx.conn.QueryRowContext(context.Background(), query, args...)
}

// QueryRowContext is QueryRow that ctx can interrupt.
func (tx *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return tx.conn.QueryRowContext(ctx, query, args...)
}

// Prepare prepares a statement, which the caller closes before it returns.
func (tx *Tx) Prepare(query string) (*sql.Stmt, error) {
	return tx.conn.PrepareContext(context.Background(), query)
}

// writer is the one connection that may change anything. Transactions are
// begun and ended by prepared statements on it, not by database/sql: its Tx
// has SQLite parse both words every time, and starts a goroutine to watch a
// context, for every single record.
type writer struct {
	*sql.Conn
	pool                    *sql.DB // of this connection only
	begin, commit, rollback *sql.Stmt
	version                 *sql.Stmt // changes when another connection has written, and never by what this one writes
	expected                int64     // what version was when this one began
	tx                      Tx
}

// newWriter takes the pool over, and closes it if it fails.
func newWriter(ctx context.Context, pool *sql.DB) (*writer, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	w := &writer{Conn: conn, pool: pool, tx: Tx{conn}}
	for _, s := range []struct {
		query string
		into  **sql.Stmt
	}{
		// At once: a transaction that takes the write lock later can fail there.
		{"BEGIN IMMEDIATE", &w.begin},
		{"COMMIT", &w.commit},
		{"ROLLBACK", &w.rollback},
		{"PRAGMA data_version", &w.version},
	} {
		if *s.into, err = conn.PrepareContext(ctx, s.query); err != nil {
			return nil, errors.Join(fmt.Errorf("prepare %s: %w", s.query, err), w.Close())
		}
	}
	if err := w.version.QueryRowContext(ctx).Scan(&w.expected); err != nil {
		return nil, errors.Join(fmt.Errorf("read the version of the data: %w", err), w.Close())
	}
	return w, nil
}

// ErrForeign refuses every write once another program has written to the database of this store: a grant, an answer or a passkey
// may be among what it wrote. No decision is made without a write, so nothing of that comes to count.
var ErrForeign = errors.New("another program has written to the state database: nothing in it is believed now. " +
	"Find out which, look at `toolward audit verify` and the lists of grants, devices and passkeys, then start Toolward anew")

// alone is asked in a transaction: only one program at a time has one that writes.
func (w *writer) alone() error {
	var now int64
	if err := w.version.QueryRow().Scan(&now); err != nil {
		return fmt.Errorf("read the version of the data: %w", err)
	}
	if now != w.expected {
		return ErrForeign
	}
	return nil
}

// Close ends the connection.
func (w *writer) Close() error { return errors.Join(w.Conn.Close(), w.pool.Close()) }
