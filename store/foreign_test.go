package store

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Whoever writes to the database beside the daemon, a second daemon with a lock of its own too, has everything refused from
// then on. Reading it beside the daemon, as doctor does, and what SQLite itself moves about, harm nothing.
func TestForeignWriters(t *testing.T) {
	for name, meddle := range map[string]func(t *testing.T, home string){
		"a row": func(t *testing.T, home string) {
			execute(t, home, `INSERT INTO persons (id, body) VALUES ('x', '{}')`)
		},
		"a removed row": func(t *testing.T, home string) { execute(t, home, `DELETE FROM mine`) },
		"another table": func(t *testing.T, home string) { execute(t, home, `CREATE TABLE other (x)`) },
		"a second daemon": func(t *testing.T, home string) {
			if err := os.Remove(filepath.Join(home, "lock")); err != nil { // so that it takes the home for free
				t.Fatal(err)
			}
			second, err := Open(t.Context(), home, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer second.Close()
			if err := put(t, second); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			db, err := Open(t.Context(), home, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.Write(t.Context(), true, func(tx *Tx) error {
				_, err := tx.Exec(`CREATE TABLE mine (x); CREATE TABLE persons (id, body)`)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := put(t, db); err != nil {
					t.Fatal(err)
				}
				look(t, home)
				if _, err := db.writer.ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
					t.Fatal(err)
				}
			}
			meddle(t, home)
			for range 2 { // and it does not forget
				ran := false
				err := db.Write(t.Context(), true, func(*Tx) error { ran = true; return nil })
				if !errors.Is(err, ErrForeign) || ran {
					t.Errorf("%v, ran %v", err, ran)
				}
			}
		})
	}
}

func put(t *testing.T, db *DB) error {
	return db.Write(t.Context(), true, func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO mine VALUES (1)`)
		return err
	})
}

// look reads as doctor does.
func look(t *testing.T, home string) {
	t.Helper()
	reader, err := OpenReader(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var n int
	if err := reader.QueryRow(`SELECT count(*) FROM mine`).Scan(&n); err != nil || n == 0 {
		t.Fatalf("%d rows, %v", n, err)
	}
}

func execute(t *testing.T, home, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(home, FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}
