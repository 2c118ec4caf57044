// Package store keeps Toolward's state in one SQLite file, <home>/state.db,
// and implements the storage interfaces that the other packages declare.
//
// There is one daemon per home (a lock names the one that runs) and one
// writer per daemon: every change goes through [DB.Write], which gathers the
// changes of concurrent callers into one transaction and, for durable ones,
// one fsync. Reads go through [DB.Reader]; they see committed state, and never
// hold up the writer. Once another program has written to the file, every write
// is refused ([ErrForeign]).
//
// A write that returns nil is committed, and survives the death of the
// process. A durable write that returns nil has also reached the disk, and
// survives the loss of power. A write that returns an error has changed
// nothing, with one exception that is named at [DB.Write].
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the "sqlite" driver of database/sql
)

// FileName is the name of the database inside a home.
const FileName = "state.db"

// ErrClosed is returned by every write that begins after [DB.Close].
var ErrClosed = errors.New("state store is closed")

// Options tunes a store. The zero value is right for a daemon.
type Options struct {
	// SyncDelay is how long a write that is not durable may wait for its
	// fsync. Zero means 4 ms, which keeps the promise of 5 ms.
	SyncDelay time.Duration
	// MaxBatch is how many writes share a transaction at most. Zero means 512.
	MaxBatch int
	// OnSyncError is told when an fsync failed that no caller was waiting
	// for; the writes concerned were committed but may not have reached the
	// disk. It must not block. Nil means nobody is told; later writes fail
	// all the same until the disk accepts data again.
	OnSyncError func(error)
}

const (
	defaultSyncDelay = 4 * time.Millisecond
	defaultMaxBatch  = 512
)

// DB is an open store. Its methods may be called from any goroutine.
type DB struct {
	home   string
	lock   *os.File
	writer *writer
	reader *sql.DB

	queue  *queue
	syncer *syncer
	free   sync.Pool // of *job

	closeOnce sync.Once
	closeErr  error
}

// Open locks the home, creates or migrates its database, and starts the
// writer. The home is created with mode 0700 if it does not exist.
//
// Errors a caller may want to tell apart: [*LockedError] when another daemon
// has the home, [*HomeError] when the home cannot be trusted or written, and
// [*MigrationError].
func Open(ctx context.Context, home string, opts Options) (*DB, error) {
	home, err := prepareHome(home)
	if err != nil {
		return nil, err
	}
	lock, err := lockHome(home)
	if err != nil {
		return nil, err
	}
	db, err := open(ctx, home, opts)
	if err != nil {
		_ = lock.Close() // closing releases the lock
		return nil, err
	}
	db.lock = lock
	return db, nil
}

func open(ctx context.Context, home string, opts Options) (*DB, error) {
	path := filepath.Join(home, FileName)
	if err := prepareFile(path); err != nil {
		return nil, err
	}
	pool, err := openWriter(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, pool, migrationFiles); err != nil {
		_ = pool.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	writer, err := newWriter(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	reader, err := openReader(path)
	if err != nil {
		_ = writer.Close()
		return nil, err
	}
	delay, batch := opts.SyncDelay, opts.MaxBatch
	if delay <= 0 {
		delay = defaultSyncDelay
	}
	if batch <= 0 {
		batch = defaultMaxBatch
	}
	return &DB{
		home: home, writer: writer, reader: reader,
		queue: newQueue(batch), syncer: newSyncer(path+"-wal", delay, opts.OnSyncError),
	}, nil
}

// Home is the absolute path of the directory that this store has locked.
func (db *DB) Home() string { return db.home }

// Reader is the pool for queries. Its connections refuse to change anything;
// a transaction on it sees one moment of the state for as long as it is open.
func (db *DB) Reader() *sql.DB { return db.reader }

// Prepare prepares a statement for use inside [DB.Write]: a prepared statement saves parsing it in every transaction. It must not be
// called from within a write, and the caller closes the statement, if at all,
// before the store.
func (db *DB) Prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	stmt, err := db.writer.PrepareContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("prepare statement: %w", err)
	}
	return stmt, nil
}

// Close finishes the writes already accepted, moves everything into the main
// database file and releases the home. Closing twice is harmless.
func (db *DB) Close() error {
	db.closeOnce.Do(func() {
		db.queue.close()
		errSync := db.syncer.stop()
		errReader := db.reader.Close()
		_, errCheckpoint := db.writer.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
		errWriter := db.writer.Close()
		db.closeErr = errors.Join(errSync, errReader, errCheckpoint, errWriter)
		if db.lock != nil {
			db.closeErr = errors.Join(db.closeErr, db.lock.Close())
		}
		if db.closeErr != nil {
			db.closeErr = fmt.Errorf("close state store: %w", db.closeErr)
		}
	})
	return db.closeErr
}

// OpenReader opens the database of a home for reading only, without the lock,
// beside a running daemon or without one; it is what offline commands such as
// verifying the audit log use. The caller closes it.
func OpenReader(ctx context.Context, home string) (*sql.DB, error) {
	path := filepath.Join(home, FileName)
	if err := trustedFile(path); err != nil {
		return nil, err
	}
	reader, err := openReader(path)
	if err != nil {
		return nil, err
	}
	if err := reader.PingContext(ctx); err != nil {
		_ = reader.Close()
		return nil, fmt.Errorf("open %s for reading: %w", path, err)
	}
	return reader, nil
}

// openWriter opens the only connection that may change anything.
//
// synchronous=NORMAL in WAL mode means that SQLite itself syncs at checkpoints
// only, which it must for the file to stay whole; a commit is synced by the
// syncer, on the log file, so that one fsync serves many commits and the next
// transaction is built while it runs.
func openWriter(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(path, map[string]string{
		"page_size":            strconv.Itoa(pageSize), // of a new database; before WAL, which fixes it
		"synchronous":          "NORMAL",
		"wal_autocheckpoint":   strconv.Itoa(checkpointPages),
		"journal_size_limit":   "67108864",
		"checkpoint_fullfsync": "1",
		"cache_size":           "-2048",
		"temp_store":           "MEMORY",
		"foreign_keys":         "1",
		"trusted_schema":       "0",
	})+"&_journal_mode=WAL&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

const (
	// pageSize holds five or six audit records. Pages of half the size waste
	// a quarter on the records that do not fit, and cost twice the writes.
	pageSize = 8192
	// checkpointPages is how long the write-ahead log grows before it is moved
	// into the main file: 16 MiB.
	checkpointPages = 2048
)

// openReader opens a small pool of connections that cannot write. They are
// given back after a minute, so that an idle daemon is small.
func openReader(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(path, map[string]string{
		"query_only":     "1",
		"cache_size":     "-512",
		"temp_store":     "MEMORY",
		"trusted_schema": "0",
	}))
	if err != nil {
		return nil, fmt.Errorf("open %s for reading: %w", path, err)
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(2)
	db.SetConnMaxIdleTime(time.Minute)
	return db, nil
}

// busyTimeout is how many milliseconds a statement waits for another program.
const busyTimeout = "5000"

// dsn writes the data source name. The path is escaped, so that a home whose
// name holds a question mark cannot set options. _busy_timeout covers a person
// who has the file open in another program. The driver runs it first, then the
// pragmas in alphabetical order, then _journal_mode.
func dsn(path string, pragmas map[string]string) string {
	query := url.Values{"_busy_timeout": {busyTimeout}}
	for name, value := range pragmas {
		query.Add("_pragma", name+"("+value+")")
	}
	address := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}
	return address.String()
}
