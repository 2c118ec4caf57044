package live_test

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // reads the dead daemon's database, past all of our own code
)

// checked is what the database has told so far.
type checked struct {
	seq       int64               // up to which the record was read
	open      map[int64]string    // allowed decisions without an outcome: the names of their calls
	decided   map[string][]string // by call: the approvals of the decisions that allowed it; "" for none
	approvals []string            // of all allowed decisions
	decisions int
	lost      int
}

// check reads what the dead daemon has left on disk, and compares it with what its calls did to the workspace and
// what its clients were told.
func (k *killing) check() {
	k.t.Helper()
	db := copyDatabase(k.t, k.State)
	defer db.Close()
	k.checkRecord(db)
	k.checkApprovals(db)
	ran := k.markers()
	for name, times := range ran {
		if allowed := k.checked.decided[name]; len(allowed) < times {
			k.t.Errorf("kill %d: %s ran %d times, but the record has %d decisions that allow it", k.rounds, name, times, len(allowed))
		}
	}
	for name, call := range k.calls {
		switch {
		case call.ran && ran[name] == 0:
			k.t.Errorf("kill %d: %s %s did not run, but its client was told so", k.rounds, call.tool, name)
		case call.refused && !call.ran && ran[name] > 0 && len(k.checked.decided[name]) == 0:
			k.t.Errorf("kill %d: %s %s was refused, but it ran", k.rounds, call.tool, name)
		}
	}
	for id, answers := range k.answers {
		if answers > 1 {
			k.t.Errorf("kill %d: approval %s took %d answers", k.rounds, id, answers)
		}
	}
	if k.t.Failed() {
		k.t.FailNow()
	}
}

// copyDatabase opens a copy: the next daemon must find what the killed one has left.
func copyDatabase(t *testing.T, state string) *sql.DB {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"state.db", "state.db-wal"} {
		data, err := os.ReadFile(filepath.Join(state, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

var callName = regexp.MustCompile(`k\d+-\d+-\d+`)

// checkRecord reads the records since the last time. What an earlier daemon left without an outcome must have got
// one, "lost", before anything else was recorded.
func (k *killing) checkRecord(db *sql.DB) {
	k.t.Helper()
	rows, err := db.Query("SELECT seq, type, coalesce(ref, 0), verdict, status, record FROM audit WHERE seq > ? ORDER BY seq", k.checked.seq)
	if err != nil {
		k.t.Fatal(err)
	}
	defer rows.Close()
	before := make(map[int64]bool)
	for seq := range k.checked.open {
		before[seq] = true
	}
	for rows.Next() {
		var kind, verdict, status, text string
		var seq, of int64
		if err := rows.Scan(&seq, &kind, &of, &verdict, &status, &text); err != nil {
			k.t.Fatal(err)
		}
		var r record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			k.t.Fatalf("record %d: %v: %s", seq, err, text)
		}
		k.checked.seq = seq
		switch {
		case kind == "outcome":
			if before[of] && status != "lost" {
				k.t.Errorf("decision %d of a killed daemon has the outcome %q", of, status)
			}
			if status == "lost" {
				k.checked.lost++
			}
			delete(before, of)
			delete(k.checked.open, of)
		case kind == "decision" && verdict == "allow":
			if len(before) > 0 {
				k.t.Errorf("record %d: a call was allowed while %d of a killed daemon had no outcome", seq, len(before))
			}
			name := callName.FindString(r.Preview)
			k.checked.open[seq] = r.Tool + " " + name
			k.checked.decided[name] = append(k.checked.decided[name], r.Approval.ID)
			if r.Approval.ID != "" {
				k.checked.approvals = append(k.checked.approvals, r.Approval.ID)
			}
		case kind == "anomaly":
			k.t.Errorf("record %d: %s", seq, text)
		}
		if kind == "decision" {
			k.checked.decisions++
		}
	}
	if err := rows.Err(); err != nil {
		k.t.Fatal(err)
	}
}

// checkApprovals compares approvals with decisions: each answer let at most one call run, and every call that needed
// one used up its own.
func (k *killing) checkApprovals(db *sql.DB) {
	k.t.Helper()
	states := map[string][]string{}
	rows, err := db.Query("SELECT id, state, decision FROM approvals")
	if err != nil {
		k.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, state, decision string
		if err := rows.Scan(&id, &state, &decision); err != nil {
			k.t.Fatal(err)
		}
		states[id] = append(states[id], strings.TrimSpace(state+" "+decision))
	}
	if err := rows.Err(); err != nil {
		k.t.Fatal(err)
	}
	used := slices.Sorted(slices.Values(k.checked.approvals))
	for i, id := range used {
		if i > 0 && used[i-1] == id {
			k.t.Errorf("approval %s let two calls run", id)
		}
		if !slices.Equal(states[id], []string{"consumed allow-once"}) {
			k.t.Errorf("approval %s let a call run, but it is %q", id, states[id])
		}
	}
	for name, approvals := range k.checked.decided {
		if call := k.calls[name]; call != nil && call.tool != "write" && slices.Contains(approvals, "") {
			k.t.Errorf("%s %s ran without an approval", call.tool, name)
		}
	}
}
