package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
)

func TestWhatNobodyWaitsForIsSyncedWithin5ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(context.Background(), filepath.Join(t.TempDir(), "home"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		mustWrite(t, db, `CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)`)
		for range 3 {
			for range 4 { // later commits do not put the first one off
				if err := db.Write(context.Background(), false, insert(`INSERT INTO note (text) VALUES ('x')`)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
			first := db.syncer.latest() - 3
			time.Sleep(time.Millisecond)
			synctest.Wait()
			db.syncer.mu.Lock()
			safe := db.syncer.safe
			db.syncer.mu.Unlock()
			if safe < first {
				t.Errorf("after 5 ms commit %d is not on disk, %d is the last", first, safe)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}

func TestADurableWriteIsOnDisk(t *testing.T) {
	db := openTest(t)
	for range 5 {
		mustWrite(t, db, `INSERT INTO note (text) VALUES ('x')`)
		if got, want := db.syncer.safe, db.syncer.latest(); got != want {
			t.Errorf("commit %d of %d is on disk", got, want)
		}
	}
}

// breakSync makes every fsync fail until the returned function is called.
func breakSync(db *DB) (mend func()) {
	s := db.syncer
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.path
	s.path = filepath.Dir(path) // a directory cannot be opened for writing
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.path = path
	}
}

// TestAFailedSyncIsNotForgotten: the kernel may drop the pages that it could
// not write and report success the next time, so a later fsync that succeeds
// proves nothing about them.
func TestAFailedSyncIsNotForgotten(t *testing.T) {
	db := openTest(t)
	mend := breakSync(db)
	if err := db.Write(t.Context(), true, insert(`INSERT INTO note (id) VALUES (1)`)); err == nil {
		t.Fatal("a write that did not reach the disk succeeded")
	}
	mend()
	// A reader of the old state keeps the log from being emptied.
	tx, err := db.Reader().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT count(*) FROM note`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err = db.Write(ctx, false, insert(`INSERT INTO note (id) VALUES (2)`))
	if err == nil || !strings.Contains(err.Error(), "the disk failed") {
		t.Errorf("a write before the recovery: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db, `INSERT INTO note (id) VALUES (3)`)
	if db.syncer.failure() != nil || count(t, db, "note") != 2 {
		t.Errorf("after the recovery: %v, %d notes", db.syncer.failure(), count(t, db, "note"))
	}
}

func TestNobodyWaitingForAFailedSyncIsTold(t *testing.T) {
	told := make(chan error, 10)
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "home"), Options{OnSyncError: func(err error) { told <- err }})
	if err != nil {
		t.Fatal(err)
	}
	mend := breakSync(db)
	if err := db.Write(t.Context(), false, insert(`CREATE TABLE note (id INTEGER PRIMARY KEY)`)); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err == nil {
		t.Error("told of no error")
	}
	mend()
	mustWrite(t, db, `INSERT INTO note (id) VALUES (1)`)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestACallWhoseRecordMissedTheDiskIsVoid: it was refused, and the log must
// say that it did not run.
func TestACallWhoseRecordMissedTheDiskIsVoid(t *testing.T) {
	var alerts []error
	log, db := openLog(t, audit.Options{OnUnavailable: func(err error) { alerts = append(alerts, err) }})
	decide(t, log, typical(toolward.Allow), toolward.StatusOK)
	mend := breakSync(db)
	if _, err := log.Decide(t.Context(), typical(toolward.Allow)); err == nil {
		t.Fatal("a decision that did not reach the disk was accepted")
	}
	mend()
	tail := log.Tail()
	defer tail.Close()
	id := decide(t, log, typical(toolward.Allow), toolward.StatusOK)
	for r := range tail.C {
		if r.Status == "unused" {
			if r.Ref >= int64(id) {
				t.Errorf("outcome of %d, want the one of the refused call", r.Ref)
			}
			break
		}
	}
	if len(alerts) != 1 {
		t.Errorf("%d alerts: %v", len(alerts), errors.Join(alerts...))
	}
	verify(t, log)
}

// TestOutcomesOfSafeCallsFollowSoon: they wait for the next transaction, but
// not longer than 5 ms.
func TestOutcomesOfSafeCallsFollowSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(context.Background(), filepath.Join(t.TempDir(), "home"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		log := startLog(t, db, audit.Options{})
		defer log.Close()
		safe := typical(toolward.Allow)
		safe.Facts.Mutates = false
		outcomes := func() (n int) {
			row := db.Reader().QueryRow(`SELECT count(*) FROM audit WHERE type = 'outcome'`)
			if err := row.Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		decide(t, log, safe, toolward.StatusOK)
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		if n := outcomes(); n != 1 {
			t.Errorf("%d outcomes after 5 ms, want 1", n)
		}
		decide(t, log, safe, toolward.StatusOK)
		decide(t, log, safe, "") // takes the waiting outcome along
		if n := outcomes(); n != 2 {
			t.Errorf("%d outcomes after the next decision, want 2", n)
		}
		decide(t, log, typical(toolward.Allow), toolward.StatusOK)
		if n := outcomes(); n != 3 {
			t.Errorf("%d outcomes after one of a call that changes something, want 3 at once", n)
		}
		verify(t, log)
	})
}
