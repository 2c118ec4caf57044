package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// openTest opens a store in a fresh home, with a table to write into.
func openTest(t testing.TB) *DB {
	t.Helper()
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "home"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	mustWrite(t, db, `CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)`)
	return db
}

func mustWrite(t testing.TB, db *DB, query string, args ...any) {
	t.Helper()
	if err := db.Write(context.Background(), true, insert(query, args...)); err != nil {
		t.Fatal(err)
	}
}

func insert(query string, args ...any) func(*Tx) error {
	return func(tx *Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	}
}

func count(t testing.TB, db *DB, table string) (n int) {
	t.Helper()
	if err := db.Reader().QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWriteIsSeenAndSurvivesReopening(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	for round := range 3 {
		db, err := Open(t.Context(), home, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			mustWrite(t, db, `CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)`)
		}
		if got := count(t, db, "note"); got != round {
			t.Errorf("round %d begins with %d notes", round, got)
		}
		if err := db.Write(t.Context(), round%2 == 0, insert(`INSERT INTO note (text) VALUES ('a')`)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFailingWriteHarmsNobodyElse(t *testing.T) {
	db := openTest(t)
	boom := errors.New("boom")
	var wg sync.WaitGroup
	const callers = 300
	for i := range callers {
		wg.Go(func() {
			err := db.Write(context.Background(), i%2 == 0, func(tx *Tx) error {
				if _, err := tx.Exec(`INSERT INTO note (id, text) VALUES (?, 'x')`, i+1); err != nil {
					return err
				}
				switch i % 3 {
				case 1:
					return boom
				case 2:
					panic("a mistake")
				}
				return nil
			})
			switch {
			case i%3 == 0 && err != nil:
				t.Errorf("write %d: %v", i, err)
			case i%3 == 1 && !errors.Is(err, boom):
				t.Errorf("write %d: error %v, want boom", i, err)
			case i%3 == 2 && (err == nil || !strings.Contains(err.Error(), "a mistake")):
				t.Errorf("write %d: error %v, want the panic", i, err)
			}
		})
	}
	wg.Wait()
	if got := count(t, db, "note"); got != callers/3 {
		t.Errorf("%d notes, want the %d that succeeded", got, callers/3)
	}
}

func TestWriteGivesUpOnlyBeforeItBegins(t *testing.T) {
	db := openTest(t)
	entered, release := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		first <- db.Write(context.Background(), false, func(tx *Tx) error {
			close(entered)
			<-release
			return insert(`INSERT INTO note (text) VALUES ('first')`)(tx)
		})
	}()
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	second := make(chan error)
	go func() {
		second <- db.Write(ctx, false, insert(`INSERT INTO note (text) VALUES ('second')`))
	}()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("queued write: %v, want cancelled", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if got := count(t, db, "note"); got != 1 {
		t.Errorf("%d notes, want the first one only", got)
	}
}

func TestReadersDoNotBlockTheWriter(t *testing.T) {
	db := openTest(t)
	mustWrite(t, db, `INSERT INTO note (text) VALUES ('before')`)
	tx, err := db.Reader().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var n int
	if err := tx.QueryRow(`SELECT count(*) FROM note`).Scan(&n); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	for range 50 {
		mustWrite(t, db, `INSERT INTO note (text) VALUES ('during')`)
	}
	if err := tx.QueryRow(`SELECT count(*) FROM note`).Scan(&n); err != nil || n != 1 {
		t.Errorf("the reader's moment moved: %d notes, error %v", n, err)
	}
	if _, err := db.Reader().Exec(`DELETE FROM note`); err == nil {
		t.Error("a reader could write")
	}
}

func TestCloseFinishesAcceptedWritesAndRefusesNewOnes(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	db, err := Open(t.Context(), home, Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db, `CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)`)
	var wg sync.WaitGroup
	var mu sync.Mutex
	written := 0
	for range 100 {
		wg.Go(func() {
			err := db.Write(context.Background(), true, insert(`INSERT INTO note (text) VALUES ('x')`))
			if err == nil {
				mu.Lock()
				written++
				mu.Unlock()
			} else if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		})
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := db.Write(t.Context(), true, insert(`SELECT 1`)); !errors.Is(err, ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	again, err := Open(t.Context(), home, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := count(t, again, "note"); got != written {
		t.Errorf("%d notes on disk, %d writes succeeded", got, written)
	}
}

func TestFilesAreOursAlone(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, FileName), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), home, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mustWrite(t, db, `CREATE TABLE note (id INTEGER PRIMARY KEY)`)
	want := map[string]os.FileMode{".": 0o700, "state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600, "lock": 0o600}
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(home, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), mode)
		}
	}
}

func TestMigrations(t *testing.T) {
	one := &fstest.MapFile{Data: []byte("CREATE TABLE a (x); CREATE TABLE b (x);")}
	two := &fstest.MapFile{Data: []byte("ALTER TABLE a ADD COLUMN y;")}
	broken := &fstest.MapFile{Data: []byte("CREATE TABLE c (x); CREATE TABLE a (x);")}
	changed := &fstest.MapFile{Data: []byte("CREATE TABLE a (z);")}
	const name1, name2, name3 = "migrations/0001_a.sql", "migrations/0002_b.sql", "migrations/0003_c.sql"
	for _, test := range []struct {
		name   string
		before fstest.MapFS
		files  fstest.MapFS
		want   string // part of the error
	}{
		{"all", fstest.MapFS{}, fstest.MapFS{name1: one, name2: two}, ""},
		{"again", fstest.MapFS{name1: one}, fstest.MapFS{name1: one}, ""},
		{
			"a lower number that came later",
			fstest.MapFS{name2: &fstest.MapFile{Data: []byte("CREATE TABLE z (x);")}},
			fstest.MapFS{name1: one, name2: &fstest.MapFile{Data: []byte("CREATE TABLE z (x);")}},
			"",
		},
		{"broken", fstest.MapFS{name1: one}, fstest.MapFS{name1: one, name3: broken}, "0003_c.sql: "},
		{"changed", fstest.MapFS{name1: one}, fstest.MapFS{name1: changed}, "another form"},
		{"newer database", fstest.MapFS{name1: one, name2: two}, fstest.MapFS{name1: one}, "newer Toolward"},
		{"same number", fstest.MapFS{}, fstest.MapFS{name1: one, "migrations/01_b.sql": two}, "same number"},
		{"no number", fstest.MapFS{}, fstest.MapFS{"migrations/a.sql": one}, "begin with a number"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			db, err := openWriter(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := migrate(t.Context(), db, test.before); err != nil {
				t.Fatal(err)
			}
			err = migrate(t.Context(), db, test.files)
			if got := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			var left int
			if err := db.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name = 'c'`).Scan(&left); err != nil || left != 0 {
				t.Errorf("a broken migration left something behind: %d, %v", left, err)
			}
		})
	}
}
