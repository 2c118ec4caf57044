package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strconv"
	"strings"
	"time"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// MigrationError says which step of the schema could not be taken.
type MigrationError struct {
	Name string // file name, such as 0001_audit.sql
	Err  error
}

func (e *MigrationError) Error() string { return "migration " + e.Name + ": " + e.Err.Error() }
func (e *MigrationError) Unwrap() error { return e.Err }

// migration is one file migrations/<number>_<name>.sql. Numbers are unique
// and never reused; a file never changes once released, which its sum proves.
type migration struct {
	number int
	name   string
	text   string
	sum    string
}

// migrate applies the migrations that the database does not have yet, in the
// order of their numbers, each in a transaction of its own.
func migrate(ctx context.Context, db *sql.DB, files fs.FS) error {
	known, err := readMigrations(files)
	if err != nil {
		return err
	}
	const table = `CREATE TABLE IF NOT EXISTS schema_migrations (
		number INTEGER PRIMARY KEY, name TEXT NOT NULL, sum TEXT NOT NULL, applied_ms INTEGER NOT NULL)`
	if _, err := db.ExecContext(ctx, table); err != nil {
		return fmt.Errorf("create the table of migrations: %w", err)
	}
	applied, err := appliedMigrations(ctx, db)
	if err != nil {
		return err
	}
	for _, m := range known {
		sum, done := applied[m.number]
		delete(applied, m.number)
		if done && sum == m.sum {
			continue
		}
		if done {
			return &MigrationError{m.name, errors.New("was applied to this database in another form; restore the backup that belongs to this version")}
		}
		if err := m.apply(ctx, db); err != nil {
			return &MigrationError{m.name, err}
		}
	}
	// An older program must not write into a schema that it does not know:
	// it could drop a column that a refusal depends on.
	for number := range applied {
		return &MigrationError{strconv.Itoa(number), errors.New("is unknown to this version: the database was written by a newer Toolward; upgrade")}
	}
	return nil
}

func readMigrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	seen := make(map[int]string, len(names))
	list := make([]migration, 0, len(names))
	for _, path := range names {
		name := strings.TrimPrefix(path, "migrations/")
		digits, _, _ := strings.Cut(name, "_")
		number, err := strconv.Atoi(digits)
		if err != nil || number <= 0 {
			return nil, &MigrationError{name, errors.New("its name must begin with a number and an underscore")}
		}
		if other, taken := seen[number]; taken {
			return nil, &MigrationError{name, fmt.Errorf("has the same number as %s", other)}
		}
		seen[number] = name
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, &MigrationError{name, err}
		}
		sum := sha256.Sum256(text)
		list = append(list, migration{number, name, string(text), hex.EncodeToString(sum[:])})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].number < list[j].number })
	return list, nil
}

func appliedMigrations(ctx context.Context, db *sql.DB) (map[int]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT number, sum FROM schema_migrations`)
	if err != nil {
		return nil, fmt.Errorf("read the table of migrations: %w", err)
	}
	defer rows.Close()
	applied := map[int]string{}
	for rows.Next() {
		var number int
		var sum string
		if err := rows.Scan(&number, &sum); err != nil {
			return nil, fmt.Errorf("read the table of migrations: %w", err)
		}
		applied[number] = sum
	}
	return applied, rows.Err()
}

func (m migration) apply(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	if _, err := tx.ExecContext(ctx, m.text); err != nil {
		return err
	}
	const record = `INSERT INTO schema_migrations (number, name, sum, applied_ms) VALUES (?, ?, ?, ?)`
	if _, err := tx.ExecContext(ctx, record, m.number, m.name, m.sum, time.Now().UnixMilli()); err != nil {
		return err
	}
	return tx.Commit()
}
