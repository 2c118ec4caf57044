package transcript

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openOpencode makes a database of opencode whose owner has it open: what it wrote stands in the file beside it.
func openOpencode(t *testing.T) (home string, db *sql.DB) {
	t.Helper()
	home = t.TempDir()
	dir := filepath.Join(home, ".local/share/opencode")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "opencode.db")+"?_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	run(t, db, `CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT)`)
	run(t, db, `CREATE TABLE part (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT)`)
	run(t, db, `INSERT INTO session VALUES ('ses_1', NULL, '/w'), ('ses_2', 'ses_1', '/w')`)
	return home, db
}

func run(t *testing.T, db interface {
	Exec(string, ...any) (sql.Result, error)
}, statement string, args ...any,
) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

func part(t *testing.T, db interface {
	Exec(string, ...any) (sql.Result, error)
}, id, session, command string,
) {
	t.Helper()
	run(t, db, `INSERT INTO part VALUES (?, ?, 1764580000000, ?)`, id, session,
		fmt.Sprintf(`{"type":"tool","tool":"bash","callID":%q,"state":{"input":{"command":%q},"output":%q}}`, id, command, strings.Repeat("x", 3000)))
}

// What is committed is read while its owner has the database open, what is not is not, and nothing there changes.
func TestDatabaseIsReadBesideItsOwner(t *testing.T) {
	home, db := openOpencode(t)
	part(t, db, "1", "ses_1", "ls")
	run(t, db, `PRAGMA wal_checkpoint(TRUNCATE)`)
	part(t, db, "2", "ses_1", "pwd")
	part(t, db, "3", "ses_2", "id")
	run(t, db, `UPDATE part SET data = replace(data, '"ls"', '"ls -l"') WHERE id = '1'`)
	run(t, db, `INSERT INTO part VALUES ('torn', 'ses_1', 1, 'no JSON'), ('text', 'ses_1', 1, '{"type":"text","text":"hello"}')`)
	open, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	part(t, open, "4", "ses_1", "never happened")
	before := listing(t, home)
	calls, seen := read(t, Reader{}, Roots(home, noVariables)...)
	if after := listing(t, home); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	got := ""
	for _, c := range calls {
		got += fmt.Sprintf("%s %s %q %s;", c.ID, c.Session, c.Agent, c.Arguments)
	}
	want := `1 ses_1 "" {"command":"ls -l"};2 ses_1 "" {"command":"pwd"};3 ses_2 "subagent" {"command":"id"};`
	if got != want || len(seen.Odd) != 1 || seen.Odd[0].What != oddCall {
		t.Errorf("got %s, odd %+v", got, seen.Odd)
	}
	if err := open.Rollback(); err != nil {
		t.Fatal(err)
	}
}

// A log that breaks off, or is damaged, counts as far as it holds.
func TestDamagedLog(t *testing.T) {
	home, db := openOpencode(t)
	part(t, db, "1", "ses_1", "ls")
	run(t, db, `PRAGMA wal_checkpoint(TRUNCATE)`)
	for i := range 20 {
		part(t, db, fmt.Sprint("later", i), "ses_1", "pwd")
	}
	log := filepath.Join(home, ".local/share/opencode/opencode.db-wal")
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []func() []byte{
		func() []byte { return nil },
		func() []byte { return whole[:20] },
		func() []byte { return whole[:len(whole)/2] },
		func() []byte { b := append([]byte{}, whole...); b[len(b)/2] ^= 1; return b },
		func() []byte { b := append([]byte{}, whole...); b[16] ^= 1; return b },
	} {
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(filepath.Join(home, ".local/share/opencode"))); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, "opencode.db-wal"), damage(), 0o600); err != nil {
			t.Fatal(err)
		}
		calls, seen := read(t, Reader{}, Root{"opencode", copied})
		if len(calls) < 1 || len(calls) >= 21 || calls[0].ID != "1" || len(seen.Odd) > 0 {
			t.Errorf("%d calls, odd %+v", len(calls), seen.Odd)
		}
	}
}

// A database of somebody else is named, and no more.
func TestOtherDatabase(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, db, `CREATE TABLE things (id)`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	calls, seen := read(t, Reader{}, Root{"", dir})
	if len(calls) > 0 || len(seen.Odd) != 1 || seen.Odd[0].What != oddFormat {
		t.Errorf("%d calls, odd %+v", len(calls), seen.Odd)
	}
}

// listing says what lies below a directory, with sizes and times.
func listing(t *testing.T, dir string) (list string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		info, err2 := entry.Info()
		if err = errors.Join(err, err2); err == nil {
			list += fmt.Sprintln(path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
